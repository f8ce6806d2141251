// A buffer that the kernel reads or writes for system calls.
//
// usage: kernelcopies KIND SECONDS
//
//   none   laps over the buffer
//   read   the same, and before each lap the kernel fills the buffer
//   send   a few laps, then the kernel takes the buffer two thousand times, which the program does not touch meanwhile
//
// It prints how long a lap takes, or the kernel at most for the two thousand, in ns of CPU time.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 1024, STATE = 25 };
static uint64_t buffer[WORDS] __attribute__((aligned(4096)));
static uint64_t state[STATE];

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static __attribute__((noinline)) void lap(void)
{
	for (int from = 0; from < WORDS; from += 8) {
		for (int i = 0; i < 8; i++)
			state[i] ^= buffer[from + i];
		for (int round = 0; round < 24; round++)
			for (int i = 0; i < STATE; i++)
				state[i] = state[i] * 3 + state[(i + 7) % STATE];
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	int read = !strcmp(argv[1], "read"), send = !strcmp(argv[1], "send");
	int fd = memfd_create("copies", MFD_CLOEXEC);
	if (fd < 0 || pwrite(fd, buffer, sizeof(buffer), 0) != sizeof(buffer))
		return 1;
	double begin = cpu(), end = begin + atof(argv[2]) * 1e9, most = 0;
	long laps = 0;
	for (double now = begin; now < end; now = cpu()) {
		if (read && pread(fd, buffer, sizeof(buffer), 0) != sizeof(buffer))
			return 1;
		lap();
		laps++;
		if (send && laps % 20 == 0) {
			double from = cpu();
			for (int i = 0; i < 2000; i++)
				if (pwrite(fd, buffer, sizeof(buffer), 0) != sizeof(buffer))
					return 1;
			from = cpu() - from;
			most = from > most ? from : most;
		}
	}
	printf("%.0f ns\n", send ? most : (cpu() - begin) / laps);
	return 0;
}
