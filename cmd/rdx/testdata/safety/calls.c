/* Does little but call and return. Each function ends right before the next begins. */
#include <stdlib.h>

#define BODY ".rept 15\nnop\n.endr\nret\n"
__asm__(".text\n.p2align 4\nfirst:\n.cfi_startproc\n" BODY ".cfi_endproc\n"
	".type first,@function\n.size first,16\n"
	"second:\n.cfi_startproc\n" BODY ".cfi_endproc\n"
	".type second,@function\n.size second,16\n");
void first(void);
void second(void);

int main(int argc, char **argv)
{
	extern long time(long *);
	for (long end = time(0) + (argc > 1 ? atoi(argv[1]) : 3); time(0) < end;) {
		for (int i = 0; i < 100000; i++) {
			first();
			second();
		}
	}
	return 0;
}
