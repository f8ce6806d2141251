// 100 000 stores of 8 bytes, to the array that is named on standard output.
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	volatile long* a = malloc(100000 * sizeof *a);
	for (long i = 0; i < 100000; i++) a[i] = i;
	printf("%p\n", (void*)a);
	return 0;
}
