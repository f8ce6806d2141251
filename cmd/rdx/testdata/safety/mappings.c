// mappings COUNT: checksums until the end of input, with so many mappings more than usual and a
// name that would upset a terminal.
#include "target.h"
#include <sys/mman.h>

static atomic_int stop;

static void *worker(void *arg)
{
	while (!stop)
		check_work();
	return 0;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000;
	pthread_t t;

	begin();
	prctl(PR_SET_NAME, "e\x1b[31m\n\"' )x");
	/* Neighbours of other rights are not merged. */
	char *p = mmap(0, (size_t)count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	for (long i = 0; i < count; i += 2)
		if (mprotect(p + i * 4096, 4096, PROT_READ))
			die("mprotect");
	if (pthread_create(&t, 0, worker, 0))
		die("create thread");
	ready();
	while (!ended())
		usleep(1000);
	stop = 1;
	pthread_join(t, 0);
	printf("ok\n");
	return 0;
}
