// See fill.c.
#include <cstdio>
#include <memory>

int main()
{
	std::unique_ptr<volatile long[]> a(new volatile long[100000]);
	for (long i = 0; i < 100000; i++) a[i] = i;
	std::printf("%p\n", (void*)a.get());
}
