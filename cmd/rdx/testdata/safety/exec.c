// exec N [thread]: executes itself N times, at last a program without sums.
// At the end of each it waits for a while, so that it can be sampled.
#include "target.h"

static char **args;

static void *next(void *arg)
{
	int n = atoi(args[1]);
	char count[20];

	for (int i = 0; i < 20; i++)
		check_work();
	snprintf(count, sizeof(count), "%d", n - 1);
	if (n == 0) {
		printf("ok\n");
		fflush(stdout);
		_exit(7);
	}
	execl("/proc/self/exe", "exec", count, args[2], (char *)0);
	die("exec: %s", strerror(errno));
}

static void *spin(void *arg)
{
	while (1)
		check_work();
	return 0;
}

int main(int argc, char **argv)
{
	args = argv;
	begin();
	if (argc > 2 && !strcmp(argv[2], "thread")) {
		spawn(spin, 0);
		spawn(next, 0);
		spin(0);
	}
	next(0);
}
