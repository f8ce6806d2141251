// What the test targets share: work whose result is known, and a way to be
// ended. A target says "ready", works until its standard input ends, and then
// says what it saw; its exit code is 0 only if all was right.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TABLE 4096 // words: 32 KiB

// work returns the same sum every time, about half a millisecond later. It
// keeps state in general and vector registers, on the stack and in memory, and
// copies with string instructions.
static __attribute__((noinline)) uint64_t work(void)
{
	uint64_t table[TABLE], x = 88172645463325252ULL, sum = 0;
	double f = 1;

	for (int i = 0; i < TABLE; i++)
		table[i] = i;
	for (int i = 0; i < 60000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		table[x % TABLE] += x;
		sum += table[(x >> 32) % TABLE];
		f = f * 1.0000001 + (double)(x & 0xff);
	}
	memmove(table + 1, table, sizeof(table) - sizeof(table[0]));
	for (int i = 0; i < TABLE; i++)
		sum = sum * 31 + table[i];
	return sum + (uint64_t)f;
}

static uint64_t expected;

static _Noreturn void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("BAD ");
	vprintf(format, args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

static void check_work(void)
{
	uint64_t sum = work();

	if (sum != expected)
		die("sum %llx, want %llx", (unsigned long long)sum, (unsigned long long)expected);
}

// begin learns the sum while nobody watches yet.
static void begin(void)
{
	expected = work();
	if (work() != expected)
		die("sum not repeatable");
}

static inline void ready(void)
{
	puts("ready");
	fflush(stdout);
}

// ended says whether the standard input has.
static inline int ended(void)
{
	struct pollfd p = {0, POLLIN, 0};
	char c;

	if (poll(&p, 1, 0) != 1)
		return 0;
	return read(0, &c, 1) <= 0;
}

static inline uint64_t now(void) // ns
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static inline pthread_t spawn(void *(*f)(void *), void *arg)
{
	pthread_t t;
	int e = pthread_create(&t, 0, f, arg);

	if (e)
		die("create thread: %s", strerror(e));
	return t;
}

static inline int gettid_(void) { return syscall(SYS_gettid); }
