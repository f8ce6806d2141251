// stray N: is sent, N times, what the kernel sends for a debug exception without a reason: a SIGTRAP with the code TRAP_BRKPT where no
// int1 was executed. It has no handler, so that the first one ends it.
#include "target.h"

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;

	begin();
	for (int i = 0; i < n; i++) {
		siginfo_t info = {.si_signo = SIGTRAP, .si_code = TRAP_BRKPT};
		check_work();
		if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGTRAP, &info))
			die("rt_tgsigqueueinfo");
	}
	printf("ok\n");
	return 0;
}
