// rates.c chain|chase|loads|far [SECONDS]: makes accesses at a rate that depends on what its instructions wait for, and says at its end
// how many accesses a nanosecond of CPU time it made.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static uint64_t words[512];

// One load of 24 multiplications that wait for each other.
static double chain(void)
{
	uint64_t x = 3;
	for (int i = 0; i < 100000; i++) {
		x += ((volatile uint64_t *)words)[i & 511];
		for (int k = 0; k < 24; k++)
			__asm__ volatile("imul %0, %0" : "+r"(x));
	}
	words[0] = x & 1;
	return 100000;
}

// Each load's address is what the one before has read.
static double chase(void)
{
	void **p = (void **)words;
	for (int i = 0; i < 512; i++)
		p[i] = &p[(i * 5 + 1) & 511];
	for (int i = 0; i < 1000000; i++)
		__asm__ volatile("mov (%0), %0" : "+r"(p));
	memset(words, 0, sizeof words);
	return 1000000;
}

// Eight loads that wait for nothing.
static double loads(void)
{
	uint64_t x;
	for (int i = 0; i < 500000; i++)
		for (int k = 0; k < 8; k++)
			__asm__ volatile("mov %1, %0" : "=r"(x) : "m"(words[k * 8]));
	return 4000000;
}

// As chase, through 8 MiB, a line each: of two accesses one is to another line.
static double far(void)
{
	enum { lines = 8 << 20 >> 6 };
	static uint64_t list[lines][8];
	void **p = (void **)list;
	if (!list[0][0])
		for (int i = 0; i < lines; i++)
			list[i][0] = (uint64_t)list[(i * 5 + 1) & (lines - 1)];
	for (int i = 0; i < 100000; i++) {
		words[0] += (uint64_t)p[1];
		p = *p;
	}
	return 400000;
}

int main(int argc, char **argv)
{
	double (*run)(void) = argc < 2 ? chain : !strcmp(argv[1], "chase") ? chase : !strcmp(argv[1], "loads") ? loads : !strcmp(argv[1], "far") ? far : chain;
	double ns = argc > 2 ? strtod(argv[2], 0) * 1e9 : 1e9;
	double accesses = 0, from = cpu();
	while (cpu() - from < ns)
		accesses += run();
	printf("%.6f\n", accesses / (cpu() - from));
	return 0;
}
