// Forks without end: each process writes a byte, forks, and ends. It is over
// when nobody reads any more.
#include <unistd.h>

int main(void)
{
	do {
		if (write(1, ".", 1) != 1) return 1;
	} while (fork() == 0);
	return 0;
}
