/* Four threads each store to their own words a known number of times; the
   main thread tells where the words are. */
#include <pthread.h>
#include <stdio.h>

static volatile long words[4][8];

static void *work(void *arg)
{
	volatile long *w = arg;
	for (long i = 0; i < 200000; i++)
		w[i % 8] = i;
	return 0;
}

int main(void)
{
	pthread_t t[4];
	printf("%p\n", (void *)words);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, work, (void *)words[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	return 0;
}
