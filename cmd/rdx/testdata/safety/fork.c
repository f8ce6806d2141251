// fork: forks, vforks and spawns children that work, and checks their ends.
#include "target.h"
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>

extern char **environ;

static void reap(pid_t p, const char *how)
{
	int status;

	if (p < 0)
		die("%s: %s", how, strerror(errno));
	if (waitpid(p, &status, 0) != p)
		die("wait for child of %s: %s", how, strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 42)
		die("child of %s: status %x", how, status);
}

static int bare(void *arg)
{
	check_work();
	_exit(42);
}

int main(int argc, char **argv)
{
	char *child[] = {"fork", "child", 0};
	long n = 0;
	pid_t p;

	begin();
	if (argc > 1) {
		check_work();
		return 42;
	}
	char *stack = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ready();
	for (; !ended(); n += 4) {
		check_work();
		p = fork();
		if (!p) {
			check_work();
			_exit(42);
		}
		reap(p, "fork");
		check_work();
		p = vfork();
		if (!p) {
			execv("/proc/self/exe", child);
			_exit(1);
		}
		reap(p, "vfork");
		check_work();
		if (posix_spawn(&p, "/proc/self/exe", 0, 0, child, environ))
			die("posix_spawn");
		reap(p, "posix_spawn");
		check_work();
		// No SIGCHLD: a child that a tracer of threads is told of.
		p = clone(bare, stack + (1 << 20), 0, 0);
		int status;
		if (p < 0 || waitpid(p, &status, __WALL) != p || !WIFEXITED(status) || WEXITSTATUS(status) != 42)
			die("bare clone");
	}
	printf("ok children=%ld\n", n);
	return 0;
}
