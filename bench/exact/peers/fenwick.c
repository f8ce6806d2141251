// LRU stack distances and reuse times by a bitmap over the times of last touches, with its words' bits added up in a
// Fenwick tree (after Bennett and Kruskal, 1975, and Olken, 1981), as such analysers are usually written: the peer of rdx's exact
// analysis of full resolution. It is only measured, by bench/exact, and no part of rdx.
//
// It is used as markers.c is, and prints the same.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OCTAVES 33
#define AHEAD 16	  // touches whose place in the table is fetched ahead
#define LEAST (1u << 16) // positions
#define SPREAD 8	  // positions a block, or as many as there were

struct place {
	uint64_t block;
	uint32_t position, time; // 1 and above; position 0 if the place is free
};

static struct place *table;
static uint32_t held;
static uint64_t mask;	    // places - 1
static uint64_t *bits;	    // by position
static uint32_t *tree;	    // of the bits of words
static uint32_t next, room; // positions
static uint64_t counts[OCTAVES], cold;
uint64_t times; // added up; not static, or it would be left out

static uint64_t mix(uint64_t b)
{
	b *= 0x9e3779b97f4a7c15u;
	return b ^ b >> 32;
}

static void *zeros(size_t n, size_t size)
{
	void *p = calloc(n, size);
	if (!p) {
		perror("fenwick");
		exit(1);
	}
	return p;
}

static struct place *find(uint64_t b)
{
	uint64_t i = mix(b) & mask;
	while (table[i].position && table[i].block != b)
		i = (i + 1) & mask;
	return &table[i];
}

static void grow(void)
{
	struct place *old = table;
	uint64_t n = mask + 1;
	mask = 2 * n - 1;
	table = zeros(mask + 1, sizeof *table);
	for (uint64_t i = 0; i < n; i++)
		if (old[i].position)
			*find(old[i].block) = old[i];
	free(old);
}

static void add(uint32_t word, uint32_t n)
{
	for (uint32_t i = word + 1; i <= room / 64; i += i & -i)
		tree[i] += n;
}

// upto is how many bits the words up to this one have.
static uint32_t upto(uint32_t word)
{
	uint32_t n = 0;
	for (uint32_t i = word + 1; i; i &= i - 1)
		n += tree[i];
	return n;
}

// together moves the positions that are in use together, as there is no further one.
static void together(void)
{
	uint32_t words = room / 64, n = 0;
	uint32_t *below = zeros(words, sizeof *below);
	for (uint32_t w = 0; w < words; w++) {
		below[w] = n;
		n += __builtin_popcountll(bits[w]);
	}
	for (uint64_t i = 0; i <= mask; i++) {
		uint32_t p = table[i].position;
		if (p)
			table[i].position = below[p / 64] + __builtin_popcountll(bits[p / 64] << (63 - p % 64));
	}
	free(below);
	free(bits);
	free(tree);
	room = held * SPREAD > LEAST ? (held * SPREAD + 63) / 64 * 64 : LEAST;
	bits = zeros(room / 64, sizeof *bits);
	tree = zeros(room / 64 + 1, sizeof *tree);
	for (next = 1; next <= n; next++)
		bits[next / 64] |= 1ull << next % 64;
	for (uint32_t i = 1; i <= room / 64; i++) {
		tree[i] += __builtin_popcountll(bits[i - 1]);
		if (i + (i & -i) <= room / 64)
			tree[i + (i & -i)] += tree[i];
	}
}

static void touch(uint64_t b, uint32_t now)
{
	struct place *x = find(b);
	uint32_t p = x->position;
	if (p) {
		uint32_t w = p / 64;
		uint64_t word = bits[w];
		uint64_t d = held - upto(w) + __builtin_popcountll(word >> p % 64 >> 1);
		counts[d ? 64 - __builtin_clzll(d) : 0]++;
		times += now - x->time;
		bits[w] = word & ~(1ull << p % 64);
		add(w, -1);
	} else {
		cold++;
		x->block = b;
		held++;
	}
	x->position = next;
	x->time = now;
	bits[next / 64] |= 1ull << next % 64;
	add(next / 64, 1);
	if (++next == room)
		together();
	if (held > (mask + 1) / 2)
		grow();
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoull(argv[1], 0, 10) : 0;
	uint64_t *blocks = zeros(n + AHEAD, sizeof *blocks);
	if (fread(blocks, sizeof *blocks, n, stdin) != n) {
		fprintf(stderr, "fenwick: fewer than %zu blocks\n", n);
		return 1;
	}
	while (getchar() != EOF) {
		memset(counts, 0, sizeof counts);
		cold = times = held = 0;
		mask = 1023;
		table = zeros(mask + 1, sizeof *table);
		room = LEAST;
		next = 1;
		bits = zeros(room / 64, sizeof *bits);
		tree = zeros(room / 64 + 1, sizeof *tree);
		for (size_t i = 0; i < n; i++) {
			__builtin_prefetch(&table[mix(blocks[i + AHEAD]) & mask]);
			touch(blocks[i], i);
		}
		printf("%zu %llu", (mask + 1) * sizeof *table + room / 8 + room / 16, (unsigned long long)cold);
		for (int k = 0; k < OCTAVES; k++)
			printf(" %llu", (unsigned long long)counts[k]);
		printf("\n");
		fflush(stdout);
		free(table);
		free(bits);
		free(tree);
	}
	return 0;
}
