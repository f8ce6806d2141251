// realtime: three threads send queued real-time signals to a working thread as
// fast as they can. None may be lost, each sender's stay in order.
#include "target.h"

enum { SENDERS = 3 };
static atomic_long handled[SENDERS], sent[SENDERS];
static atomic_int stop, wrong;
static pthread_t worker;

static void handler(int s, siginfo_t *info, void *context)
{
	int who = s - SIGRTMIN;

	if (info->si_value.sival_int != handled[who])
		wrong++;
	handled[who]++;
}

static void *sender(void *arg)
{
	int who = (intptr_t)arg;

	while (!stop) {
		union sigval v = {.sival_int = sent[who]};

		if (sent[who] - handled[who] > 100) {
			usleep(100);
			continue;
		}
		if (pthread_sigqueue(worker, SIGRTMIN + who, v) == 0)
			sent[who]++;
	}
	return 0;
}

int main(void)
{
	pthread_t t[SENDERS];
	struct sigaction a = {0};
	long all = 0;

	a.sa_sigaction = handler;
	a.sa_flags = SA_SIGINFO | SA_RESTART;
	worker = pthread_self();
	begin();
	for (intptr_t i = 0; i < SENDERS; i++) {
		sigaction(SIGRTMIN + i, &a, 0);
		t[i] = spawn(sender, (void *)i);
	}
	ready();
	while (!ended())
		check_work();
	stop = 1;
	for (int i = 0; i < SENDERS; i++)
		pthread_join(t[i], 0);
	uint64_t deadline = now() + 5000000000ULL;
	for (int i = 0; i < SENDERS; i++) {
		while (handled[i] != sent[i] && now() < deadline)
			;
		if (handled[i] != sent[i])
			die("sender %d: %ld signals sent, %ld handled", i, (long)sent[i], (long)handled[i]);
		all += sent[i];
	}
	if (wrong)
		die("%d signals out of order", wrong);
	printf("ok signals=%ld\n", all);
	return 0;
}
