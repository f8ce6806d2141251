// uffd: touches memory whose pages another of its threads provides, after some
// work of its own (userfaultfd). A tracer that reads such memory waits for
// that thread, and must not be what that thread waits for.
#include "target.h"
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { PAGES = 512 };
static char *area;
static int uffd;

static void *provider(void *arg)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct uffd_msg m;

	memset(page, 7, sizeof(page));
	while (read(uffd, &m, sizeof(m)) == sizeof(m)) {
		struct uffdio_copy c = {
			.dst = m.arg.pagefault.address & ~4095ULL, .src = (uintptr_t)page, .len = 4096,
		};
		check_work();
		if (ioctl(uffd, UFFDIO_COPY, &c) && errno != EEXIST)
			die("UFFDIO_COPY: %s", strerror(errno));
	}
	return 0;
}

int main(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	long n = 0;

	begin();
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	area = mmap(0, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register r = {{(uintptr_t)area, PAGES * 4096}, UFFDIO_REGISTER_MODE_MISSING};
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &r)) {
		printf("unsupported: %s\n", strerror(errno));
		return 0;
	}
	spawn(provider, 0);
	ready();
	for (; !ended(); n++) {
		for (int i = 0; i < PAGES; i++)
			for (volatile char *p = area + 4096 * i; p < area + 4096 * (i + 1); p += 64)
				if (*p != 7)
					die("page %d: %d", i, *p);
		madvise(area, PAGES * 4096, MADV_DONTNEED);
	}
	printf("ok rounds=%ld\n", n);
	fflush(stdout);
	_exit(0);
}
