// common: two threads that run at once for so many seconds, each in a cycle of words, of which the
// first half are the same for both and the others its own. In one stack of both a word is never further
// away than all of these are.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 60, LAPS = 10000 };
static _Alignas(4096) volatile uint64_t common[512], own[2][512];
static atomic_int stop;

static __attribute__((noinline, noclone)) void walk(volatile uint64_t *mine)
{
	for (int lap = 0; lap < LAPS; lap++) {
		for (int i = 0; i < WORDS; i++)
			(void)common[i];
		for (int i = 0; i < WORDS; i++)
			(void)mine[i];
	}
}

static void *work(void *mine)
{
	while (!atomic_load(&stop))
		walk(mine);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t a, b;

	if (argc != 2 || pthread_create(&a, 0, work, (void *)own[0]) || pthread_create(&b, 0, work, (void *)own[1]))
		return 2;
	usleep(1e6 * atof(argv[1]));
	stop = 1;
	return pthread_join(a, 0) || pthread_join(b, 0);
}
