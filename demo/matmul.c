//go:build ignore

// matmul multiplies two matrices in the bad or the good loop order. The bad
// one walks b down its columns: between two uses of a word of b lies almost
// all of b. The good one walks along rows.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1024 };
static double a[N][N], b[N][N], c[N][N];

__attribute__((noinline)) static void bad(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			for (int k = 0; k < N; k++)
				c[i][j] += a[i][k] * b[k][j]; // bad: b by columns
}

__attribute__((noinline)) static void good(void)
{
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				c[i][j] += a[i][k] * b[k][j]; // good: b by rows
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	if (argc < 2 || (strcmp(argv[1], "bad") && strcmp(argv[1], "good"))) {
		fprintf(stderr, "usage: matmul bad|good [ROUNDS]\n");
		return 2;
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = i + j, b[i][j] = i - j;
	for (int r = 0; r < rounds; r++)
		argv[1][0] == 'b' ? bad() : good();
	printf("%g\n", c[N / 2][N / 3]);
	return 0;
}
