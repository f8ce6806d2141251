// children: starts so many children one after the other, each of which computes for so many ns, and says how long all of
// them, and itself, have run by the kernel's account.
//
// usage: children N NS
#include "target.h"
#include <sys/resource.h>

static long long ran(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[1]) : 0, result[2];
	long long ns = n ? atoll(argv[2]) : 0, sum = 0, one;

	if (pipe(result))
		die("pipe: %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		pid_t p = fork();
		int status;

		if (!p) {
			uint64_t want = work();

			while ((one = ran(CLOCK_PROCESS_CPUTIME_ID)) < ns)
				if (work() != want)
					_exit(1);
			_exit(write(result[1], &one, sizeof(one)) != sizeof(one));
		}
		if (p < 0 || waitpid(p, &status, 0) != p || status || read(result[0], &one, sizeof(one)) != sizeof(one))
			die("child %d: status %x, %s", i, status, strerror(errno));
		sum += one;
	}
	printf("ok ns=%lld\n", sum + ran(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
