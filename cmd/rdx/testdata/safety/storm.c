// storm: starts so many children one after the other, by fork, vfork, vfork and exec, and
// as threads, that do next to nothing, and checks their ends.
#include "target.h"

static void *once(void *arg) { return arg; }

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 0;
	int status;

	if (n == 0)
		return 42; // what exec starts
	for (long i = 0; i < n; i++) {
		pthread_t t;
		pid_t p;

		if (i % 4 == 3) {
			t = spawn(once, 0);
			pthread_join(t, 0);
			continue;
		}
		p = i % 4 == 0 ? fork() : vfork();
		if (!p) {
			if (i % 4 == 2)
				execl("/proc/self/exe", "storm", "0", (char *)0);
			_exit(42);
		}
		if (p < 0 || waitpid(p, &status, 0) != p || !WIFEXITED(status) || WEXITSTATUS(status) != 42)
			die("child %ld: status %x, %s", i, status, strerror(errno));
	}
	printf("ok\n");
	return 0;
}
