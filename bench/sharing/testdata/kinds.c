// Threads that take lines from each other, or do not, each in a way of its own.
//
// usage: kinds KIND SECONDS, or with -DORDERED kinds KIND PROCESSORS
//
// Compiled with -DORDERED the threads are coroutines, as fast as each other, on so many processors by turns: then it is known of
// every access whether another thread wrote its line since the own last access. How many were made, how many found
// it so, and how many of these a word that the thread touches itself is printed. Every access in a loop goes through
// macros for that.
//
// Else threads that wait for each other count themselves, by the values that they see, what they touch and find gone, and that
// is printed: how long they spin depends on who else has the processors.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { TABLE = 4096, THREADS = 8, BUFFER = 64, RING = 32, RESULTS = 512 };
#define ALIGNED __attribute__((aligned(64)))
typedef volatile long word;
struct line { word w[8]; } ALIGNED;
static struct line lines[4096], padded[2 * THREADS], shared, other, big[BUFFER], ring[RING], head, tail, results[RESULTS / 8];
static word table[THREADS][TABLE] ALIGNED;
static word *block[2];
static const long constants[TABLE] = {1, 2, 3};
static word stop ALIGNED; // in a line of its own
struct me { long i, rounds, seen, data, touches, taken; int t; };
static struct { long touches, taken; } sums[THREADS];

#ifdef ORDERED
static void touch(volatile void *p, int store, int yields);
#define GET(x) ({ touch(&(x), 0, 1); (x); })
#define PUT(x, v) ({ long v_ = (v); touch(&(x), 1, 1); (x) = v_; })
#define INC(x) ({ touch(&(x), 0, 1); touch(&(x), 1, 0); (x)++; })
#define ADD(x, d) ({ touch(&(x), 0, 1); touch(&(x), 1, 0); long was_ = (x); (x) = was_ + (d); was_; })
#define CAS(x, from, to) ({ touch(&(x), 0, 1); touch(&(x), 1, 0); int is_ = (x) == (from); if (is_) (x) = (to); is_; })
#define NOTE(touched, gone) ((void)0)
#else
#define GET(x) (x)
#define PUT(x, v) ((x) = (v))
#define INC(x) ((x)++)
#define ADD(x, d) atomic_fetch_add((_Atomic long *)&(x), d)
#define CAS(x, from, to) ({ long e_ = (from); atomic_compare_exchange_strong((_Atomic long *)&(x), &e_, to); })
#define NOTE(touched, gone) (m.touches += (touched), m.taken += (gone))
#endif
// SEE notes a read of a word that changes whenever another thread writes it.
#define SEE(x, touched) ({ long v_ = GET(x); NOTE(touched, v_ != m.seen); m.seen = v_; v_; })
#define SUMS do { sums[t].touches = m.touches; sums[t].taken = m.taken; } while (0)

#define GO (m.rounds++, !GET(stop))
#define KIND(name) static __attribute__((noinline, noclone)) void name(int t)
#define BEGIN struct me m = {.i = t + 1, .t = t}

// WORK touches so many words of the thread's own table.
#define WORK(n) do { for (int k_ = (n); k_ > 0; k_--) { m.i = m.i * 1103515245 + 12345; INC(table[t][(m.i >> 8) & (TABLE - 1)]); } } while (0)

// Free running.
#define COUNTER(name, out, where) KIND(name) { BEGIN; while (GO) { WORK(out); INC(where); } }
COUNTER(bare_a, 0, shared.w[0])
COUNTER(bare_b, 0, shared.w[1])
COUNTER(near_a, 20, lines[m.i >> 9 & 63].w[0])
COUNTER(near_b, 20, lines[m.i >> 9 & 63].w[5])
COUNTER(same_a, 20, lines[m.i >> 9 & 63].w[3])
COUNTER(same_b, 20, lines[m.i >> 9 & 63].w[3])
COUNTER(far_a, 20, lines[m.rounds & 4095].w[0])
COUNTER(far_b, 20, lines[m.rounds & 4095].w[1])
COUNTER(stats_a, 10, shared.w[0])
COUNTER(stats_b, 10, shared.w[2])
COUNTER(stats_c, 10, shared.w[4])
COUNTER(stats_d, 10, shared.w[6])
COUNTER(heap_a, 5, *block[0])
COUNTER(heap_b, 5, *block[1])
COUNTER(uneven_a, 5, shared.w[0])
COUNTER(uneven_b, 200, shared.w[7])
COUNTER(array_a, 1, shared.w[0])
COUNTER(array_b, 1, shared.w[1])
KIND(beside_a) { BEGIN; while (GO) { WORK(10); m.i += GET(shared.w[0]); } }
COUNTER(beside_b, 10, shared.w[4])

// Reads what the other seldom writes.
KIND(config_a) { BEGIN; while (GO) { WORK(10); m.i += GET(shared.w[0]); } }
KIND(config_b) { BEGIN; while (GO) { WORK(200); INC(shared.w[0]); } }

// A reference is taken and given back. Above it is how often, by which each sees whether the other came in between.
#define OFTEN (1L << 20)
#define REFER(by) do { long v_ = ADD(shared.w[0], OFTEN + (by)) / OFTEN; NOTE(0, m.seen && v_ != m.seen); m.seen = v_ + 1; } while (0)
#define REFCOUNT(name, out) KIND(name) { BEGIN; while (GO) { NOTE(1 + 4 * (out) + 4, 0); REFER(1); WORK(out); REFER(-1); WORK(out); } SUMS; }
REFCOUNT(refcount_a, 15)
REFCOUNT(refcount_b, 15)
REFCOUNT(refhot_a, 2)
REFCOUNT(refhot_b, 2)

// A spin lock. What it guards is in its line, or in another. That another thread took it and gave it back since is seen by the data.
#define LOCK do { long gone_ = m.taken; for (;;) { \
	long v_ = SEE(shared.w[0], 1); \
	if (!v_) { int got_ = CAS(shared.w[0], 0, 1); NOTE(2, !got_); m.seen = 1; if (got_) break; } \
	__builtin_ia32_pause(); } gone = m.taken - gone_; } while (0)
#define UNLOCK do { PUT(shared.w[0], 0); m.seen = 0; NOTE(1, 0); } while (0)
#define SECTION(name, out, in, at, of, apart) KIND(name) { BEGIN; long gone; while (GO) { NOTE(1 + 2 * (out) + 2 * (in), 0); WORK(out); LOCK; \
	long d = GET(at(0)); PUT(at(0), d + 1); NOTE(0, d != m.data ? (apart) + !gone : 0); m.data = d + ((in) + (of) - 1) / (of); \
	for (int k = 1; k < in; k++) { INC(at(k)); } UNLOCK; } SUMS; }
#define INLINE(k) shared.w[1 + (k) % 7]
#define APART(k) other.w[(k) & 7]
SECTION(spin_a, 60, 3, INLINE, 7, 0)
SECTION(spin_b, 60, 3, INLINE, 7, 0)
SECTION(spindata_a, 40, 12, APART, 8, 1)
SECTION(spindata_b, 40, 12, APART, 8, 1)
SECTION(spinhot_a, 4, 20, APART, 8, 1)
SECTION(spinhot_b, 4, 20, APART, 8, 1)

// A ticket lock serves in order.
#define TICKETS(name) KIND(name) { BEGIN; long mine = -1, was; while (GO) { NOTE(1 + 40 + 2 + 12 + 1, 0); WORK(20); was = mine; mine = ADD(shared.w[0], 1); \
	while (SEE(head.w[0], 1) != mine) { __builtin_ia32_pause(); } NOTE(0, mine != was + 1 ? 2 : 0); \
	for (int k = 0; k < 6; k++) { INC(other.w[k]); } PUT(head.w[0], mine + 1); m.seen = mine + 1; } SUMS; }
TICKETS(ticket_a)
TICKETS(ticket_b)

// Strict turns: who has the turn works on what both share.
#define TURN(name, mine, of, out, n) KIND(name) { BEGIN; while (GO) { long v; while ((v = SEE(shared.w[0], 1)) % of != mine && !stop) { NOTE(1, 0); __builtin_ia32_pause(); } \
	NOTE(1 + 2 * (n) + 2 * (out) + 1, m.rounds > 1); for (int k = 0; k < n; k++) { INC(other.w[k & 7]); } WORK(out); PUT(shared.w[0], v + 1); m.seen = v + 1; } SUMS; }
TURN(turns_a, 0, 2, 20, 8)
TURN(turns_b, 1, 2, 20, 8)
TURN(turnslong_a, 0, 2, 500, 32)
TURN(turnslong_b, 1, 2, 500, 32)

// One fills a buffer, the other reads it.
#define AWAIT(good) while (!(good) && !stop) { NOTE(1, 0); __builtin_ia32_pause(); }
KIND(buffer_a) { BEGIN; while (GO) { AWAIT(SEE(shared.w[0], 1) == 0); NOTE(1 + 2 * BUFFER + 1 + 20, 0);
	for (int k = 0; k < BUFFER; k++) { PUT(big[k].w[0], m.i); PUT(big[k].w[1], m.i); } PUT(shared.w[0], 1); m.seen = 1; WORK(10); } SUMS; }
KIND(buffer_b) { BEGIN; while (GO) { AWAIT(SEE(shared.w[0], 1) == 1); NOTE(1 + 2 * BUFFER + 1 + 20, m.rounds > 1 ? BUFFER : 0);
	for (int k = 0; k < BUFFER; k++) { m.i += GET(big[k].w[0]); m.i += GET(big[k].w[1]); } PUT(shared.w[0], 0); m.seen = 0; WORK(10); } SUMS; }

// A ring of lines, filled by one and emptied by the other.
KIND(queue_a) { BEGIN; long at = 0; while (GO) { WORK(10); AWAIT(at - SEE(head.w[0], 1) < RING); NOTE(1 + 20 + 2, 0);
	PUT(ring[at % RING].w[0], m.i); at++; PUT(tail.w[0], at); } SUMS; }
KIND(queue_b) { BEGIN; long at = 0; while (GO) { WORK(10); AWAIT(at < SEE(tail.w[0], 1)); NOTE(1 + 20 + 2, at >= RING);
	m.i += GET(ring[at % RING].w[0]); at++; PUT(head.w[0], at); } SUMS; }

// Workers take the next job and note its result; eight results lie in a line.
#define POOL(name) KIND(name) { BEGIN; while (GO) { long j = ADD(shared.w[0], 1); WORK(30); PUT(results[j % RESULTS / 8].w[j & 7], m.i); } }
POOL(pool_a)
POOL(pool_b)
POOL(pool_c)
POOL(pool_d)

// Nothing shared that anybody writes.
COUNTER(padded_a, 5, padded[t].w[0])
COUNTER(padded_b, 5, padded[t].w[0])
COUNTER(own_a, 30, table[t][0])
COUNTER(own_b, 30, table[t][0])
COUNTER(halves_a, 0, lines[m.rounds & 2047].w[m.rounds >> 11 & 7])
COUNTER(halves_b, 0, lines[2048 + (m.rounds & 2047)].w[m.rounds >> 11 & 7])
KIND(readonly_a) { BEGIN; while (GO) { m.i = m.i * 1103515245 + 12345; m.i += GET(*(word *)&constants[m.i >> 9 & (TABLE - 1)]); } }
KIND(readonly_b) { BEGIN; while (GO) { m.i = m.i * 1103515245 + 12345; m.i += GET(*(word *)&constants[m.i >> 9 & (TABLE - 1)]); } }
KIND(once_a) { BEGIN; while (GO) { WORK(5); m.i += GET(other.w[0]); } }
KIND(once_b) { BEGIN; while (GO) { WORK(5); m.i += GET(other.w[1]); } }
#define OWNLOCK(name) KIND(name) { BEGIN; while (GO) { WORK(5); while (!CAS(padded[t].w[0], 0, 1)) ; INC(padded[t].w[1]); PUT(padded[t].w[0], 0); } }
OWNLOCK(ownlock_a)
OWNLOCK(ownlock_b)
#define OWNATOMIC(name) KIND(name) { BEGIN; while (GO) { WORK(3); ADD(padded[2 * t].w[0], 1); } }
OWNATOMIC(ownatomic_a)
OWNATOMIC(ownatomic_b)
#define COPIES(name) KIND(name) { BEGIN; char from[512], to[512]; memset(from, t, 512); while (GO) { memcpy(to, from, 512); *(volatile char *)to; from[m.rounds & 511]++; WORK(1); } }
COPIES(copies_a)
COPIES(copies_b)
#define ONSTACK(name) KIND(name) { BEGIN; word mine[64] = {0}; while (GO) { INC(mine[m.rounds & 63]); WORK(2); } }
ONSTACK(onstack_a)
ONSTACK(onstack_b)
#ifdef ORDERED
static struct line locals[THREADS][2];
#define local locals[t][m.rounds >> 3 & 1].w
#else
static __thread word local[16];
#endif
COUNTER(tls_a, 4, local[m.rounds & 7])
COUNTER(tls_b, 4, local[m.rounds & 7])
#define BLOCKS(name) KIND(name) { BEGIN; while (GO) { word *p = aligned_alloc(64, 64); WORK(10); p[0] = m.i; free((void *)p); } }
BLOCKS(blocks_a)
BLOCKS(blocks_b)
KIND(input_a) { BEGIN; while (GO) { long s = 0; for (int k = 0; k < 64; k++) s += GET(*(word *)&constants[k + (m.rounds & 63) * 64]); PUT(padded[t].w[m.rounds & 7], s); } }
KIND(input_b) { BEGIN; while (GO) { long s = 0; for (int k = 0; k < 64; k++) s += GET(*(word *)&constants[k + (m.rounds & 63) * 64]); PUT(padded[t].w[m.rounds & 7], s); } }

// Both have the same data, but never at once: they swap them ten times a second.
#ifdef ORDERED
#define PHASE (m.rounds >> 12)
#else
#define PHASE (__builtin_ia32_rdtsc() >> 28)
#endif
#define SWAP(name) KIND(name) { BEGIN; while (GO) { word *mine = table[(PHASE + t) & 1]; for (int k = 0; k < 20; k++) { m.i = m.i * 1103515245 + 12345; INC(mine[(m.i >> 8) & 255]); } } }
SWAP(swap_a)
SWAP(swap_b)

#define TWO(name) { #name, { name##_a, name##_b } }
#define FOUR(name) { #name, { name##_a, name##_b, name##_c, name##_d } }
static const struct kind { const char *name; void (*work[4])(int); } kinds[] = {
	TWO(bare), TWO(near), TWO(same), TWO(far), FOUR(stats), TWO(heap), TWO(uneven), TWO(array), TWO(beside),
	TWO(config), TWO(refcount), TWO(refhot), TWO(spin), TWO(spindata), TWO(spinhot), TWO(ticket), TWO(turns), TWO(turnslong), TWO(buffer), TWO(queue), FOUR(pool),
	TWO(padded), TWO(own), TWO(halves), TWO(readonly), TWO(once), TWO(ownlock), TWO(ownatomic), TWO(copies), TWO(onstack), TWO(tls), TWO(blocks), TWO(input), TWO(swap),
};

static const struct kind *kind;

#ifdef ORDERED
enum { SLICE = 20000, STACK = 1 << 16, SHADOWS = 1 << 18 };
static ucontext_t scheduler, threads[THREADS];
static int current, done[THREADS];
static long left = 1000000, touches, taken, truly;
static double clocks[THREADS]; // each access takes a time of its own, 1 on average
static uint64_t drawn = 1;
static struct shadow { uint8_t words[THREADS], gone[THREADS], by; } shadows[SHADOWS]; // words that each touches, what others wrote since

// touch lets a thread that is drawn go on, this one when it is drawn again, and notes the access.
static void touch(volatile void *p, int store, int yields)
{
	if (yields)
		swapcontext(&threads[current], &scheduler);
	struct shadow *s = &shadows[(uintptr_t)p / 64 % SHADOWS];
	int word = 1 << (uintptr_t)p / 8 % 8;
	touches++;
	if (s->words[current] && s->gone[current]) {
		taken++;
		truly += (s->gone[current] & s->words[current]) != 0;
	}
	s->words[current] |= word;
	s->gone[current] = 0;
	for (int k = 0; store && k < THREADS; k++)
		if (k != current)
			s->gone[k] |= word;
}

static int random_of(int n)
{
	drawn = drawn * 6364136223846793005 + 1442695040888963407;
	return (drawn >> 33) % n;
}

static void begin(int n)
{
	kind->work[n](n);
	done[n] = 1;
	swapcontext(&threads[n], &scheduler);
}

static void all(int n, int processors)
{
	for (int i = 0; i < n; i++) {
		getcontext(&threads[i]);
		threads[i].uc_stack.ss_sp = malloc(STACK);
		threads[i].uc_stack.ss_size = STACK;
		makecontext(&threads[i], (void (*)(void))begin, 1, i);
	}
	for (int at_work = n, from = 0; at_work > 0;) {
		if (left % SLICE == 0) { // others have the processors
			from = (from + 1) % n;
			for (int i = 0; i < n; i++)
				clocks[i] = random_of(SLICE) / 100.;
		}
		current = -1;
		for (int i = 0, k = from; i < (stop ? n : processors < n ? processors : n); i++, k = (k + 1) % n)
			if (!done[k] && (current < 0 || clocks[k] < clocks[current]))
				current = k;
		clocks[current] += 0.5 + random_of(1000) / 1000.;
		swapcontext(&scheduler, &threads[current]);
		at_work -= done[current];
		stop = --left < 0;
	}
	printf("%ld %ld %ld\n", touches, taken, truly);
}
#else
static void end(int sig) { (void)sig; stop = 1; }
static void *run(void *n) { kind->work[(intptr_t)n]((intptr_t)n); return 0; }

static void all(int n, int seconds)
{
	long touches = 0, taken = 0;
	signal(SIGALRM, end);
	alarm(seconds);
	pthread_t t[THREADS];
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], 0, run, (void *)(intptr_t)i))
			exit(1);
	for (int i = 0; i < n; i++) {
		pthread_join(t[i], 0);
		touches += sums[i].touches, taken += sums[i].taken;
	}
	if (touches)
		printf("%ld %ld\n", touches, taken);
}
#endif

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc == 3 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[1], kinds[i].name))
			kind = &kinds[i];
	if (!kind) {
		fprintf(stderr, "usage: kinds KIND SECONDS|PROCESSORS\n");
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
	int n = 0;
	while (n < 4 && kind->work[n])
		n++;
	all(n, atoi(argv[2]));
	return 0;
}
