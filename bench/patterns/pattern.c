//go:build ignore

// pattern KIND N SECONDS walks memory in a way whose reuse times are known,
// for about SECONDS. It prints "ready" when it has set up its memory, and at the
// end on one line what it measured of itself: nanoseconds of CPU time an access,
// and how long its laps took (its stretches of 10^6 accesses, for random; per
// level, for two-level), as NAME=NS:ACCESSES:COUNT in bins of an eighth of an octave.
//
//   cyclic    N words, each touched once a lap, in a shuffled order
//   spaced    like cyclic, with a quarter of a microsecond of divisions after each
//   ordered   the same in the order of addresses, and with arithmetic between: how
//             fast it goes hardly depends on what is left in the caches
//   calls     like ordered, with ten system calls after each thousand
//   random    N words, uniformly at random
//   twolevel  10^4 words of a hot array, then 10^4 of a cyclic array of N, and so on
//   stream    every word once: N words of a small file mapped over and over
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HOT = 10000, STRETCH = 1000000 };

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static uint64_t state = 88172645463325252ull;
static inline uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

// ring makes each word point to another one, all n in one shuffled cycle.
static uint64_t **ring(size_t n)
{
	uint64_t **a = malloc(n * sizeof *a);
	size_t *order = malloc(n * sizeof *order);
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t j = next() % (i + 1), t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
	for (size_t i = 0; i < n; i++)
		a[order[i]] = (uint64_t *)&a[order[(i + 1) % n]];
	free(order);
	return a;
}

// chase follows a ring for n steps; the pointer stays in a register.
__attribute__((noinline)) static uint64_t *chase(uint64_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p = *(uint64_t *volatile *)p;
	return p;
}

enum { SPACE_NS = 250 };
static int divisions; // that take SPACE_NS on this machine

// space is chase with work between, which makes a lap long although the ring is
// small: what is left of it in the caches hardly matters.
__attribute__((noinline)) static uint64_t *space(uint64_t *p, size_t n)
{
	uint64_t x = 1ull << 40;
	for (size_t i = 0; i < n; i++) {
		p = *(uint64_t *volatile *)p;
		for (int k = 0; k < divisions; k++) {
			x = (1ull << 60) / (x | 1);
			__asm__ volatile("" : "+r"(x));
		}
	}
	return p;
}

// pace sets divisions by the fastest of some tries: processors differ in them by ten times.
static void pace(void)
{
	uint64_t **self = ring(1), *p = (uint64_t *)self;
	double best = 1e9;
	divisions = 1000;
	for (int i = 0; i < 20; i++) {
		double start = cpu();
		p = space(p, 200);
		double ns = cpu() - start;
		best = ns < best ? ns : best;
	}
	divisions = SPACE_NS / (best / 200 / divisions);
	free(self);
}

__attribute__((noinline)) static uint64_t touch(volatile uint64_t *a, size_t n, size_t steps)
{
	uint64_t sum = 0, s = state;
	for (size_t i = 0; i < steps; i++) {
		s ^= s << 13;
		s ^= s >> 7;
		s ^= s << 17;
		sum += a[(unsigned __int128)s * n >> 64];
	}
	state = s;
	return sum;
}

__attribute__((noinline)) static uint64_t scan(volatile uint64_t *a, size_t n)
{
	uint64_t x = 1;
	for (size_t i = 0; i < n; i++) {
		x += a[i];
		// Slow down, or the address space is used up in a second.
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	}
	return x;
}

static double ready(void)
{
	puts("ready");
	fflush(stdout);
	return cpu();
}

enum { BINS = 512 }; // eighths of an octave, from a nanosecond on

struct laps {
	double ns[BINS];
	uint64_t count[BINS];
};

static void lap(struct laps *l, double ns)
{
	int i = ns > 1 ? log2(ns) * 8 : 0;
	l->ns[i] += ns;
	l->count[i]++;
}

static void print(const char *name, const struct laps *l, uint64_t accesses)
{
	for (int i = 0; i < BINS; i++)
		if (l->count[i])
			printf(" %s=%.0f:%llu:%llu", name, l->ns[i] / l->count[i], (unsigned long long)accesses, (unsigned long long)l->count[i]);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: pattern cyclic|spaced|ordered|calls|random|twolevel|stream N SECONDS\n");
		return 2;
	}
	const char *kind = argv[1];
	size_t n = strtoull(argv[2], 0, 0);
	double seconds = atof(argv[3]), start, now, last;
	uint64_t accesses = 0, sink = 0, lap_accesses = n;
	static struct laps laps, far;

	if (!strcmp(kind, "cyclic") || !strcmp(kind, "spaced")) {
		pace();
		uint64_t *(*walk)(uint64_t *, size_t) = *kind == 'c' ? chase : space;
		uint64_t *p = (uint64_t *)ring(n);
		start = now = ready();
		do {
			last = now;
			p = walk(p, n);
			accesses += n;
			now = cpu();
			lap(&laps, now - last);
		} while (now - start < seconds * 1e9);
		sink = (uint64_t)p;
	} else if (!strcmp(kind, "ordered")) {
		uint64_t *a = calloc(n, 8);
		start = now = ready();
		do {
			last = now;
			sink += scan(a, n);
			accesses += n;
			now = cpu();
			lap(&laps, now - last);
		} while (now - start < seconds * 1e9);
	} else if (!strcmp(kind, "calls")) {
		uint64_t *a = calloc(n, 8);
		start = now = ready();
		do {
			last = now;
			for (size_t at = 0; at + 1000 <= n; at += 1000) {
				sink += scan(a + at, 1000);
				for (int i = 0; i < 10; i++)
					sink += access("/proc/self/none", R_OK);
			}
			accesses += n;
			now = cpu();
			lap(&laps, now - last);
		} while (now - start < seconds * 1e9);
	} else if (!strcmp(kind, "random")) {
		uint64_t *a = calloc(n, 8);
		for (size_t i = 0; i < n; i++)
			a[i] = i;
		lap_accesses = STRETCH;
		start = now = ready();
		do {
			last = now;
			sink += touch(a, n, STRETCH);
			accesses += STRETCH;
			now = cpu();
			lap(&laps, now - last);
		} while (now - start < seconds * 1e9);
	} else if (!strcmp(kind, "twolevel")) {
		uint64_t *hot = (uint64_t *)ring(HOT), *cold = (uint64_t *)ring(n);
		double in_hot = 0, t, far_start;
		lap_accesses = 2 * HOT;
		start = now = far_start = ready();
		do {
			last = now;
			hot = chase(hot, HOT);
			t = cpu();
			in_hot += t - now;
			cold = chase(cold, HOT);
			accesses += 2 * HOT;
			now = cpu();
			lap(&laps, now - last);
			if (accesses / 2 % n == 0) {
				lap(&far, now - far_start);
				far_start = now;
			}
		} while (now - start < seconds * 1e9);
		sink = (uint64_t)hot + (uint64_t)cold;
		printf("hot_ns=%.4f cold_ns=%.4f ", in_hot / (accesses / 2), (now - start - in_hot) / (accesses / 2));
	} else if (!strcmp(kind, "stream")) {
		size_t file = 1 << 24, bytes = n * 8 / file * file;
		int fd = memfd_create("stream", 0);
		char *base = mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (fd < 0 || ftruncate(fd, file) || base == MAP_FAILED)
			return 1;
		start = now = ready();
		for (size_t at = 0; at < bytes && now - start < seconds * 1e9; at += file, now = cpu()) {
			if (mmap(base + at, file, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
				return 1;
			sink += scan((uint64_t *)(base + at), file / 8);
			accesses += file / 8;
		}
	} else {
		return 2;
	}
	printf("accesses=%llu ns=%.4f sink=%llu", (unsigned long long)accesses, (now - start) / accesses, (unsigned long long)sink);
	print("lap", &laps, lap_accesses);
	print("far", &far, 2 * n);
	putchar('\n');
	return 0;
}
