// signals SIGNAL...: handles the signals and is sent them by itself and by a
// second thread, under load. Each must be handled exactly as often as it was
// sent: the sender waits for the handler before it sends again.
#include "target.h"

static atomic_long handled[65], sent[65];
static atomic_int stop;
static int main_tid;
static int signals[8], n;

static void handler(int s, siginfo_t *info, void *context)
{
	if (info->si_code != SI_TKILL && info->si_code != SI_USER && info->si_code != SI_QUEUE)
		handled[0]++; // not one of ours
	handled[s]++;
}

// Sends to the main thread, which works, or the process.
static void *sender(void *arg)
{
	union sigval v = {0};

	for (int i = 0; !stop; i++) {
		int s = signals[i % n], e;

		long before = handled[s];
		sent[s]++;
		// By another thread and to a single thread, pending signals of a
		// kind may merge with the one that rdx sends: not SIGWINCH.
		if (i % 3 == 0 && s != SIGWINCH)
			e = syscall(SYS_tgkill, getpid(), main_tid, s);
		else if (i % 3 == 1)
			e = kill(getpid(), s);
		else
			e = sigqueue(getpid(), s, v);
		if (e)
			die("send signal %d: %s", s, strerror(errno));
		uint64_t deadline = now() + 5000000000ULL;
		while (handled[s] == before && now() < deadline)
			;
		if (handled[s] != before + 1)
			die("signal %d (way %d) sent once, handled %ld times", s, i % 3, (long)handled[s] - before);
		usleep(50);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction a = {0};

	a.sa_sigaction = handler;
	a.sa_flags = SA_SIGINFO | SA_RESTART;
	main_tid = gettid_();
	for (n = 0; n < argc - 1; n++) {
		signals[n] = atoi(argv[n + 1]);
		sigaction(signals[n], &a, 0);
	}
	begin();
	pthread_t t = spawn(sender, 0);
	ready();
	while (!ended())
		check_work();
	stop = 1;
	pthread_join(t, 0);
	// To the thread itself.
	for (int i = 0; i < 1000; i++) {
		int s = signals[i % n];
		long before = handled[s];
		sent[s]++;
		raise(s);
		if (handled[s] != before + 1)
			die("signal %d raised once, handled %ld times", s, (long)handled[s] - before);
	}
	long all = 0;
	for (int i = 0; i < n; i++) {
		int s = signals[i];
		if (handled[s] != sent[s])
			die("signal %d sent %ld times, handled %ld times", s, (long)sent[s], (long)handled[s]);
		all += sent[s];
	}
	if (handled[0])
		die("%ld signals from nowhere", (long)handled[0]);
	printf("ok signals=%ld\n", all);
	return 0;
}
