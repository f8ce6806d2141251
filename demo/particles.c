// particles is the program of docs/tutorial.md: it adds up the masses of a million particles, again and again.
// With -DARRAYS each field has an array of its own.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 1 << 20 };

#ifdef ARRAYS
static double mass[N];
#define MASS(i) mass[i]
#else
static struct particle {
	double x, y, z, vx, vy, vz, mass, charge;
} particles[N];
#define MASS(i) particles[i].mass
#endif

__attribute__((noipa)) static double total(void)
{
	double sum = 0;
	for (int i = 0; i < N; i++)
		sum += MASS(i);
	return sum;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	for (int i = 0; i < N; i++)
		MASS(i) = i % 7;
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	double sum = 0;
	for (int r = 0; r < rounds; r++)
		sum += total();
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.2f ms a round, sum %.0f\n", ((b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6) / rounds, sum);
	return 0;
}
