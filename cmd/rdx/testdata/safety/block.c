// block [masked]: threads that work and block by turns, each in another system
// call. None may be interrupted, come back early, or transfer only a part.
// masked: they block all signals, and one more thread works without a break.
#include "target.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <semaphore.h>

#define MS 1000000LL
#define WAIT (2 * MS)

static struct timespec wait_ts = {0, WAIT};
static atomic_int stop;
static atomic_long calls;

static struct timespec from_now(clockid_t clock, long ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ns;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

// A call that times out returns the errno it ended with, 0 if it simply
// returned. want is what it must be.
struct kind {
	const char *name;
	int (*call)(void);
	int want;
	int jiffies; // it waits by the coarse clock
};

static int err(long r) { return r < 0 ? errno : 0; }

static __thread int fd = -1, fd2 = -1;

static void timeout_socket(void)
{
	struct timeval tv = {0, WAIT / 1000};
	int s[2];

	if (fd >= 0)
		return;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		die("socketpair");
	fd = s[0], fd2 = s[1];
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
}

static int do_read(void) { char c; timeout_socket(); return err(read(fd, &c, 1)); }
static int do_recv(void) { char c; timeout_socket(); return err(recv(fd, &c, 1, 0)); }
static int do_recvmsg(void)
{
	struct msghdr m = {0};
	char c;
	struct iovec v = {&c, 1};

	m.msg_iov = &v, m.msg_iovlen = 1;
	timeout_socket();
	return err(recvmsg(fd, &m, 0));
}
static int do_accept(void)
{
	if (fd < 0) {
		struct timeval tv = {0, WAIT / 1000};
		struct sockaddr_un a = {AF_UNIX};

		snprintf(a.sun_path + 1, 100, "rdx-block-%d", getpid());
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (bind(fd, (void *)&a, sizeof(a)) || listen(fd, 1))
			die("listen");
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	}
	return err(accept(fd, 0, 0));
}
static int do_epoll(void)
{
	struct epoll_event e;

	if (fd < 0)
		fd = epoll_create1(0);
	return err(epoll_wait(fd, &e, 1, WAIT / MS));
}
static int do_epoll_pwait(void)
{
	struct epoll_event e;
	sigset_t none;

	sigemptyset(&none);
	if (fd < 0)
		fd = epoll_create1(0);
	return err(epoll_pwait(fd, &e, 1, WAIT / MS, &none));
}
static int do_nanosleep(void) { return err(nanosleep(&wait_ts, 0)); }
static int do_clock_nanosleep(void)
{
	struct timespec t = from_now(CLOCK_MONOTONIC, WAIT);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
}
static int do_futex(void)
{
	int word = 0;

	return err(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_ts, 0, 0));
}
static int do_cond(void)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec t = from_now(CLOCK_REALTIME, WAIT);
	int e;

	pthread_mutex_lock(&m);
	e = pthread_cond_timedwait(&c, &m, &t);
	pthread_mutex_unlock(&m);
	return e;
}
static int do_sem_timedwait(void)
{
	static sem_t s;
	struct timespec t = from_now(CLOCK_REALTIME, WAIT);

	return err(sem_timedwait(&s, &t));
}
static int do_poll(void) { struct pollfd p = {-1}; return err(poll(&p, 1, WAIT / MS)); }
static int do_ppoll(void) { struct pollfd p = {-1}; return err(ppoll(&p, 1, &wait_ts, 0)); }
static int do_select(void) { struct timeval t = {0, WAIT / 1000}; return err(select(0, 0, 0, 0, &t)); }
static int do_pselect(void) { return err(pselect(0, 0, 0, 0, &wait_ts, 0)); }
static int do_semtimedop(void)
{
	static int id;
	struct sembuf b = {0, -1, 0};

	if (!id) {
		id = semget(IPC_PRIVATE, 1, 0600);
		if (id < 0)
			die("semget");
	}
	int e = err(semtimedop(id, &b, 1, &wait_ts));
	if (stop)
		semctl(id, 0, IPC_RMID);
	return e;
}
static int do_sigtimedwait(void)
{
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	return err(sigtimedwait(&s, 0, &wait_ts));
}
static int do_timerfd(void)
{
	struct itimerspec t = {{0}, {0, WAIT}};
	uint64_t n;

	if (fd < 0)
		fd = timerfd_create(CLOCK_MONOTONIC, 0);
	timerfd_settime(fd, 0, &t, 0);
	return err(read(fd, &n, sizeof(n)));
}
static int do_mq(void)
{
	struct timespec t = from_now(CLOCK_REALTIME, WAIT);
	char buf[16];

	if (fd < 0) {
		struct mq_attr a = {0, 1, sizeof(buf)};
		char name[40];

		snprintf(name, sizeof(name), "/rdx-block-%d", getpid());
		fd = mq_open(name, O_CREAT | O_RDWR, 0600, &a);
		mq_unlink(name);
		if (fd < 0)
			die("mq_open: %s", strerror(errno));
	}
	return err(mq_timedreceive(fd, buf, sizeof(buf), 0, &t));
}

static const struct kind kinds[] = {
	{"read", do_read, EAGAIN, 1},
	{"recv", do_recv, EAGAIN, 1},
	{"recvmsg", do_recvmsg, EAGAIN, 1},
	{"accept", do_accept, EAGAIN, 1},
	{"epoll_wait", do_epoll, 0},
	{"epoll_pwait", do_epoll_pwait, 0},
	{"nanosleep", do_nanosleep, 0},
	{"clock_nanosleep", do_clock_nanosleep, 0},
	{"futex", do_futex, ETIMEDOUT},
	{"pthread_cond_timedwait", do_cond, ETIMEDOUT},
	{"sem_timedwait", do_sem_timedwait, ETIMEDOUT},
	{"poll", do_poll, 0},
	{"ppoll", do_ppoll, 0},
	{"select", do_select, 0},
	{"pselect", do_pselect, 0},
	{"semtimedop", do_semtimedop, EAGAIN},
	{"sigtimedwait", do_sigtimedwait, EAGAIN},
	{"timerfd", do_timerfd, 0},
	{"mq_timedreceive", do_mq, ETIMEDOUT},
};

static void *block(void *arg)
{
	const struct kind *k = arg;
	int early = 0;

	while (!stop) {
		check_work();
		uint64_t start = now();
		int e = k->call();
		int64_t took = now() - start;
		if (e != k->want)
			die("%s: %s, want %s", k->name, strerror(e), strerror(k->want));
		// Absolute times are taken before start. SO_RCVTIMEO is counted in jiffies, which
		// jump where the host was busy with others: a few may end sooner, without any tracer.
		if (took < WAIT - 100000 && (!k->jiffies || ++early > 3))
			die("%s: back after %lld ns, want %lld", k->name, (long long)took, WAIT);
		calls++;
	}
	return 0;
}

// Calls without a timeout, ended by a partner.
static int ping[2], pong[2], queue, sems;

static void *answer(void *arg)
{
	char c;
	struct { long type; char text[1]; } m;
	struct sembuf take = {0, -1, 0}, give = {1, 1, 0};

	for (;;) {
		if (read(ping[0], &c, 1) != 1)
			die("read ping: %s", strerror(errno));
		usleep(500);
		if (write(pong[1], &c, 1) != 1)
			die("write pong: %s", strerror(errno));
		if (msgrcv(queue, &m, 1, 1, 0) != 1)
			die("msgrcv: %s", strerror(errno));
		usleep(500);
		m.type = 2;
		if (msgsnd(queue, &m, 1, 0))
			die("msgsnd: %s", strerror(errno));
		if (semop(sems, &take, 1))
			die("semop: %s", strerror(errno));
		usleep(500);
		if (semop(sems, &give, 1))
			die("semop: %s", strerror(errno));
		check_work();
	}
	return 0;
}

static void *ask(void *arg)
{
	char c = 0;
	struct { long type; char text[1]; } m;
	struct sembuf give = {0, 1, 0}, take = {1, -1, 0};

	while (!stop) {
		check_work();
		if (write(ping[1], &c, 1) != 1 || read(pong[0], &c, 1) != 1)
			die("pipe: %s", strerror(errno));
		check_work();
		m.type = 1;
		if (msgsnd(queue, &m, 1, 0) || msgrcv(queue, &m, 1, 2, 0) != 1)
			die("message queue: %s", strerror(errno));
		check_work();
		if (semop(sems, &give, 1) || semop(sems, &take, 1))
			die("semaphore: %s", strerror(errno));
		calls += 3;
	}
	return 0;
}

// A transfer that waits half-way is over for good if it is interrupted: for
// each that was cut short.
static int bulk[2];
static atomic_long cut;

static void *drink(void *arg)
{
	static char buf[1 << 16];

	while (read(bulk[0], buf, sizeof(buf)) > 0)
		check_work();
	die("read bulk: %s", strerror(errno));
}

static void *compute(void *arg)
{
	while (!stop)
		check_work();
	return 0;
}

static void *pour(void *arg)
{
	static char buf[1 << 18];

	while (!stop) {
		check_work();
		for (ssize_t done = 0, n; done < sizeof(buf); done += n) {
			n = write(bulk[1], buf + done, sizeof(buf) - done);
			if (n < 0)
				die("write bulk: %s", strerror(errno));
			cut += n < sizeof(buf) - done;
		}
		calls++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	enum { N = sizeof(kinds) / sizeof(kinds[0]) };
	pthread_t threads[N + 2];
	sigset_t all;

	sigfillset(&all);
	if (argc > 1)
		pthread_sigmask(SIG_BLOCK, &all, 0);
	begin();
	queue = msgget(IPC_PRIVATE, 0600);
	sems = semget(IPC_PRIVATE, 2, 0600);
	if (pipe(ping) || pipe(pong) || pipe(bulk) || queue < 0 || sems < 0)
		die("prepare partners: %s", strerror(errno));
	for (int i = 0; i < N; i++)
		threads[i] = spawn(block, (void *)&kinds[i]);
	spawn(answer, 0);
	threads[N] = spawn(ask, 0);
	spawn(drink, 0);
	if (argc > 1)
		spawn(compute, 0);
	threads[N + 1] = spawn(pour, 0);
	ready();
	while (!ended())
		usleep(1000);
	stop = 1;
	for (int i = 0; i < N + 2; i++)
		pthread_join(threads[i], 0);
	msgctl(queue, IPC_RMID, 0);
	semctl(sems, 0, IPC_RMID);
	printf("ok calls=%ld cut=%ld\n", (long)calls, (long)cut);
	fflush(stdout);
	_exit(0);
}
