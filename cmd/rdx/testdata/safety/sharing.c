// Threads that share data in ways whose outcome is known by construction.
//
// usage: sharing KIND SECONDS [IDLE]
//
// Two threads work in work_a and work_b (or both in one function), in rounds
// that they take by turns, waiting in await, so that no timing decides what is
// invalidated: only what a round touches does. Accesses are of whole words;
// each round touches its words once per access named:
//
//   pingpong   both: load+store of every word. The load finds the other's
//              write, the store its own load: half of the accesses (those whose
//              use is the store) are invalidated.
//   false      each stores one word of every line, a at +0, b at +40, twice a
//              round: no word is invalidated; of the accesses, the second
//              store of a round is followed by the other's write to the line.
//   wide       as false, but b stores all other words of the line, each twice:
//              what a finds is one line gone, however many words were written.
//   readmostly both load all words; a stores every 8th of them before: b's uses
//              of those are invalidated, 1/8 of its accesses, and none of a's.
//              (In one loop: without a PMU samples fall where time goes, and
//              stores by themselves would take more than their share.)
//   queue      a stores every word, b loads every word once: all of b's uses
//              are invalidated, none of a's.
//   private    each load+store of its own words, not by turns: nothing is.
//
// IDLE more threads only wait.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 65536, WORDS = 8 };
static _Alignas(4096) volatile uint64_t data[2][LINES][WORDS];
static _Alignas(4096) atomic_uint turn;
static atomic_int stop;
static int byturns = 1;

#define WORK __attribute__((noinline, noclone))

// Passive: a thread that waits shall not be what is sampled.
static int await(unsigned me)
{
	while (byturns && atomic_load(&turn) != me) {
		if (atomic_load(&stop))
			return 0;
		usleep(20);
	}
	return !atomic_load(&stop);
}

static WORK void pingpong_a(void) { for (int i = 0; i < LINES; i++) data[0][i][0] += 1; }
static WORK void pingpong_b(void) { for (int i = 0; i < LINES; i++) data[0][i][0] += 1; }
static WORK void false_a(void) { for (int i = 0; i < LINES; i++) { data[0][i][0] = i; data[0][i][0] = 2; } }
static WORK void false_b(void) { for (int i = 0; i < LINES; i++) { data[0][i][5] = i; data[0][i][5] = 2; } }
static WORK void wide_a(void) { for (int i = 0; i < LINES; i++) { data[0][i][0] = i; data[0][i][0] = 2; } }
static WORK void wide_b(void)
{
	for (int i = 0; i < LINES; i++)
		for (int j = 1; j < WORDS; j++) {
			data[0][i][j] = i;
			data[0][i][j] = 2;
		}
}
static WORK void readmostly_b(void) { for (int i = 0; i < LINES; i++) (void)data[0][i][0]; }
static WORK void readmostly_a(void)
{
	for (int i = 0; i < LINES; i++) {
		if (i % 8 == 0)
			data[0][i][0] = i;
		(void)data[0][i][0];
	}
}
static WORK void queue_a(void) { for (int i = 0; i < LINES; i++) data[0][i][0] = i; }
static WORK void queue_b(void) { for (int i = 0; i < LINES; i++) (void)data[0][i][0]; }
static WORK void private_a(void) { for (int i = 0; i < LINES; i++) data[0][i][0] += 1; }
static WORK void private_b(void) { for (int i = 0; i < LINES; i++) data[1][i][0] += 1; }

static const struct kind {
	const char *name;
	void (*work[2])(void);
} kinds[] = {
	{ "pingpong", { pingpong_a, pingpong_b } },
	{ "false", { false_a, false_b } },
	{ "wide", { wide_a, wide_b } },
	{ "readmostly", { readmostly_a, readmostly_b } },
	{ "queue", { queue_a, queue_b } },
	{ "private", { private_a, private_b } },
};
static const struct kind *kind;

static void *run(void *arg)
{
	unsigned me = (uintptr_t)arg;

	while (await(me)) {
		kind->work[me]();
		atomic_store(&turn, !me);
	}
	return 0;
}

static void *idle(void *arg)
{
	for (;;)
		pause();
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

	for (unsigned i = 0; argc >= 3 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[1], kinds[i].name))
			kind = &kinds[i];
	if (!kind) {
		fprintf(stderr, "usage: sharing pingpong|false|wide|readmostly|queue|private SECONDS [IDLE]\n");
		return 2;
	}
	byturns = strcmp(kind->name, "private");
	signal(SIGALRM, end);
	alarm(atoi(argv[2]));
	for (int n = argc > 3 ? atoi(argv[3]) : 0; n > 0; n--)
		if (pthread_create(&t, 0, idle, 0))
			return 1;
	if (pthread_create(&t, 0, run, (void *)1))
		return 1;
	run(0);
	pthread_join(t, 0);
	return 0;
}
