// cycles: two threads that run at once for so many seconds, each in a cycle of words of its own, of
// which far's has 175 times as many as near's. In one stack of both, what far touches again
// is as far away as all its words and near's, and what near does as its own and as
// many of far's as it meanwhile touches.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { FAR = 700, NEAR = 4, LAPS = 1000 };
static _Alignas(4096) volatile uint64_t far[FAR], near[512];
static atomic_int stop;

#define WORK __attribute__((noinline, noclone))

static WORK void far_walk(void)
{
	for (int lap = 0; lap < LAPS; lap++)
		for (int i = 0; i < FAR; i++)
			(void)far[i];
}

static WORK void near_walk(void)
{
	for (int lap = 0; lap < LAPS * (FAR / NEAR); lap++) {
		(void)near[0];
		(void)near[1];
		(void)near[2];
		(void)near[3];
	}
}

static void *work(void *walk)
{
	while (!atomic_load(&stop))
		((void (*)(void))walk)();
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t a, b;

	if (argc != 2 || pthread_create(&a, 0, work, far_walk) || pthread_create(&b, 0, work, near_walk))
		return 2;
	usleep(1e6 * atof(argv[1]));
	stop = 1;
	return pthread_join(a, 0) || pthread_join(b, 0);
}
