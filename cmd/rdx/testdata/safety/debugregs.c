// debugregs: watches four of its own variables with all debug registers of its
// only thread and checks that each store is seen.
#include "target.h"
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

static volatile uint64_t watched[4];

int main(void)
{
	int fd[4];
	uint64_t n = 0, count;

	begin();
	for (int i = 0; i < 4; i++) {
		struct perf_event_attr a = {
			.type = PERF_TYPE_BREAKPOINT, .size = sizeof(a),
			.bp_type = HW_BREAKPOINT_W, .bp_addr = (uintptr_t)&watched[i], .bp_len = 8,
			.exclude_kernel = 1, .exclude_hv = 1,
		};
		fd[i] = syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
		if (fd[i] < 0)
			die("open watchpoint %d: %s", i, strerror(errno));
	}
	ready();
	for (; !ended(); n++) {
		check_work();
		for (int i = 0; i < 4; i++)
			watched[i] = n;
	}
	for (int i = 0; i < 4; i++)
		if (read(fd[i], &count, sizeof(count)) != sizeof(count) || count != n)
			die("watchpoint %d: %ld hits of %ld", i, (long)count, (long)n);
	printf("ok hits=%ld\n", (long)n * 4);
	return 0;
}
