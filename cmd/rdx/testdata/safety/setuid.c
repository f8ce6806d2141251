// setuid: executed with the set-user-ID bit; says as whom it runs. With an
// argument, executes that program instead once its input has ended.
#include "target.h"

int main(int argc, char **argv)
{
	begin();
	if (argc > 1) {
		ready();
		while (!ended())
			check_work();
		execl(argv[1], argv[1], (char *)0);
		die("exec %s: %s", argv[1], strerror(errno));
	}
	for (int i = 0; i < 1000; i++)
		check_work();
	printf("ok euid=%d\n", geteuid());
	return 0;
}
