// blocks: a kind of data for each allocator, each used in a function of its own,
// until the end of input.
#include "target.h"

enum { WORDS = 1 << 16 };
struct node { struct node *next; long v[7]; };

static volatile int stop;

#define FUNCTION static __attribute__((noinline, noclone))

// A wrapper: what counts is who calls it.
FUNCTION void *xmalloc(size_t n) { void *p = malloc(n); if (!p) die("malloc"); return p; }
FUNCTION struct node *make_list(void)
{
	struct node *head = 0;
	for (int i = 0; i < 20000; i++) {
		struct node *n = xmalloc(sizeof *n);
		memset(n, 0, sizeof *n);
		n->next = head;
		head = n;
	}
	return head;
}
FUNCTION long *make_cleared(void) { return calloc(WORDS, sizeof(long)); }
FUNCTION long *make_grown(void) { long *p = 0; for (int n = 1; n <= WORDS; n *= 2) p = realloc(p, n * sizeof *p); return p; }
FUNCTION long *make_aligned(void) { void *p; return posix_memalign(&p, 4096, WORDS * sizeof(long)) ? 0 : p; }

FUNCTION void use_list(struct node *h) { for (; h; h = h->next) h->v[3]++; }
FUNCTION void use_cleared(volatile long *p) { for (int i = 0; i < WORDS; i++) p[i]++; }
FUNCTION void use_grown(volatile long *p) { for (int i = 0; i < WORDS; i++) p[i]++; }
FUNCTION void use_aligned(volatile long *p) { for (int i = 0; i < WORDS; i++) p[i]++; }

static void *ender(void *arg)
{
	while (!ended())
		usleep(1000);
	stop = 1;
	return 0;
}

int main(void)
{
	pthread_t t;

	begin();
	pthread_create(&t, 0, ender, 0);
	ready();
	// Again and again: rdx may attach at any time.
	for (long n = 0; !stop; n++) {
		struct node *list = make_list(), *next;
		long *cleared = make_cleared(), *grown = make_grown(), *aligned = make_aligned();
		for (int i = 0; i < 1000 && !stop; i++) {
			use_list(list);
			use_cleared(cleared);
			use_grown(grown);
			use_aligned(aligned);
		}
		for (; list; list = next) {
			next = list->next;
			free(list);
		}
		free(cleared);
		free(grown);
		free(aligned);
	}
	printf("ok\n");
	return 0;
}
