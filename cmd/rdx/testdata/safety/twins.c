// twins: a process of many threads, one of which writes word after word of a
// table, some ten milliseconds a round; the others wait. Its child does the same
// to its own copy, at the same addresses, in a twentieth of the time. Nobody
// shares anything.
#include "target.h"

enum { WORDS = 1 << 14, IDLE = 20 };
static _Alignas(4096) volatile uint64_t table[WORDS];
static atomic_int stop;

static void spend(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

static __attribute__((noinline)) void fill(int pause)
{
	for (int i = 0; i < WORDS; i++) {
		table[i] = i;
		spend(pause);
	}
}

static void *worker(void *arg)
{
	while (!stop)
		fill(200);
	return arg;
}

static void *idle(void *arg)
{
	while (!stop)
		usleep(50000);
	return arg;
}

int main(void)
{
	pthread_t threads[IDLE + 1];

	begin();
	pid_t child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			fill(5);
	}
	for (int i = 0; i <= IDLE; i++)
		if (pthread_create(&threads[i], 0, i ? idle : worker, 0))
			die("create thread");
	ready();
	while (!ended())
		usleep(1000);
	stop = 1;
	for (int i = 0; i <= IDLE; i++)
		pthread_join(threads[i], 0);
	kill(child, SIGKILL);
	waitpid(child, 0, 0);
	printf("ok\n");
	return 0;
}
