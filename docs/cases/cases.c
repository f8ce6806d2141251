// cases CASE before|after SECONDS: runs one variant for so long and prints ns an item.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) { return clock() / (double)CLOCKS_PER_SEC; }
static uint64_t state = 88172645463325252u;
static uint64_t rnd(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
static volatile double keep;

enum { N = 1024, ITEMS = 1 << 20 };
static double *a, *b, *c;

__attribute__((noinline)) static void matmul_before(void) {
	for (int i = 0; i < N / 8; i++)
		for (int j = 0; j < N; j++) {
			double s = 0;
			for (int k = 0; k < N; k++)
				s += a[i * N + k] * b[k * N + j];
			c[i * N + j] = s;
		}
}
__attribute__((noinline)) static void matmul_after(void) {
	for (int i = 0; i < N / 8; i++)
		for (int k = 0; k < N; k++) {
			double s = a[i * N + k];
			for (int j = 0; j < N; j++)
				c[i * N + j] += s * b[k * N + j];
		}
}

struct particle { double x, y, z, vx, vy, vz, mass; char rest[72]; };
static struct particle *particles;
static double *masses;
__attribute__((noinline)) static void split_before(void) {
	double s = 0;
	for (long i = 0; i < ITEMS; i++)
		s += particles[i].mass;
	keep += s;
}
__attribute__((noinline)) static void split_after(void) {
	double s = 0;
	for (long i = 0; i < ITEMS; i++)
		s += masses[i];
	keep += s;
}

struct node { struct node *next; long key, value, pad[5]; };
static struct node *head;
__attribute__((noinline)) static void list(void) {
	long s = 0;
	for (struct node *n = head; n; n = n->next)
		s += n->value;
	keep += s;
}

__attribute__((noinline)) static void column_before(void) {
	double s = 0;
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			s += a[i * N + j];
	keep += s;
}
__attribute__((noinline)) static void column_after(void) {
	double s = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			s += a[i * N + j];
	keep += s;
}

static struct node **buckets;
static struct { long key, value; } *table;
__attribute__((noinline)) static void hash_before(void) {
	long s = 0;
	uint64_t x = 1;
	for (long i = 0; i < ITEMS; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		long key = x >> 44;
		for (struct node *n = buckets[key & (ITEMS / 4 - 1)]; n; n = n->next)
			if (n->key == key) {
				s += n->value;
				break;
			}
	}
	keep += s;
}
__attribute__((noinline)) static void hash_after(void) {
	long s = 0;
	uint64_t x = 1;
	for (long i = 0; i < ITEMS; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		long key = x >> 44;
		for (long k = key & (2 * ITEMS - 1); table[k].key; k = (k + 1) & (2 * ITEMS - 1))
			if (table[k].key == key + 1) {
				s += table[k].value;
				break;
			}
	}
	keep += s;
}

enum { LONG = 8 << 20 };
static float *u, *v;
#define VECTORS __attribute__((noinline, optimize("O3"))) // else its instructions take longer than its data
VECTORS static void scale(long from, long to) {
	for (long i = from; i < to; i++)
		u[i] = u[i] * 0.5f + v[i];
}

VECTORS static void offset(long from, long to) {
	for (long i = from; i < to; i++)
		v[i] = u[i] - v[i] * 0.25f;
}
static void fuse_before(void) {
	scale(0, LONG);
	offset(0, LONG);
}
static void fuse_after(void) {
	for (long i = 0; i < LONG; i += 2048) {
		scale(i, i + 2048);
		offset(i, i + 2048);
	}
}

// Two threads that count, each in counters of its own: in one line, or in lines of their own. The time of an item is that of rounds
// in which both were at work all along: on a machine with other work one of them has no processor now and then, and takes nothing.
enum { ROUND = 20000 };
struct counts { volatile long n[4]; };
static struct { struct counts c; char pad[256 - sizeof(struct counts)]; } apart[2] __attribute__((aligned(256)));
static struct counts together[2] __attribute__((aligned(64)));
static volatile struct { long n, pad[31]; } rounds[2] __attribute__((aligned(256)));
static volatile int over;
struct counting { pthread_t thread; int which, cpu; struct counts *counts; double both; };
__attribute__((noinline)) static void count(struct counts *c) {
	for (long i = 0; i < ROUND; i++) // a lookup's hits, its misses, and their sizes
		__atomic_fetch_add(&c->n[i & 1], 1, __ATOMIC_RELAXED), c->n[2 + (i & 1)] += i;
}
static double by(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
static int later(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }
static void *counts(void *arg) {
	struct counting *c = arg;
	static double times[2][1 << 16];
	double *t = times[c->which];
	long n = 0;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(c->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof set, &set);
	while (!over) {
		long other = rounds[!c->which].n;
		double begin = by(CLOCK_MONOTONIC), own = by(CLOCK_THREAD_CPUTIME_ID);
		count(c->counts);
		own = by(CLOCK_THREAD_CPUTIME_ID) - own;
		if (n < 1 << 16 && rounds[!c->which].n > other && own > 0.9 * (by(CLOCK_MONOTONIC) - begin))
			t[n++] = own;
		rounds[c->which].n++;
	}
	qsort(t, n, sizeof *t, later);
	c->both = n ? t[n / 2] * 1e9 / ROUND : 0;
	return NULL;
}
static double sharing(int after, double seconds) {
	struct counting all[2];
	cpu_set_t may;
	sched_getaffinity(0, sizeof may, &may);
	for (int i = 0, cpu = -1; i < 2; i++) {
		for (cpu++; cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &may);)
			cpu++;
		if (cpu == CPU_SETSIZE)
			return fprintf(stderr, "sharing takes two processors\n"), 0;
		all[i] = (struct counting){.which = i, .cpu = cpu, .counts = after ? &apart[i].c : &together[i]};
		pthread_create(&all[i].thread, NULL, counts, &all[i]);
	}
	usleep(seconds * 1e6);
	over = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(all[i].thread, NULL);
	return (all[0].both + all[1].both) / 2;
}

static void prepare(int after) {
	a = calloc(N * N, 8), b = calloc(N * N, 8), c = calloc(N * N, 8);
	particles = calloc(ITEMS, sizeof *particles), masses = calloc(ITEMS, 8);
	u = calloc(LONG, 4), v = calloc(LONG, 4);
	for (int i = 0; i < N * N; i++)
		a[i] = b[i] = i;
	for (long i = 0; i < LONG; i++)
		u[i] = v[i] = i;
	for (long i = 0; i < ITEMS; i++) // else all is the one zero page
		particles[i].mass = masses[i] = i;
	struct node *nodes = calloc(ITEMS, sizeof *nodes);
	long *order = malloc(ITEMS * sizeof *order);
	for (long i = 0; i < ITEMS; i++)
		order[i] = i;
	for (long i = ITEMS - 1; !after && i > 0; i--) {
		long j = rnd() % (i + 1), t = order[i];
		order[i] = order[j], order[j] = t;
	}
	for (long i = 0; i < ITEMS; i++) {
		nodes[order[i]].value = i;
		nodes[order[i]].next = i + 1 < ITEMS ? &nodes[order[i + 1]] : NULL;
	}
	head = &nodes[order[0]];
	buckets = calloc(ITEMS / 4, sizeof *buckets), table = calloc(2 * ITEMS, sizeof *table);
	struct node *chained = calloc(ITEMS, sizeof *chained);
	for (long i = 0; i < ITEMS; i++) {
		struct node *n = &chained[order[i]];
		*n = (struct node){.key = i, .value = i, .next = buckets[i & (ITEMS / 4 - 1)]};
		buckets[i & (ITEMS / 4 - 1)] = n;
		long k = i & (2 * ITEMS - 1);
		while (table[k].key)
			k = (k + 1) & (2 * ITEMS - 1);
		table[k].key = i + 1, table[k].value = i;
	}
}

int main(int argc, char **argv) {
	static const struct { const char *name; void (*before)(void), (*after)(void); double items; } all[] = {
		{"matmul", matmul_before, matmul_after, (double)N * N * N / 8}, {"split", split_before, split_after, ITEMS}, {"list", list, list, ITEMS},
		{"column", column_before, column_after, (double)N * N}, {"hash", hash_before, hash_after, ITEMS}, {"fuse", fuse_before, fuse_after, LONG},
	};
	if (argc != 4)
		return fprintf(stderr, "usage: cases CASE before|after SECONDS\n"), 2;
	int after = !strcmp(argv[2], "after");
	if (!strcmp(argv[1], "sharing"))
		return printf("%.3f\n", sharing(after, atof(argv[3]))), 0;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (strcmp(all[i].name, argv[1]))
			continue;
		prepare(after);
		void (*run)(void) = after ? all[i].after : all[i].before;
		run();
		double start = now(), spent;
		long times = 0;
		do
			run(), times++;
		while ((spent = now() - start) < atof(argv[3]));
		printf("%.3f\n", spent * 1e9 / times / all[i].items);
		return 0;
	}
	return fprintf(stderr, "no such case\n"), 2;
}
