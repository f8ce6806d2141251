// churn: creates and ends threads, a few at a time, each of which works.
#include "target.h"

static void *once(void *arg)
{
	check_work();
	return 0;
}

int main(void)
{
	pthread_t t[4];
	long n = 0;

	begin();
	ready();
	for (; !ended(); n += 4) {
		for (int i = 0; i < 4; i++)
			t[i] = spawn(once, 0);
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], 0);
	}
	printf("ok threads=%ld\n", n);
	return 0;
}
