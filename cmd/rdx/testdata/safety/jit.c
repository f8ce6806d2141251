// jit [NAME [ADDRESS [MAP]]]: walks a table by code in anonymous memory, at ADDRESS in hex or anywhere, until the end
// of input, and says how long the longest lap took. MAP says when it names the code in /tmp/perf-PID.map: at the start (the default), on
// SIGUSR1 (late), or never (none). The file is removed at the end if MAP is gone.
#include "target.h"
#include <sys/mman.h>

#ifdef __aarch64__
// mov x2,#0; 1: ldr x2,[x0,x2,lsl #3]; subs x1,x1,#1; b.ne 1b; mov x0,x2; ret
static const unsigned int code[] = { 0xd2800002, 0xf8627802, 0xf1000421, 0x54ffffc1, 0xaa0203e0, 0xd65f03c0 };
#else
// xor eax,eax; 1: mov rax,[rdi+rax*8]; dec rsi; jnz 1b; ret
static const unsigned char code[] = { 0x31, 0xc0, 0x48, 0x8b, 0x04, 0xc7, 0x48, 0xff, 0xce, 0x75, 0xf7, 0xc3 };
#endif

enum { N = 100003, STEPS = 100000 };

static char map[64];

static void name(void *p, const char *name)
{
	FILE *f = fopen(map, "w");

	if (!f)
		die("write perf map");
	fprintf(f, "%lx %zx %s\n", (unsigned long)p, sizeof code, name);
	fclose(f);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "walk", *when = argc > 3 ? argv[3] : "";
	uintptr_t at = argc > 2 ? strtoul(argv[2], 0, 16) : 0;
	sigset_t told;
	uint64_t longest = 0;
	long laps = 0;

	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	sigprocmask(SIG_BLOCK, &told, 0);
	begin();
	void *p = mmap((void *)at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	if (p == MAP_FAILED)
		die("map code");
	memcpy(p, code, sizeof code);
	__builtin___clear_cache(p, (char *)p + sizeof code);
	sprintf(map, "/tmp/perf-%d.map", getpid());
	int late = !strcmp(when, "late");
	if (!late && strcmp(when, "none"))
		name(p, what);
	uint64_t *t = malloc(N * sizeof *t);
	for (size_t i = 0; i < N; i++)
		t[i] = (i + 7919) % N;
	ready();
	for (uint64_t last = now(); !ended(); laps++) {
		((uint64_t(*)(uint64_t *, uint64_t))p)(t, STEPS);
		uint64_t took = now() - last;
		last += took;
		longest = took > longest ? took : longest;
		struct timespec none = { 0 };
		if (late && sigtimedwait(&told, 0, &none) == SIGUSR1) {
			late = 0;
			name(p, what);
		}
	}
	if (!strcmp(when, "gone"))
		unlink(map);
	printf("ok longest=%f laps=%ld\n", longest / 1e9, laps);
	return 0;
}
