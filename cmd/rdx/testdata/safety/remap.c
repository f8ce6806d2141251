// remap: puts anonymous memory with the same bytes in the place of its own text, as loaders for huge pages do, and works.
#include "target.h"
#include <sys/mman.h>

__attribute__((noinline)) static long walk_remapped(volatile long *words, int n)
{
	long sum = 0;
	for (int i = 0; i < n; i++)
		sum += words[i]++;
	return sum;
}

// Calls nothing while the text is away.
__attribute__((noinline, section(".mover"), aligned(4096))) static void move(char *text, size_t size, char *copy)
{
	register long ret __asm__("rax");
	register long a4 __asm__("r10") = MREMAP_MAYMOVE | MREMAP_FIXED;
	register long a5 __asm__("r8") = (long)text;
	__asm__ volatile("syscall" : "=r"(ret) : "0"(25L), "D"(copy), "S"(size), "d"(size), "r"(a4), "r"(a5) : "rcx", "r11", "memory");
}

int main(void)
{
	char line[512], name[256];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to, text = 0, size = 0;
	char flags[5];
	while (fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %255s", &from, &to, flags, name) == 4 && flags[2] == 'x' && from <= (unsigned long)walk_remapped && (unsigned long)walk_remapped < to)
			text = from, size = to - from;
	fclose(maps);
	char *copy = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(copy, (void *)text, size);
	mprotect(copy, size, PROT_READ | PROT_EXEC);
	move((char *)text, size, copy);
	static long words[1 << 14];
	begin();
	ready();
	while (!ended())
		for (int i = 0; i < 100; i++)
			walk_remapped(words, 1 << 14);
	check_work();
	puts("ok");
	fflush(stdout);
	return 0;
}
