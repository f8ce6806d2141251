// clock: asks for the time, by code and data of the kernel's in its own memory, until the end of input.
#include "target.h"

int main(void)
{
	struct timespec t;
	long sum = 0;

	begin();
	ready();
	while (!ended())
		for (int i = 0; i < 20000; i++)
			clock_gettime(CLOCK_REALTIME, &t), sum += t.tv_nsec;
	printf("ok %ld\n", sum);
	return 0;
}
