// openmp: relaxes a grid by rows that OpenMP shares out, until the standard
// input ends, each time to the same sum.
#include "../safety/target.h"

#define N 512
static double grid[2][N][N];

static __attribute__((noinline)) double relax(void)
{
	double sum = 0;

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			grid[0][i][j] = grid[1][i][j] = (i * 31 + j * 17) % 64;
	for (int step = 0; step < 20; step++) {
		double (*from)[N] = grid[step & 1], (*to)[N] = grid[~step & 1];
#pragma omp parallel for
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				to[i][j] = (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]) / 4;
	}
#pragma omp parallel for reduction(+ : sum)
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			sum += (long)(grid[0][i][j] * 1024); // whole numbers: the same in any order
	return sum;
}

int main(void)
{
	double want = relax();
	long rounds = 0;

	ready();
	for (; !ended(); rounds++)
		if (relax() != want)
			die("another sum");
	printf("ok rounds=%ld\n", rounds);
	return 0;
}
