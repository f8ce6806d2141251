// OpenMP programs whose sharing is known by construction, of two threads that work at
// the same time.
//
// usage: OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive omp KIND SECONDS
//
// Each round has two parts, with a barrier behind each: in the first, thread 0
// works on the first half of the data and thread 1 on the second, and in the other
// part, but for "fixed" and "sum", the other way round. So between two visits of a thread there is
// exactly one of the other's, whatever the timing. A visit is a load and a store.
//
//   counters  each thread has a counter in every line, at +0 and at +40: half of the
//             accesses, the stores, find another word of their line written before the next.
//   padded    each counter has a line of its own: nothing is shared.
//   turns     both add to the same words: half of the accesses are invalidated; in a
//             shared stack the other thread is the next to use the datum.
//   fixed     each thread adds to the half that schedule(static) gives it, always the
//             same one: nothing is shared.
//   sum       loads alone, and a reduction: nothing is shared but the result.
#include <omp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 65536, WORDS = 8 };
static _Alignas(4096) volatile uint64_t data[2][LINES][WORDS];
static volatile sig_atomic_t stop;

#define WORK __attribute__((noinline, noclone))
#define HALF(h) for (int i = (h) * LINES / 2, end = i + LINES / 2; i < end; i++)

static WORK void counters(int me, int half) { HALF(half) data[0][i][me * 5]++; }
static WORK void padded(int me, int half) { HALF(half) data[me][i][0]++; }
static WORK void turns(int me, int half)
{
	(void)me;
	HALF(half) data[0][i][0]++;
}

static WORK void by_halves(void (*work)(int, int))
{
#pragma omp parallel
	for (int part = 0; part < 2; part++) {
		work(omp_get_thread_num(), omp_get_thread_num() ^ part);
#pragma omp barrier
	}
}

static WORK void fixed(void)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < LINES; i++)
		data[0][i][0]++;
}

static WORK uint64_t sum(void)
{
	uint64_t s = 0;

#pragma omp parallel for schedule(static) reduction(+ : s)
	for (int i = 0; i < LINES; i++)
		s += data[0][i][0];
	return s;
}

static void on_alarm(int sig)
{
	(void)sig;
	stop = 1;
}

int main(int argc, char **argv)
{
	if (argc != 3 || omp_get_max_threads() != 2) {
		fprintf(stderr, "usage: OMP_NUM_THREADS=2 omp counters|padded|turns|fixed|sum SECONDS\n");
		return 2;
	}
	signal(SIGALRM, on_alarm);
	alarm(atoi(argv[2]));
	while (!stop) {
		if (!strcmp(argv[1], "counters"))
			by_halves(counters);
		else if (!strcmp(argv[1], "padded"))
			by_halves(padded);
		else if (!strcmp(argv[1], "turns"))
			by_halves(turns);
		else if (!strcmp(argv[1], "fixed"))
			fixed();
		else if (sum())
			return 3; // of zeros
	}
	return 0;
}
