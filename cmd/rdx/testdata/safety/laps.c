// Threads that share nothing, and whose every reuse comes after one lap.
//
// usage: laps SECONDS [idle]
//
// Two threads, or one beside another that sleeps, read 8192 words of their own in order, and write one word of each of
// 2048 lines in an order that caches do not foresee: more than is read ahead, of some
// microseconds, and twice as much or more while caches are cold. At the end each
// thread's number and the CPU time of its lap, in ns, are told.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 8192, LINES = 2048, PER_LINE = 8 };

static struct own {
	_Alignas(4096) volatile uint64_t word[WORDS];
	volatile uint64_t line[LINES][PER_LINE];
	double ns;
	int tid;
} own[2];
static atomic_int stop;

static __attribute__((noinline, noclone)) void lap(struct own *o)
{
	for (int i = 0; i < WORDS; i++) {
		(void)o->word[i];
		if (i % (WORDS / LINES) == 0)
			o->line[i / (WORDS / LINES) * 1021 % LINES][0] = i;
	}
}

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return 1e9 * t.tv_sec + t.tv_nsec;
}

static void *run(void *arg)
{
	struct own *o = arg;
	double began = cpu();
	long laps = 0;

	for (; !atomic_load_explicit(&stop, memory_order_relaxed); laps++)
		lap(o);
	o->ns = (cpu() - began) / laps;
	o->tid = gettid();
	return 0;
}

static void *idle(void *arg)
{
	while (!atomic_load(&stop))
		usleep(10000);
	return arg;
}

static void end(int sig)
{
	(void)sig;
	atomic_store(&stop, 1);
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (argc < 2)
		return 2;
	signal(SIGALRM, end);
	alarm(atoi(argv[1]));
	if (pthread_create(&t, 0, argc > 2 ? idle : run, &own[1]))
		return 1;
	run(&own[0]);
	pthread_join(t, 0);
	printf("%d %.0f %d %.0f\n", own[0].tid, own[0].ns, own[1].tid, own[1].ns);
	return 0;
}
