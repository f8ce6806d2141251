// verdict KERNEL BLOCKS SECONDS: runs a kernel on data of BLOCKS times what the first cache holds easily, for so long, and prints
// the ns of CPU time that an item takes. When its data are there it says so, on standard error. The instructions are the same
// whatever the size, and how they depend on each other: what an item takes more than with data in the first cache, it waits for
// memory.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) { return clock() / (double)CLOCKS_PER_SEC; }
static uint64_t state = 88172645463325252u;
static uint64_t rnd(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
static volatile double keep;

enum { B = 24, SMALL = 16 << 10 };
static double *a, *b, *c;
static long n;     // of rows, or items
static long pitch; // from one row to the next: 0 where all are the same, so that loops are as long as with large data

// One block of B x B after the other, as blocked multiplication has it; blocks are of rows of n.
__attribute__((noinline)) static long blocked(void)
{
	for (long ii = 0; ii < n; ii += B)
		for (long kk = 0; kk < n; kk += B)
			for (long jj = 0; jj < n; jj += B)
				for (long i = ii; i < ii + B; i++)
					for (long k = kk; k < kk + B; k++) {
						double s = a[i * n + k];
						for (long j = jj; j < jj + B; j++)
							c[i * n + j] += s * b[k * n + j];
					}
	return n * n * n;
}
__attribute__((noinline)) static long unblocked(void)
{
	long rows = n > 64 ? n / 64 : n;
	for (long i = 0; i < rows; i++)
		for (long j = 0; j < n; j++) {
			double s = 0;
			for (long k = 0; k < n; k++)
				s += a[i * pitch + k] * b[k * pitch + j];
			c[i * pitch + j] = s;
		}
	return rows * n * n;
}
__attribute__((noinline)) static long column(void)
{
	double s = 0;
	for (long j = 0; j < n; j++)
		for (long i = 0; i < n; i++)
			s += a[i * pitch + j];
	keep += s;
	return n * n;
}
struct node { struct node *next; long value, pad[6]; };
static struct node *head;
__attribute__((noinline)) static long list(void)
{
	long s = 0;
	for (struct node *x = head; x; x = x->next)
		s += x->value;
	keep += s;
	return n;
}
static uint32_t *table;
__attribute__((noinline)) static long lookups(void)
{
	uint64_t x = 88172645463325252u, s = 0;
	for (long i = 0; i < 1 << 16; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		s += table[(x >> 33) & (n - 1)];
	}
	keep += s;
	return 1 << 16;
}
__attribute__((noinline)) static long triad(void)
{
	for (long i = 0; i < n; i++)
		a[i] = b[i] + 0.5 * c[i];
	return n;
}
__attribute__((noinline)) static long compute(void)
{
	static uint64_t few[64];
	uint64_t x = 88172645463325252u;
	for (long i = 0; i < 1 << 18; i++)
		x = (x ^ x >> 29) * 6364136223846793005u + ++few[i & 63];
	keep += x;
	return 1 << 18;
}

static void matrices(long rows)
{
	n = rows;
	a = calloc(n * n, 8), b = calloc(n * n, 8), c = calloc(n * n, 8);
	for (long i = 0; i < n * n; i++)
		a[i] = b[i] = i % 7;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	long by = atol(argv[2]);
	double seconds = atof(argv[3]);
	long (*kernel)(void) = compute;
	if (!strcmp(argv[1], "blocked")) {
		matrices(B * by);
		kernel = blocked;
	} else if (!strcmp(argv[1], "unblocked")) {
		matrices(B * (by > 1 ? by : 43));
		pitch = by > 1 ? n : 0;
		kernel = unblocked;
	} else if (!strcmp(argv[1], "column")) { // rows are a power of two apart: its lines compete for few sets
		matrices(1024);
		pitch = by > 1 ? n : 0;
		kernel = column;
	} else if (!strcmp(argv[1], "triad")) {
		n = by * SMALL / 3 / 8;
		a = calloc(n, 8), b = calloc(n, 8), c = calloc(n, 8);
		for (long i = 0; i < n; i++)
			a[i] = b[i] = c[i] = i % 7;
		kernel = triad;
	} else if (!strcmp(argv[1], "list")) {
		n = by * SMALL / sizeof(struct node);
		struct node *all = calloc(n, sizeof *all);
		long *order = calloc(n, sizeof *order);
		for (long i = 0; i < n; i++)
			order[i] = i;
		for (long i = n - 1; i > 0; i--) {
			long k = rnd() % (i + 1), o = order[i];
			order[i] = order[k], order[k] = o;
		}
		for (long i = 0; i < n; i++) {
			all[order[i]].value = i;
			all[order[i]].next = i + 1 < n ? &all[order[i + 1]] : 0;
		}
		head = &all[order[0]];
		kernel = list;
	} else if (!strcmp(argv[1], "lookups")) {
		n = by * SMALL / 4;
		table = calloc(n, 4);
		for (long i = 0; i < n; i++)
			table[i] = i;
		kernel = lookups;
	}
	kernel();
	fprintf(stderr, "ready\n");
	double start = now(), items = 0;
	while (now() - start < seconds)
		for (double upTo = items + 1e6; items < upTo;) // clock takes time, too
			items += kernel();
	printf("%.4f\n", (now() - start) * 1e9 / items);
	return 0;
}
