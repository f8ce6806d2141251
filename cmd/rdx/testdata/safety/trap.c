// trap: lives off SIGTRAP: raised, by int3 and int1, and by single-stepping itself.
#include "target.h"

#include <ucontext.h>

static atomic_long traps, others, again;

static void handler(int s, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	traps++;
	// Some hypervisors give the address of int1 itself for that to return to, and so it would be done for ever.
	if (info->si_code == TRAP_BRKPT && *(unsigned char *)*rip == 0xf1) {
		++*rip;
		again++;
	}
	if (info->si_code != SI_TKILL && info->si_code != SI_KERNEL && info->si_code != TRAP_BRKPT &&
	    info->si_code != TRAP_TRACE)
		others++;
}

int main(void)
{
	struct sigaction a = {0};
	long rounds = 0;

	a.sa_sigaction = handler;
	a.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &a, 0);
	begin();
	ready();
	for (; !ended(); rounds++) {
		check_work();
		long before = traps;
		raise(SIGTRAP);
		__asm__ volatile("int3");
		__asm__ volatile(".byte 0xf1"); // int1
		if (traps != before + 3)
			die("%ld traps of 3", traps - before);
		before = traps;
		// The trap flag: a trap after each instruction until it is cleared.
		__asm__ volatile("sub $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
				 "nop\n\tnop\n\tnop\n\t"
				 "pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tnop\n\tadd $128, %%rsp"
				 ::: "memory", "cc");
		if (traps < before + 6 || traps > before + 8)
			die("%ld single steps, want 7", traps - before);
	}
	if (others)
		die("%ld traps of another kind", others);
	printf("ok traps=%ld, of int1 not got past alone %ld\n", (long)traps, (long)again);
	return 0;
}
