// LRU stack distances in bins of an octave by the list with markers of Mattson
// et al. and Kim, Hill and Wood (1991): the peer of rdx exact --log2. It is only
// measured, by bench/exact, and no part of rdx.
//
// markers N reads N block numbers of 64 bits from standard input, and then for
// each further byte analyses them anew and prints a line: bytes of memory, first
// touches, and the distances of each bit length from 0 on.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OCTAVES 33
#define NONE UINT32_MAX
#define AHEAD 16 // touches whose place in the table is fetched ahead

struct node {
	uint64_t block;
	uint32_t newer, older; // neighbours on the stack
	uint32_t octave;       // bit length of its depth
};

// The table has a node's number and a part of its hash at once, so that most
// comparisons need not look at the node.
struct place {
	uint32_t node, tag;
};

static struct node *nodes;
static struct place *table;
static uint32_t held, room; // nodes
static uint64_t mask;       // places - 1
static uint32_t top, bottom;
// marker[k] is the node at depth 2^k, the first of octave k+1; NONE if there is
// none so deep.
static uint32_t marker[OCTAVES];
static uint64_t counts[OCTAVES], cold;

static uint64_t mix(uint64_t b)
{
	b *= 0x9e3779b97f4a7c15u;
	return b ^ b >> 32;
}

static void *check(void *p)
{
	if (!p) {
		perror("markers");
		exit(1);
	}
	return p;
}

static void enter(uint64_t h, uint32_t n)
{
	uint64_t i = h & mask;
	while (table[i].node != NONE)
		i = (i + 1) & mask;
	table[i] = (struct place){n, h >> 32};
}

static void grow(void)
{
	room *= 2;
	nodes = check(realloc(nodes, room * sizeof *nodes));
	free(table);
	mask = 2 * (uint64_t)room - 1;
	table = check(malloc((mask + 1) * sizeof *table));
	memset(table, 0xff, (mask + 1) * sizeof *table);
	for (uint32_t n = 0; n < held; n++)
		enter(mix(nodes[n].block), n);
}

static void start(void)
{
	held = 0;
	room = 512;
	grow();
	top = bottom = NONE;
	memset(marker, 0xff, sizeof marker);
	memset(counts, 0, sizeof counts);
	cold = 0;
}

// sink makes what lies above the markers below octave one deeper, each marker
// with it, as a node is about to come to the top.
static void sink(uint32_t octave)
{
	for (uint32_t k = 0; k < octave; k++) {
		uint32_t m = nodes[marker[k]].newer;
		marker[k] = m;
		nodes[m].octave = k + 1;
	}
}

static void push(uint32_t n)
{
	nodes[n].newer = NONE;
	nodes[n].older = top;
	nodes[n].octave = 0;
	nodes[top].newer = n;
	top = n;
}

static void touch(uint64_t b)
{
	if (top != NONE && nodes[top].block == b) {
		counts[0]++;
		return;
	}
	uint64_t h = mix(b), i = h & mask;
	uint32_t n;
	for (; (n = table[i].node) != NONE; i = (i + 1) & mask)
		if (table[i].tag == (uint32_t)(h >> 32) && nodes[n].block == b)
			break;
	if (n == NONE) {
		cold++;
		if (held == room)
			grow();
		n = held++;
		nodes[n].block = b;
		enter(h, n);
		if (top == NONE) {
			nodes[n].newer = nodes[n].older = NONE;
			nodes[n].octave = 0;
			top = bottom = n;
			return;
		}
		push(n);
		// n is above all others: the markers there are move, and the deepest node may be
		// the first of an octave.
		uint32_t k = 0;
		for (; k < OCTAVES && marker[k] != NONE; k++) {
			marker[k] = nodes[marker[k]].newer;
			nodes[marker[k]].octave = k + 1;
		}
		if (held == (1ull << k) + 1) {
			marker[k] = bottom;
			nodes[bottom].octave = k + 1;
		}
		return;
	}
	struct node *p = &nodes[n];
	uint32_t octave = p->octave;
	counts[octave]++;
	// The marker of its own octave is before it or on it.
	sink(octave);
	nodes[p->newer].older = p->older;
	if (p->older == NONE)
		bottom = p->newer;
	else
		nodes[p->older].newer = p->newer;
	push(n);
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoull(argv[1], 0, 10) : 0;
	uint64_t *blocks = check(malloc((n + AHEAD) * sizeof *blocks));
	if (fread(blocks, sizeof *blocks, n, stdin) != n) {
		fprintf(stderr, "markers: fewer than %zu blocks\n", n);
		return 1;
	}
	memset(blocks + n, 0, AHEAD * sizeof *blocks);
	while (getchar() != EOF) {
		start();
		for (size_t i = 0; i < n; i++) {
			__builtin_prefetch(&table[mix(blocks[i + AHEAD]) & mask]);
			touch(blocks[i]);
		}
		printf("%zu %llu", room * sizeof *nodes + (mask + 1) * sizeof *table, (unsigned long long)cold);
		for (int k = 0; k < OCTAVES; k++)
			printf(" %llu", (unsigned long long)counts[k]);
		printf("\n");
		fflush(stdout);
		free(nodes);
		free(table);
		nodes = 0;
		table = 0;
	}
	return 0;
}
