// A small word counter: threads that count words of a text into a table of their own, shared counters beside.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, TEXT = 1 << 22, TABLE = 1 << 16 };
static unsigned char text[TEXT];
static struct { uint64_t key, n; } table[THREADS][TABLE];
static struct { uint64_t words; } totals[THREADS]; // side by side in one line: falsely shared
static uint64_t shared_table[TABLE];               // written by all
static volatile int stop;

__attribute__((noinline)) static void count(int me, uint64_t h)
{
	unsigned i = h % TABLE;
	for (int k = 0; k < 8 && table[me][i].key && table[me][i].key != h; k++)
		i = (i + 1) % TABLE;
	table[me][i].key = h;
	table[me][i].n++;
}

__attribute__((noinline)) static void publish(int me, uint64_t h)
{
	totals[me].words++;
	__atomic_fetch_add(&shared_table[h % 512], 1, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
	int me = (int)(intptr_t)arg;
	while (!stop) {
		uint64_t h = 14695981039346656037u;
		for (int i = me; i < TEXT; i++) {
			if (text[i] == ' ') {
				count(me, h);
				publish(me, h);
				h = 14695981039346656037u;
			} else
				h = (h ^ text[i]) * 1099511628211u;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 5;
	pthread_t t[THREADS];
	for (int i = 0; i < TEXT; i++)
		text[i] = rand() % 6 ? 'a' + rand() % 16 : ' ';
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, work, (void *)i);
	struct timespec ts = {seconds, 0};
	nanosleep(&ts, 0);
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], 0);
	printf("%lu\n", totals[0].words);
	return 0;
}
