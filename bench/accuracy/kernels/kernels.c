// Plain kernels, each doing the same work ROUNDS times: kernels NAME ROUNDS
#include <emmintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long x = 88172645463325252UL;
static unsigned long rnd(void) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; return x; }
static volatile long sink;

typedef struct node { struct node *next, *left, *right; long key, v[4]; } node;

static long *shuffled(long n)
{
	long *p = malloc(8 * n);
	for (long i = 0; i < n; i++) p[i] = i;
	for (long i = n - 1; i > 0; i--) { long j = rnd() % (i + 1), t = p[i]; p[i] = p[j]; p[j] = t; }
	return p;
}

// list links n nodes of a line each in random order.
static node *list(long n)
{
	node *a = aligned_alloc(64, n * sizeof(node));
	long *p = shuffled(n);
	memset(a, 0, n * sizeof(node));
	for (long i = 0; i < n; i++) a[p[i]].next = &a[p[(i + 1) % n]];
	free(p);
	return a;
}

static node *chase(node *q, long n)
{
	long s = 0;
	for (long i = 0; i < n; i++) { q = *(node *volatile *)&q->next; s += *(volatile long *)&q->v[i & 3]; }
	sink += s;
	return q;
}

static void sweep(volatile long *a, long bytes, long step)
{
	long s = 0;
	for (long i = 0; i < bytes / 8; i += step / 8) s += a[i];
	sink += s;
}

static void multiply(volatile double *a, volatile double *b, volatile double *c, int n, int block)
{
	for (int i0 = 0; i0 < n; i0 += block) for (int j0 = 0; j0 < n; j0 += block) for (int k0 = 0; k0 < n; k0 += block)
		for (int i = i0; i < i0 + block; i++) for (int j = j0; j < j0 + block; j++) {
			double t = c[i * n + j];
			for (int k = k0; k < k0 + block; k++) t += a[i * n + k] * b[k * n + j];
			c[i * n + j] = t;
		}
}

// zeros is memory that is there: what was never written to is one page of zeros, and stays in the first cache.
static void *zeros(long n, long size)
{
	char *p = calloc(n, size);
	for (long i = 0; i < n * size; i += 4096) ((volatile char *)p)[i] = 0;
	return p;
}

static int less(const void *a, const void *b) { return (*(int *)a > *(int *)b) - (*(int *)a < *(int *)b); }

int main(int argc, char **argv)
{
	const char *name = argv[1];
	long rounds = atol(argv[2]), kib = 0, us = 0;
#define IS(of) !strcmp(name, of)
	if (sscanf(name, "set%ldk", &kib) == 1) { // a working set of so many KiB, one access a line
		volatile long *a = zeros(kib, 1024);
		long times = (64 << 10) / kib + 1; // 64 MiB a round
		for (long r = 0; r < rounds * times; r++) sweep(a, kib << 10, 64);
	} else if (sscanf(name, "phases%ldus", &us) == 1) { // so long in a small array, and so long in a list of 8 MiB
		volatile long *a = zeros(1, 16384);
		node *q = list(1 << 17);
		for (long r = 0; r < rounds; r++) for (long k = 0; k < 40000 / us; k++) {
			for (long i = 0; i < us / 2 + 1; i++) sweep(a, 16384, 8);
			q = chase(q, us * 20);
		}
	} else if (IS("sweep")) {
		volatile long *a = zeros(1 << 20, 8);
		for (long r = 0; r < rounds; r++) sweep(a, 8 << 20, 8);
	} else if (IS("stencil")) {
		long n = 1 << 20;
		volatile float *a = zeros(n, 4), *b = zeros(n, 4);
		for (long r = 0; r < rounds; r++) { for (long i = 1; i < n - 1; i++) b[i] = .25f * (a[i-1] + 2 * a[i] + a[i+1]); volatile float *t = a; a = b; b = t; }
	} else if (IS("records")) {
		struct { volatile float p[6]; } *a = zeros(400000, 24);
		for (long r = 0; r < rounds; r++) for (long i = 0; i < 400000; i++) a[i].p[0] += a[i].p[1] * .5f;
	} else if (IS("structures")) { // of 200 bytes, two fields of each
		struct { volatile long f[25]; } *a = zeros(40000, 200);
		for (long r = 0; r < 10 * rounds; r++) for (long i = 0; i < 40000; i++) a[i].f[3] += a[i].f[17];
	} else if (IS("list")) {
		node *q = list(1 << 17);
		for (long r = 0; r < 8 * rounds; r++) q = chase(q, 1 << 17);
	} else if (IS("column")) { // down the columns of a table of doubles
		long n = 1000;
		volatile double *a = zeros(n * n, 8);
		double s = 0;
		for (long r = 0; r < rounds; r++) for (long j = 0; j < n; j++) for (long i = 0; i < n; i++) s += a[i * n + j];
		sink = s;
	} else if (IS("pages")) { // one word of each page of 16 MiB, and a few near ones
		volatile long *a = zeros(4096, 4096), *b = zeros(64, 8);
		for (long r = 0; r < 100 * rounds; r++) for (long i = 0; i < 4096; i++) { a[i * 512] += i; for (int k = 0; k < 8; k++) b[k * 8]++; }
	} else if (IS("multiply") || IS("blocked")) {
		int n = 384;
		double *a = zeros(n * n, 8), *b = zeros(n * n, 8), *c = zeros(n * n, 8);
		for (long r = 0; r < rounds; r++) multiply(a, b, c, n, IS("blocked") ? 32 : n);
	} else if (IS("counters")) {
		long n = 1 << 20, s = 0;
		volatile long *h = zeros(n, 8);
		for (long r = 0; r < rounds * 200000; r++) { unsigned long e = rnd() >> 44; for (int w = 0; w < 20; w++) s += ((volatile long *)argv)[0] ^ w; h[e]++; }
		sink = s;
	} else if (IS("copy") || IS("repcopy") || IS("fill")) { // 3 MiB to and fro, by vectors or one instruction
		long n = 3 << 20;
		char *a = aligned_alloc(64, n), *b = aligned_alloc(64, n);
		memset(a, 1, n); memset(b, 2, n);
		for (long r = 0; r < 8 * rounds; r++) {
			if (IS("repcopy")) { void *d = b, *s = a; long c = n / 8; __asm__ volatile("rep movsq" : "+D"(d), "+S"(s), "+c"(c) : : "memory"); }
			else if (IS("copy")) for (long i = 0; i < n / 16; i++) _mm_store_si128((__m128i *)b + i, *((volatile __m128i *)a + i));
			else for (long i = 0; i < n / 16; i++) *((volatile __m128i *)a + i) = _mm_set1_epi8(r);
			char *t = a; a = b; b = t;
		}
	} else if (IS("chains")) { // a hash table of 200,000 nodes in chains of two on average, keys in random order
		long n = 200000, buckets = 1 << 17;
		node *a = aligned_alloc(64, n * sizeof(node)), **table = zeros(buckets, 8);
		long *keys = shuffled(n);
		for (long i = 0; i < n; i++) { node *e = &a[keys[i]]; e->key = i; node **b = &table[(unsigned long)i * 0x9e3779b97f4a7c15UL >> 47]; e->next = *b; *b = e; }
		for (long r = 0; r < rounds; r++) for (long i = 0; i < n; i++) {
			long k = rnd() % n;
			node *e = table[(unsigned long)k * 0x9e3779b97f4a7c15UL >> 47];
			while (e->key != k) e = e->next;
			sink += e->v[0];
		}
	} else if (IS("tree")) { // look-ups in a search tree of 100,000 random keys
		long n = 100000;
		node *a = aligned_alloc(64, n * sizeof(node));
		long *keys = shuffled(n);
		memset(a, 0, n * sizeof(node));
		for (long i = 0; i < n; i++) { node *q = a; a[i].key = keys[i]; if (i) for (;;) { node **to = keys[i] < q->key ? &q->left : &q->right; if (!*to) { *to = &a[i]; break; } q = *to; } }
		for (long r = 0; r < rounds; r++) for (long i = 0; i < n; i++) { long k = rnd() % n; node *q = a; while (q->key != k) q = k < q->key ? q->left : q->right; sink += q->v[1]; }
	} else if (IS("sort")) {
		int n = 300000, *a = malloc(4 * n);
		for (long r = 0; r < rounds; r++) { for (int i = 0; i < n; i++) a[i] = rnd(); qsort(a, n, 4, less); }
	} else if (IS("gather")) { // by an array of random indices, from 4 MiB
		long n = 1 << 19, s = 0;
		volatile long *p = shuffled(n), *a = zeros(n, 8);
		for (long r = 0; r < 4 * rounds; r++) for (long i = 0; i < n; i++) s += a[p[i]];
		sink = s;
	} else if (IS("turns")) { // two arrays of 300 KiB, one after the other
		volatile long *a = zeros(300, 1024), *b = zeros(300, 1024);
		for (long r = 0; r < 50 * rounds; r++) { sweep(a, 300 << 10, 8); sweep(b, 300 << 10, 8); }
	} else if (IS("ring")) { // what is put in is taken out 4,000 entries later
		long n = 1 << 13;
		volatile long *q = zeros(n, 64), head[2] = { 0, 0 };
		for (long r = 0; r < rounds * 500000; r++) { q[(head[0]++ & (n - 1)) * 8] = r; if (head[0] - head[1] > 4000) sink += q[(head[1]++ & (n - 1)) * 8]; }
	} else if (IS("never")) { // through 256 MiB
		volatile long *a = zeros(32 << 20, 8);
		for (long r = 0; r < rounds; r++) sweep(a, 256 << 20, 8);
	} else {
		fprintf(stderr, "kernels: no kernel %s\n", name);
		return 2;
	}
	printf("%ld\n", sink);
	return 0;
}
