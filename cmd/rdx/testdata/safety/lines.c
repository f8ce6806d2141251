// Threads that share cache lines, or do not, in ways of which it is known who takes what from whom.
//
// usage: lines KIND SECONDS
//
// Threads work at the same time, each with a table of its own, and share what their kind says:
//
//   false       two threads count in neighbouring words, with nothing between
//   true        the same in one word
//   falsely     the same, but each has longer between its counts than a line takes from one to the other
//   truly       the same in one word
//   stats       four threads have a counter each in one struct
//   refcount    two take and give back a reference by an atomic counter
//   spin        two take a spin lock and change what lies in its line
//   config      one reads a setting all the time that the other seldom changes
//   beside      one reads a word that never changes, the other counts beside it
//   heap        two count in blocks that the allocator put into one line
//   array       two add to their element of an array of sums
//
//   padded      two count in lines of their own
//   readonly    two read one table that nobody writes
//   halves      two write the two halves of one array
//   own         two work in tables of their own
//   copy        one copies what the other never touches
//   once        what is shared was written before the threads began
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE = 4096, HALF = 1 << 16 };
struct counters { volatile long a, b, c, d; };
static struct counters stats __attribute__((aligned(64)));
static struct { volatile long n; long pad[7]; } padded[4] __attribute__((aligned(64)));
static struct { atomic_int lock; long value, other; } guarded __attribute__((aligned(64)));
static struct { atomic_long references; } object __attribute__((aligned(64)));
static struct { volatile long setting; } config __attribute__((aligned(64)));
static struct { volatile long constant, count; } beside __attribute__((aligned(64)));
static volatile long sums[2] __attribute__((aligned(64)));
static volatile long *block[2];
static long table[4][TABLE];
static volatile long both[2 * HALF] __attribute__((aligned(4096)));
static volatile int stop;

#define WORK __attribute__((noinline, noclone))

// work touches so many words of the thread's own table.
static WORK long work(int t, long i, int n)
{
	for (; n > 0; n--) {
		i = i * 1103515245 + 12345;
		table[t][(i >> 8) & (TABLE - 1)]++;
	}
	return i;
}

static WORK void false_a(void) { while (!stop) stats.a++; }
static WORK void false_b(void) { while (!stop) stats.b++; }
static WORK void true_a(void) { while (!stop) stats.a++; }
static WORK void true_b(void) { while (!stop) stats.a++; }
// rest takes some 300 ns and touches nothing.
static inline __attribute__((always_inline)) long rest(long x)
{
	for (int i = 0; i < 300; i++) {
		x = x * 6364136223846793005 + 1;
		asm volatile("" : "+r"(x));
	}
	return x;
}

static WORK void falsely_a(void) { for (long x = 1; !stop; stats.a++) x = rest(x); }
static WORK void falsely_b(void) { for (long x = 1; !stop; stats.b++) x = rest(x); }

// Each counts its rounds, and in how many it finds that the other has written.
static struct { long rounds, taken; long pad[6]; } found[2] __attribute__((aligned(64)));

#define TRULY(t) \
	long rounds = 0, taken = 0, mine = 0; \
	for (long x = 1; !stop; rounds++) { \
		x = rest(x); \
		taken += stats.a != mine; \
		stats.a = mine = 2 * rounds + t; /* which the other never writes */ \
	} \
	found[t].rounds = rounds; \
	found[t].taken = taken;

static WORK void truly_a(void) { TRULY(0) }
static WORK void truly_b(void) { TRULY(1) }
static WORK void stats_a(void) { for (long i = 1; !stop;) { i = work(0, i, 10); stats.a++; } }
static WORK void stats_b(void) { for (long i = 1; !stop;) { i = work(1, i, 10); stats.b++; } }
static WORK void stats_c(void) { for (long i = 1; !stop;) { i = work(2, i, 10); stats.c++; } }
static WORK void stats_d(void) { for (long i = 1; !stop;) { i = work(3, i, 10); stats.d++; } }
static WORK void refcount_a(void) { for (long i = 1; !stop;) { atomic_fetch_add(&object.references, 1); i = work(0, i, 15); atomic_fetch_sub(&object.references, 1); } }
static WORK void refcount_b(void) { for (long i = 1; !stop;) { atomic_fetch_add(&object.references, 1); i = work(1, i, 15); atomic_fetch_sub(&object.references, 1); } }
static WORK void take(void) { while (atomic_exchange(&guarded.lock, 1)) __builtin_ia32_pause(); }
static WORK void give(void) { atomic_store_explicit(&guarded.lock, 0, memory_order_release); }
static WORK void spin_a(void) { for (long i = 1; !stop;) { i = work(0, i, 60); take(); guarded.value++; give(); } }
static WORK void spin_b(void) { for (long i = 1; !stop;) { i = work(1, i, 60); take(); guarded.value++; give(); } }
static WORK void config_a(void) { for (long i = 1; !stop;) i = work(0, i + config.setting, 10); }
static WORK void config_b(void) { for (long i = 1; !stop;) { i = work(1, i, 200); config.setting++; } }
static WORK void beside_a(void) { for (long i = 1; !stop;) i = work(0, i + beside.constant, 10); }
static WORK void beside_b(void) { for (long i = 1; !stop;) { i = work(1, i, 10); beside.count++; } }
static WORK void heap_a(void) { for (long i = 1; !stop;) { i = work(0, i, 5); ++*block[0]; } }
static WORK void heap_b(void) { for (long i = 1; !stop;) { i = work(1, i, 5); ++*block[1]; } }
static WORK void array_a(void) { for (long i = 1; !stop;) { i = work(0, i, 1); sums[0] += i; } }
static WORK void array_b(void) { for (long i = 1; !stop;) { i = work(1, i, 1); sums[1] += i; } }
static WORK void padded_a(void) { for (long i = 1; !stop;) { i = work(0, i, 5); padded[0].n++; } }
static WORK void padded_b(void) { for (long i = 1; !stop;) { i = work(1, i, 5); padded[1].n++; } }
static WORK void readonly_a(void) { for (long i = 1; !stop; i = i * 1103515245 + 12345) (void)both[(i >> 8) & (HALF - 1)]; }
static WORK void readonly_b(void) { for (long i = 1; !stop; i = i * 1103515245 + 12345) (void)both[(i >> 8) & (HALF - 1)]; }
static WORK void halves_a(void) { while (!stop) for (long i = 0; i < HALF; i++) both[i]++; }
static WORK void halves_b(void) { while (!stop) for (long i = 0; i < HALF; i++) both[HALF + i]++; }
static WORK void own_a(void) { for (long i = 1; !stop;) i = work(0, i, 50); }
static WORK void own_b(void) { for (long i = 1; !stop;) i = work(1, i, 50); }
static WORK void copy_a(void) { while (!stop) memcpy((void *)both, (void *)&both[HALF / 2], HALF * 4); }
static WORK void copy_b(void) { for (long i = 1; !stop;) i = work(1, i, 50); }
static WORK void once_a(void) { for (long i = 1; !stop;) i = work(0, i + stats.a + stats.b, 10); }
static WORK void once_b(void) { for (long i = 1; !stop;) i = work(1, i + stats.a + stats.b, 10); }

#define TWO(name) { #name, { name##_a, name##_b } }
static const struct kind { const char *name; void (*work[4])(void); } kinds[] = {
	TWO(false), TWO(true), TWO(falsely), TWO(truly), { "stats", { stats_a, stats_b, stats_c, stats_d } }, TWO(refcount), TWO(spin), TWO(config), TWO(beside), TWO(heap), TWO(array),
	TWO(padded), TWO(readonly), TWO(halves), TWO(own), TWO(copy), TWO(once),
};

static void *run(void *work) { ((void (*)(void))work)(); return 0; }
static void end(int sig) { (void)sig; stop = 1; }

int main(int argc, char **argv)
{
	const struct kind *kind = 0;
	for (unsigned i = 0; argc == 3 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[1], kinds[i].name))
			kind = &kinds[i];
	if (!kind) {
		fprintf(stderr, "usage: lines KIND SECONDS\n");
		return 2;
	}
	for (;;) { // until both lie in one line
		block[0] = malloc(16);
		block[1] = malloc(16);
		if ((uintptr_t)block[0] / 64 == (uintptr_t)block[1] / 64)
			break;
		if (!malloc(16))
			return 1;
	}
	stats.a = config.setting = 1;
	signal(SIGALRM, end);
	alarm(atoi(argv[2]));
	pthread_t t[4];
	int n = 0;
	for (; n < 4 && kind->work[n]; n++)
		if (pthread_create(&t[n], 0, run, (void *)kind->work[n]))
			return 1;
	while (n > 0)
		pthread_join(t[--n], 0);
	printf("%ld\n", stats.a + guarded.value);
	printf("%ld rounds, %ld taken\n", found[0].rounds + found[1].rounds, found[0].taken + found[1].taken);
	return 0;
}
