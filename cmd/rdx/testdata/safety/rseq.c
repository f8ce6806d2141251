// rseq: counts in restartable sequences, each of which loads, adds and stores, and is made anew
// if it was interrupted. What they make is checked.
#include "target.h"
#include <sys/rseq.h>

struct sequence {
	unsigned version, flags;
	unsigned long start, length, abort;
} __attribute__((aligned(32)));

static long count, restarts;

// The signature that glibc registers stands before the place to go to when interrupted.
static void add(struct rseq *area)
{
	__asm__ goto volatile(
		".pushsection .data.rel.ro.seq, \"aw\"\n\t.balign 32\n"
		"3:\t.long 0, 0\n\t.quad 1f, 2f - 1f, 4f\n\t.popsection\n\t"
		"lea 3b(%%rip), %%rax\n\tmov %%rax, 8(%0)\n"
		"1:\tmov (%1), %%rax\n\tmov (%1), %%rcx\n\tmov (%1), %%rdx\n\tnop\n\tnop\n\tadd $1, %%rax\n\tmov %%rax, (%1)\n"
		"2:\n\t"
		".pushsection .text.seq, \"ax\"\n\t.long 0x53053053\n"
		"4:\tjmp %l[aborted]\n\t.popsection"
		:: "r"(area), "r"(&count) : "rax", "rcx", "rdx", "memory" : aborted);
	return;
aborted:
	restarts++;
	add(area);
}

int main(void)
{
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	long want = 0;

	if (!__rseq_size) {
		puts("none");
		return 0;
	}
	begin();
	ready();
	for (; !ended(); want += 1000000) {
		check_work();
		for (int i = 0; i < 1000000; i++)
			add(area);
	}
	if (count != want)
		die("%ld, want %ld", count, want);
	printf("ok restarts=%ld\n", restarts);
	return 0;
}
