// Goes round and round through 10,000 lines in an order that caches do not foresee, 640 KiB, and counts in one of 4,000 words at each.
// It never ends.
#include <stdint.h>
#include <stdio.h>

enum { LINES = 10000, WORDS = 4000, STEP = 7919 };

static struct line {
	_Alignas(64) struct line *volatile next;
} line[LINES];
static volatile uint64_t word[WORDS];

int main(void)
{
	for (int i = 0; i < LINES; i++)
		line[(uint64_t)i * STEP % LINES].next = &line[(uint64_t)(i + 1) * STEP % LINES];
	puts("ready");
	fflush(stdout);
	struct line *at = line;
	for (int i = 0;; i = i + 1 < WORDS ? i + 1 : 0) {
		at = at->next;
		word[i]++;
	}
}
