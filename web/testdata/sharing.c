// Threads that work on data of their own, count side by side in one line, and take turns at one queue.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, OWN = 1 << 14, QUEUE = 64 };
static uint64_t counters[THREADS]; // side by side: falsely shared
static uint64_t queue[QUEUE];      // written by all: truly shared
static double own[THREADS][OWN];
static volatile int stop;

__attribute__((noinline)) static void count(int me) { counters[me]++; }

__attribute__((noinline)) static void put(unsigned i, uint64_t v) { __atomic_store_n(&queue[i % QUEUE], v, __ATOMIC_RELAXED); }

__attribute__((noinline)) static uint64_t take(unsigned i) { return __atomic_load_n(&queue[i % QUEUE], __ATOMIC_RELAXED); }

__attribute__((noinline)) static double step(int me, unsigned i)
{
	double sum = 0;
	for (unsigned k = 0; k < 16; k++)
		sum += own[me][(i * 16 + k) % OWN] *= 1.0000001;
	return sum;
}

static void *work(void *arg)
{
	int me = (int)(intptr_t)arg;
	double sum = 0;
	for (unsigned i = 0; !stop; i++) {
		sum += step(me, i);
		count(me);
		if (me % 2)
			put(i, i);
		else
			sum += take(i);
	}
	return sum > 0 ? arg : NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 10;
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)(intptr_t)i);
	struct timespec wait = {(time_t)seconds, (long)(1e9 * (seconds - (time_t)seconds))};
	nanosleep(&wait, NULL);
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("%lu\n", counters[0] + counters[1] + counters[2] + counters[3]);
}
