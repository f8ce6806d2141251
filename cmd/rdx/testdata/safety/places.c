/* Touches, in functions of known names, data of known places: a static array, one
 * in a caller's frame, one that is zero at start, a small and a large heap block. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
#define WORDS 2000

uint64_t filled[WORDS] = { 1, 2, 3 };
static uint64_t empty[WORDS];
volatile uint64_t sum;
volatile int never;

#define WALK(name) NOINLINE void name(volatile uint64_t *v) { for (int k = 0; k < 20; k++) for (int i = 0; i < WORDS; i++) v[i] += i; }
WALK(walk_static)
WALK(walk_empty)
WALK(walk_stack)
WALK(walk_small)
WALK(walk_large)

NOINLINE void holder(void)
{
	uint64_t here[WORDS];
	memset(here, never, sizeof(here));
	walk_stack(here);
	sum += here[never];
}

NOINLINE uint64_t *small_block(void) { return calloc(1, WORDS * 8 + never); }
NOINLINE uint64_t *large_block(void) { return calloc(1, (8 << 20) + never); }

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 3;
	uint64_t *small = small_block(), *large = large_block();
	extern long time(long *);
	for (long end = time(0) + seconds; time(0) < end;) {
		walk_static(filled);
		walk_empty(empty);
		holder();
		walk_small(small);
		walk_large(large);
	}
	sum += small[3] + large[3] + empty[3];
	return 0;
}
