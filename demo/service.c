/* A service whose miss ratio is known: of every EVERY accesses to memory one goes on
 * around a ring of LINES cache lines, and misses in every cache that is smaller; the
 * others stay in sixteen lines.
 *
 *	service LINES EVERY [SECONDS [PERCENT]]
 *
 * It ends after so many seconds, 0 for never, and works so many percent of the time. With
 * SERVICE_COUNT in its environment it prints how often it has been around, again and again.
 * It ends with 3 if a round ever brings another sum than it must.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct line {
	uint64_t word;
	char rest[56];
};

static struct line small[16] __attribute__((aligned(64)));

/* Each access is one load, and nothing else in the loop touches memory. */
static __attribute__((noinline)) uint64_t stay(uint64_t n)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < n; i++)
		sum += *(volatile uint64_t *)&small[i & 15].word;
	return sum;
}

static __attribute__((noinline)) uint64_t round_trip(struct line *ring, uint64_t lines, uint64_t stays)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < lines; i++) {
		sum += *(volatile uint64_t *)&ring[i].word;
		for (uint64_t k = 0; k < stays; k++)
			sum += *(volatile uint64_t *)&small[k & 15].word;
	}
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t lines = argc > 1 ? strtoull(argv[1], 0, 0) : 65536;
	uint64_t every = argc > 2 ? strtoull(argv[2], 0, 0) : 10;
	double seconds = argc > 3 ? atof(argv[3]) : 0;
	if (lines < 1 || every < 1) {
		fprintf(stderr, "usage: service LINES EVERY [SECONDS [PERCENT]]\n");
		return 2;
	}
	struct line *ring = aligned_alloc(4096, (lines * sizeof *ring + 4095) / 4096 * 4096);
	if (!ring)
		return 1;
	for (uint64_t i = 0; i < lines; i++)
		ring[i].word = i;
	double percent = argc > 4 ? atof(argv[4]) : 100;
	time_t end = time(0) + (time_t)seconds;
	uint64_t rounds = 0, want = lines * (lines - 1) / 2;
	if (stay(1000))
		return 3;
	int count = getenv("SERVICE_COUNT") != 0;
	do {
		struct timespec before, after;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
		if (round_trip(ring, lines, every - 1) != want)
			return 3;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
		if (count && ++rounds % 64 == 0) {
			printf("%llu\n", (unsigned long long)rounds);
			fflush(stdout);
		}
		if (percent < 100) {
			double worked = (after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec);
			double rest = worked * (100 - percent) / percent;
			struct timespec pause = {(time_t)(rest / 1e9), (long)(rest - 1e9 * (double)(time_t)(rest / 1e9))};
			nanosleep(&pause, 0);
		}
	} while (!seconds || time(0) < end);
	return 0;
}
