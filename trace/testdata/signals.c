// 1000 signals, one store each to the counter that is named on standard output.
#include <signal.h>
#include <stdio.h>

static volatile long counter[8] __attribute__((aligned(64)));

static void handler(int sig) { counter[0] = sig; }

int main(void)
{
	signal(SIGUSR1, handler);
	for (int i = 0; i < 1000; i++) raise(SIGUSR1);
	printf("%p\n", (void*)counter);
	return 0;
}
