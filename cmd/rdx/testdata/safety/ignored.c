// ignored: waits in epoll_wait without a timeout while signals arrive that the
// program ignores, and that no other thread takes first. Says how often it was
// interrupted.
#include "target.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

static atomic_int stop;
static atomic_long interrupted, waits;
static int epoll, event;

static void *waiter(void *arg)
{
	struct epoll_event e;
	uint64_t v;

	while (!stop) {
		int r = epoll_wait(epoll, &e, 1, -1);
		waits++;
		if (r < 0 && errno == EINTR)
			interrupted++;
		else if (read(event, &v, sizeof(v)) != sizeof(v))
			die("read eventfd");
		check_work();
	}
	return 0;
}

// leave_to_main blocks these signals in the calling thread. They are sent to the
// process, not by the end of a child: that one's goes to the thread that made
// it, and where that thread has others to take, to either.
static void leave_to_main(void)
{
	sigset_t own;

	sigemptyset(&own);
	sigaddset(&own, SIGWINCH);
	sigaddset(&own, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &own, 0);
}

static void *bell(void *arg)
{
	uint64_t one = 1;

	leave_to_main();
	for (int i = 0; !stop; i++) {
		usleep(1000);
		if (write(event, &one, sizeof(one)) < 0)
			die("write eventfd");
		if (i % 2 == 0)
			kill(getpid(), i % 4 ? SIGWINCH : SIGCHLD);
	}
	if (write(event, &one, sizeof(one)) < 0)
		die("write eventfd");
	return 0;
}

static void *end(void *arg)
{
	pthread_t t = spawn(bell, 0);

	leave_to_main();
	while (!ended())
		usleep(1000);
	stop = 1;
	pthread_join(t, 0);
	return 0;
}

int main(void)
{
	struct epoll_event e = {EPOLLIN};

	begin();
	epoll = epoll_create1(0);
	event = eventfd(0, 0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e);
	pthread_t t = spawn(end, 0);
	ready();
	waiter(0); // in the main thread, which is offered signals first
	pthread_join(t, 0);
	printf("ok waits=%ld interrupted=%ld\n", (long)waits, (long)interrupted);
	return 0;
}
