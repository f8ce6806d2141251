/* Functions with frames of all sorts; for their unwind tables, not to be run. */
#include <stddef.h>

void sink(void *);

__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
	int v[64];
	sink(v);
	return a * b + c * d + e * f + g * h + v[7];
}

__attribute__((noinline)) int dynamic(size_t n)
{
	char v[n];
	sink(v);
	return v[n / 2];
}

__attribute__((noinline)) int aligned(double *p)
{
	double v[16] __attribute__((aligned(64)));
	for (int i = 0; i < 16; i++)
		v[i] = p[i] * p[i + 1];
	sink(v);
	return (int)v[3];
}

__attribute__((noinline)) void sink(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

void _start(void) __attribute__((weak));
void _start(void)
{
	double d[17] = { 0 };
	sink(d);
	many(1, 2, 3, 4, 5, 6, 7, 8);
	dynamic(100);
	aligned(d);
}

int main(int argc, char **argv)
{
	double d[17] = { argc };
	return many(argc, 2, 3, 4, 5, 6, 7, 8) + dynamic(argc) + aligned(d);
}
