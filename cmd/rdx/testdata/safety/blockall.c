// blockall: blocks every signal and takes those it is sent through sigwaitinfo
// and a signalfd. Real-time signals: none lost, in order. Nothing but what was
// sent may be pending, ever.
#include "target.h"
#include <sys/signalfd.h>

static atomic_long taken;

static void *waiter(void *arg)
{
	sigset_t s;
	siginfo_t info;
	int next = 0;

	sigemptyset(&s);
	sigaddset(&s, SIGRTMIN);
	while (sigwaitinfo(&s, &info) == SIGRTMIN) {
		if (info.si_value.sival_int < 0)
			return 0;
		if (info.si_value.sival_int != next++)
			die("real-time signal %d, want %d", info.si_value.sival_int, next - 1);
		taken++;
		check_work();
	}
	die("sigwaitinfo: %s", strerror(errno));
}

static void *reader(void *arg)
{
	sigset_t s;
	struct signalfd_siginfo info;
	int next = 0;

	sigfillset(&s);
	sigdelset(&s, SIGRTMIN);
	int fd = signalfd(-1, &s, 0);
	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGRTMIN + 1)
			die("signal %d from nowhere", info.ssi_signo);
		if (info.ssi_int < 0)
			return 0;
		if (info.ssi_int != next++)
			die("real-time signal %d, want %d", info.ssi_int, next - 1);
		taken++;
		check_work();
	}
	die("read signalfd: %s", strerror(errno));
}

static void send_(int s, int v)
{
	union sigval value = {.sival_int = v};

	while (sigqueue(getpid(), s, value))
		if (errno != EAGAIN)
			die("sigqueue: %s", strerror(errno));
		else
			usleep(1000); // RLIMIT_SIGPENDING
}

int main(void)
{
	sigset_t all, pending;
	int i;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, 0);
	begin();
	pthread_t a = spawn(waiter, 0), b = spawn(reader, 0);
	ready();
	for (i = 0; !ended(); i++) {
		send_(SIGRTMIN, i);
		send_(SIGRTMIN + 1, i);
		check_work();
		sigpending(&pending);
		for (int s = 1; s < SIGRTMAX; s++)
			if (s != SIGRTMIN && s != SIGRTMIN + 1 && sigismember(&pending, s) == 1)
				die("signal %d pending from nowhere", s);
	}
	send_(SIGRTMIN, -1);
	send_(SIGRTMIN + 1, -1);
	pthread_join(a, 0);
	pthread_join(b, 0);
	if (taken != 2 * i)
		die("%ld signals taken, %d sent", (long)taken, 2 * i);
	printf("ok signals=%ld\n", (long)taken);
	return 0;
}
