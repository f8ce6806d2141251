/* A known chain of calls that ends in stop(): through the C library's qsort,
 * recursion, a frame of a size known at run time, an aligned frame; or through
 * a signal handler; or in a thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile int never = 0, three = 3;

NOINLINE void stop(void)
{
	kill(getpid(), SIGSTOP);
	while (!never)
		pause();
}

NOINLINE int leaf(int a)
{
	stop();
	return a + never;
}

NOINLINE int callback(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b + leaf(1) + never;
}

NOINLINE int sorted(int n)
{
	int v[] = { 5, 3, 4, n };
	qsort(v, 4, sizeof(v[0]), callback);
	return v[0] + never;
}

NOINLINE int recursive(int n)
{
	int r = n > 1 ? recursive(n - 1) : sorted(n);
	return r + never;
}

NOINLINE int dynamic(int n)
{
	char v[n + 64];
	memset(v, n, n + 64);
	__asm__ volatile("" : : "r"(v) : "memory");
	return recursive(n) + v[n];
}

NOINLINE int aligned(int n)
{
	double v[16] __attribute__((aligned(64)));
	for (int i = 0; i < 16; i++)
		v[i] = i * n;
	__asm__ volatile("" : : "r"(v) : "memory");
	return dynamic(n) + (int)v[n];
}

NOINLINE void handler(int sig)
{
	leaf(sig);
	never = never;
}

NOINLINE int interrupted(void)
{
	raise(SIGUSR1);
	return never;
}

NOINLINE void *work(void *p)
{
	leaf(1);
	never = never;
	return p;
}

int main(void)
{
#ifdef HANDLER
	struct sigaction a = { .sa_handler = handler };
#ifdef ALTSTACK
	stack_t s = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
	sigaltstack(&s, 0);
	a.sa_flags = SA_ONSTACK;
#endif
	sigaction(SIGUSR1, &a, 0);
	return interrupted() + never;
#elif defined(THREAD)
	pthread_t t;
	pthread_create(&t, 0, work, 0);
	pthread_join(t, 0);
	return 0;
#else
	return aligned(three) + never;
#endif
}
