/* Two threads store to the words of an array, one turn of them each in turn, and
   hand over by pipes or by a flag. The address of the words is printed. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TURNS = 80, PER_TURN = 300 };
static volatile long words[TURNS * PER_TURN];
static volatile long turn;
static int spin, to[2][2];

static void *work(void *arg)
{
	long me = (long)arg;
	char c = 0;
	for (long t = me; t < TURNS; t += 2) {
		if (spin)
			for (long n = 1; __atomic_load_n(&turn, __ATOMIC_ACQUIRE) != t; n++) {
				if (n % 1000 == 0) /* the other may be waiting for this CPU */
					sched_yield();
			}
		else if (t > 0 && read(to[me][0], &c, 1) != 1)
			return arg;
		for (long i = 0; i < PER_TURN; i++)
			words[t * PER_TURN + i] = i;
		if (spin)
			__atomic_store_n(&turn, t + 1, __ATOMIC_RELEASE);
		else if (write(to[!me][1], &c, 1) != 1)
			return arg;
	}
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t;
	spin = argc > 1 && strcmp(argv[1], "spin") == 0;
	if (pipe(to[0]) || pipe(to[1]))
		return 1;
	printf("%p\n", (void *)words);
	pthread_create(&t, 0, work, (void *)1);
	work((void *)0);
	pthread_join(t, 0);
	return 0;
}
