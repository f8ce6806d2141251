// grow KIND N LIBRARY: has N threads, children, mappings or libraries, and works a little.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int go_on = 1;

static void *wait_there(void *arg)
{
	while (go_on)
		usleep(20000);
	return arg;
}

static void *nothing(void *arg) { return arg; }

static void work(double seconds)
{
	static volatile long words[1 << 16];
	clock_t end = clock() + seconds * CLOCKS_PER_SEC;
	while (clock() < end)
		for (int i = 0; i < 1 << 16; i++)
			words[i]++;
}

static void copy(const char *from, const char *to)
{
	char buffer[65536];
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	size_t n = fread(buffer, 1, sizeof buffer, in);
	fwrite(buffer, 1, n, out);
	fclose(in);
	fclose(out);
}

int main(int argc, char **argv)
{
	const char *kind = argv[1];
	int n = atoi(argv[2]);
	pthread_t *threads = calloc(n + 1, sizeof *threads);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	if (!strcmp(kind, "threads at once")) {
		for (int i = 0; i < n; i++)
			if (pthread_create(&threads[i], &small, wait_there, 0))
				return 2;
		work(.3);
		go_on = 0;
		for (int i = 0; i < n; i++)
			pthread_join(threads[i], 0);
	} else if (!strcmp(kind, "threads one after the other")) {
		for (int i = 0; i < n; i++) {
			if (pthread_create(&threads[0], &small, nothing, 0))
				return 2;
			pthread_join(threads[0], 0);
		}
	} else if (!strcmp(kind, "children")) {
		for (int i = 0; i < n; i++) {
			if (fork() == 0)
				_exit(0);
			wait(0);
		}
	} else if (!strcmp(kind, "mappings")) {
		for (int i = 0; i < n; i++)
			mmap(0, 4096, PROT_READ | (i & 1 ? PROT_EXEC : PROT_WRITE | PROT_EXEC), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	} else if (!strcmp(kind, "libraries")) {
		for (int i = 0; i < n; i++) {
			char name[4096];
			snprintf(name, sizeof name, "%s.%d", argv[3], i);
			copy(argv[3], name);
			if (!dlopen(name, RTLD_NOW))
				return 2;
			unlink(name);
		}
	}
	work(.5);
	return 0;
}
