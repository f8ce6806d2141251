// selfmod own|other: adds up a table by code that changes all the time, and checks the sums.
// own: the thread itself has its loop read one word again and again, and then all of them in
// turn, and says which share of the time it did the former. other: another thread changes by
// which of two instructions the loop reads.
#include "target.h"
#include <sys/mman.h>

static const unsigned char loop[] = {
	0x31, 0xc0,             //    xor eax, eax
	0xeb, 0x00,             // 1: jmp 2f or 3f
	0x48, 0x03, 0x07,       // 2: add rax, [rdi]
	0xeb, 0x03,             //    jmp 4f
	0x48, 0x03, 0x07,       // 3: add rax, [rdi]
	0x48, 0x83, 0xc7, 0x40, // 4: add rdi, 0 or 64
	0x48, 0xff, 0xce,       //    dec rsi
	0x75, 0xed,             //    jnz 1b
	0xc3,                   //    ret
};
enum { BRANCH = 3, STEP = 15, LINE = 8, FEW = 256, MANY = 16384 };

static volatile unsigned char *code;
static uint64_t table[MANY * LINE] __attribute__((aligned(64)));
static atomic_int stop;

static uint64_t sum(int n)
{
	uint64_t s = 0;

	for (int i = 0; i < n; i++)
		s += table[i * LINE];
	return s;
}

static void run(int n, uint64_t want)
{
	uint64_t got = ((uint64_t(*)(uint64_t *, long))code)(table, n);

	if (got != want)
		die("sum %lx, want %lx", got, want);
}

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void own(void)
{
	double same = 0, all = 0;

	while (!ended())
		for (int i = 0; i < 20; i++) {
			int step = i % 2 * 64;
			uint64_t want = step ? sum(FEW) : FEW * table[0];
			double start = cpu();

			code[STEP] = step;
			for (int j = 0; j < 2000; j++)
				run(FEW, want);
			double took = cpu() - start;
			all += took;
			check_work();
			same += step ? 0 : took;
		}
	printf("ok same=%f\n", same / all);
}

static void *patch(void *arg)
{
	for (uint64_t n = 0, next = now(); !stop; n++) {
		code[BRANCH] = n % 2 * 5;
		for (next += 30000; now() < next && !stop;)
			;
	}
	return 0;
}

static void other(void)
{
	uint64_t want = sum(MANY);
	long rounds = 0;
	pthread_t t = spawn(patch, 0);

	while (!ended())
		for (int i = 0; i < 20; i++, rounds++)
			run(MANY, want);
	stop = 1;
	pthread_join(t, 0);
	printf("ok rounds=%ld\n", rounds);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < MANY; i++)
		table[i * LINE] = i * 0x9e3779b97f4a7c15;
	code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		die("map code: %s", strerror(errno));
	memcpy((void *)code, loop, sizeof loop);
	begin();
	ready();
	if (argc > 1 && !strcmp(argv[1], "other"))
		other();
	else
		own();
}
