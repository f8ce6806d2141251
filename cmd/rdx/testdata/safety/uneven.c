// A tenth of the accesses take nearly all of the time.
//
// usage: uneven SECONDS
//
// In turns 30 reads in far, each of which waits for the one before, and 270 of one page in
// near, until the end. Far's are somewhere in 32 KB, the next of 64 MB each time, so that no cache has them.
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { FAR = 30, NEAR = 270, BITS = 23, WINDOW = 12 };
static volatile uint64_t wide[1 << BITS], page[512];
static atomic_int stop;

static __attribute__((noinline, noclone)) uint64_t far(uint64_t x, uint64_t from)
{
	for (int i = 0; i < FAR; i++)
		x = x * 6364136223846793005 + 1442695040888963407 + wide[from + (x >> (64 - WINDOW))];
	return x;
}

static __attribute__((noinline, noclone)) void near(void)
{
	for (int i = 0; i < NEAR; i++)
		(void)page[i];
}

static void end(int sig)
{
	(void)sig;
	atomic_store(&stop, 1);
}

int main(int argc, char **argv)
{
	uint64_t x = 1, from = 0;

	signal(SIGALRM, end);
	alarm(argc > 1 ? atoi(argv[1]) : 1);
	for (int i = 0; i < 1 << BITS; i += 512)
		wide[i] = 0; // or all are one page of the kernel's
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		x = far(x, from);
		from = (from + (1 << WINDOW)) % (1 << BITS);
		near();
	}
	return 0;
}
