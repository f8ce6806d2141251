// sum [THREADS [ROUNDS [nodump|leaderexit|leaderexits|calm]]]: checksums until the end
// of input, or ROUNDS times. With leaderexit the first thread ends before that, with leaderexits
// when it gets SIGUSR1.
#include "target.h"

static atomic_int stop;
static atomic_long rounds;
static long limit;
static int calm;

static void *worker(void *arg)
{
	for (long n = 0; !stop && (!limit || n < limit); n++) {
		check_work();
		rounds++;
		if (calm)
			usleep(500000);
	}
	return 0;
}

static void *ender(void *arg)
{
	while (!limit && !ended())
		usleep(1000);
	stop = !limit;
	return 0;
}

static pthread_t workers[4096];
static int n;

// finish is the last to run, in whatever thread.
static void *finish(void *arg)
{
	ender(0);
	for (int i = 0; i < n; i++)
		pthread_join(workers[i], 0);
	printf("ok rounds=%ld\n", (long)rounds);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 3 ? argv[3] : "";

	n = argc > 1 ? atoi(argv[1]) : 1;
	limit = argc > 2 ? atol(argv[2]) : 0;
	calm = !strcmp(mode, "calm");
	begin();
	if (!strcmp(mode, "nodump"))
		prctl(PR_SET_DUMPABLE, 0);
	int late = !strcmp(mode, "leaderexits"), got;
	sigset_t told;
	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	if (late)
		pthread_sigmask(SIG_BLOCK, &told, 0);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	for (int i = 0; i < n; i++)
		if (pthread_create(&workers[i], &small, worker, 0))
			die("create thread");
	ready();
	if (late)
		sigwait(&told, &got);
	if (late || !strcmp(mode, "leaderexit")) {
		spawn(finish, 0);
		pthread_exit(0);
	}
	finish(0);
}
