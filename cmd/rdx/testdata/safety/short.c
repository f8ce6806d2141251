// short THREADS NS: makes threads one after another, each of which computes for
// NS nanoseconds of its own CPU time, and says how much that was in all.
#include "target.h"
#include <sys/resource.h>

static uint64_t life, total;
static volatile uint64_t x = 1;

static uint64_t cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void *once(void *arg)
{
	uint64_t start = cpu();

	do
		for (int i = 0; i < 40000; i++)
			x = x * 6364136223846793005ULL + 1;
	while (cpu() - start < life);
	total += cpu() - start;
	return 0;
}

int main(int argc, char **argv)
{
	struct rusage own;

	life = atol(argv[2]);
	for (int n = atoi(argv[1]); n > 0; n--)
		pthread_join(spawn(once, 0), 0);
	getrusage(RUSAGE_THREAD, &own);
	total += own.ru_utime.tv_sec * 1000000000ULL + own.ru_utime.tv_usec * 1000;
	printf("ok ns=%llu\n", (unsigned long long)total);
	return 0;
}
