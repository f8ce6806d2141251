// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
//
// Which ticks become samples, and how the thread is held then.
#pragma once

#include "record.h"

static __u64 window_start, window_holds;

// hold_signal picks the signal that holds the thread, 0 if none will do: by
// default it is ignored, should we die before we can take it away.
//
// A blocked signal would surface at a time of the target's choosing; a pending
// one would swallow ours, or ours a later one of the target's own. A target
// that handles both (Go's runtime handles all signals) is held by SIGWINCH:
// nobody but us sends that to a single thread.
static __always_inline __u32 hold_signal(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct sighand_struct *sighand = 0;
	unsigned long blocked = 0, pending = 0;
	void *handler = 0;

	bpf_core_read(&blocked, sizeof(blocked), &task->blocked.sig[0]);
	bpf_core_read(&pending, sizeof(pending), &task->pending.signal.sig[0]);
	bpf_core_read(&sighand, sizeof(sighand), &task->sighand);
	bpf_core_read(&handler, sizeof(handler), &sighand->action[SIGURG - 1].sa.sa_handler);
	blocked |= pending;
	if ((unsigned long)handler <= 1 && !(blocked >> (SIGURG - 1) & 1))
		return SIGURG;
	if (!(blocked >> (SIGWINCH - 1) & 1))
		return SIGWINCH;
	return 0;
}

// HOLD_INTERRUPT is no signal: the thread blocks them, and user space stops it
// by PTRACE_INTERRUPT.
#define HOLD_INTERRUPT 65

// waits is how often the thread has given up its CPU of its own accord.
static __always_inline __u64 waits(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	unsigned long n = 0;

	bpf_core_read(&n, sizeof(n), &task->nvcsw);
	return n;
}

// A thread is calm that has not waited for so long, as far as its ticks show.
#define CALM_NS 10000000

static __always_inline int is_calm(struct thread *t)
{
	__u64 n = waits(), now = bpf_ktime_get_ns();

	if (n != t->waits || !t->waits_time) {
		t->waits = n;
		t->waits_time = now;
	}
	return now - t->waits_time >= CALM_NS;
}

// hold_by is the signal, or HOLD_INTERRUPT, that can hold the thread, 0 if nothing
// may. An interrupt comes some time after the tick, and a thread that waits in a
// system call by then may be harmed: only those are held by it that are calm.
static __always_inline __u32 hold_by(struct thread *t)
{
	__u32 signal = hold_signal();

	if (!signal && interrupts && is_calm(t))
		signal = HOLD_INTERRUPT;
	if (!signal)
		t->unheld++;
	return signal;
}

// over_limit is a backstop against a storm of holds, not the budget: that is
// kept by user space through accept. CPUs may race for the count; the outcome
// is still a limit, and atomics that return a value need Linux 5.12.
static __always_inline int over_limit(__u64 now)
{
	if (now - window_start > 1000000000ULL) {
		window_start = now;
		window_holds = 0;
	}
	return window_holds++ >= hold_limit;
}

// win lets a sample through: to the slot it has won, with NO_SLOT to be read
// ahead of alone, or, DROPPED, not at all. The signal is hold_by's.
static __always_inline __u32 win(struct thread *t, __u32 signal)
{
	struct group *g;
	__u64 *n;
	__u32 s;

	if (bpf_get_prandom_u32() > accept)
		return DROPPED;
	count(STAT_CANDIDATES);
	if (t->hold) {
		count(STAT_HOLD_PENDING);
		return DROPPED;
	}
	if (!signal) {
		count(interrupts ? STAT_WAITS : STAT_SIGNAL_BLOCKED);
		return DROPPED;
	}

	// A slot is picked without looking at what it watches, and given to the
	// n-th candidate since it was last free with probability 1/n: how long a
	// datum is watched then does not depend on the datum.
	g = group_of(t);
	if (g) {
		s = bpf_get_prandom_u32() % (g->num ?: 1);
		n = &g->slots[s & (MAX_SLOTS - 1)].n;
	} else {
		s = half_line ? 0 : bpf_get_prandom_u32() % num_slots;
		n = &t->slots[s & (MAX_SLOTS - 1)].n;
	}
	t->hold_drawn = s;
	(*n)++;
	if (*n > 1 && ((__u64)bpf_get_prandom_u32() * *n) >> 32) {
		count(STAT_LOSERS);
		if (!hold_losers)
			return DROPPED;
		s = NO_SLOT;
	}
	if (over_limit(bpf_ktime_get_ns())) {
		count(STAT_THROTTLED);
		return DROPPED;
	}
	return s;
}

// request asks user space for something that can't wait until the ring is read
// next; 0 if that can't be done.
static __always_inline int request(enum trap_kind kind, struct thread *t, __u32 index)
{
	struct trap *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r) {
		count(STAT_RING_FULL);
		return 0;
	}
	r->kind = kind;
	r->index = index;
	r->tid = t->tid;
	r->slot = 0;
	r->time = bpf_ktime_get_ns();
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	return 1;
}

// hold stops the thread before its next user instruction, or has it stopped as
// soon as may be.
static __always_inline int hold(struct bpf_perf_event_data *ctx, struct thread *t, __u32 index, __u32 s, __u32 signal)
{
	t->hold = signal;
	t->hold_slot = s;
	t->hold_cpu = bpf_get_smp_processor_id();
	t->hold_ip = USER_IP(ctx);
	t->hold_time = bpf_ktime_get_ns();
	if (signal == HOLD_INTERRUPT) {
		if (!request(REQUEST_HOLD, t, index)) {
			t->hold = 0;
			return 0;
		}
		count(STAT_INTERRUPTS);
	} else if (bpf_send_signal_thread(signal)) {
		t->hold = 0;
		count(STAT_SIGNAL_FAILED);
		return 0;
	}
	count(STAT_HOLDS);
	return 1;
}

// A timer keeps its first period until user space sets another. The ticks that
// come up to then are passed over, and so is a first one that is late, as the
// thread was in the kernel at its time: it had its chance.
enum { FIRST_NONE, FIRST_DUE, FIRST_TICKED };

// A tick comes up to this late where nothing is wrong, and up to four times as
// late on a machine that is slow to deliver its timers, in ns.
#define TICK_LATENCY 50000

// in_kernel_before says whether the timer came round before, in the kernel: it
// then comes again at a multiple of its period. What the machine made late
// comes at any time.
static __always_inline int in_kernel_before(struct bpf_perf_event_data *ctx)
{
	struct bpf_perf_event_value v = {};
	__u64 period = ctx->sample_period, late;

	if (!period || bpf_perf_prog_read_value(ctx, &v, sizeof(v)) || v.enabled < 2 * period)
		return 0;
	late = v.enabled - period;
	return late >= 4 * TICK_LATENCY && late % period < TICK_LATENCY;
}

static __always_inline int passed_over(struct bpf_perf_event_data *ctx, struct thread *t, __u32 index)
{
	int late;

	if (t->first == FIRST_TICKED) {
		count(STAT_FIRST_AGAIN);
		return 1;
	}
	late = in_kernel_before(ctx);
	if (request(REQUEST_PERIOD, t, index))
		t->first = FIRST_TICKED;
	if (late)
		count(STAT_FIRST_LATE);
	return late;
}

// tick finds the thread that was sampled, and what can hold it, and accounts for
// the tick.
static __always_inline struct thread *tick(struct bpf_perf_event_data *ctx, __u32 *index, __u32 *signal)
{
	struct thread *t = current_thread(index);

	if (!t) {
		count(STAT_UNKNOWN);
		return 0;
	}
	if (t->first && passed_over(ctx, t, *index))
		return 0;
	count(STAT_TICKS);
	t->ticks++;
	t->sampled += ctx->sample_period;
	*signal = hold_by(t);
	// What the thread does next it does with its watchpoints off.
	if (STEPPING(ctx)) {
		count(STAT_STEPPING);
		return 0;
	}
	return t;
}

// What a source reports of the access it sampled.
struct memory {
	__u64 addr;
	__u64 data_src;
	__u32 latency;
};

// The top half of the address space is the kernel's.
#define IS_USER(addr) ((__s64)(addr) > 0)

#define PERF_MEM_OP_LOAD 2
#define PERF_MEM_OP_STORE 4

// sampled_memory says whether the sample is of a user-mode access whose
// address is known. Where the kernel lets the program see all of the sample
// (from Linux 6.2), it also knows what is left unset: on the kernels before 6.3
// an address that the processor did not report reads as whatever was there.
static __always_inline int sampled_memory(struct bpf_perf_event_data *ctx, struct memory *m)
{
	struct perf_sample_data *data = 0;
	__u64 flags = ~0ULL;

	m->addr = ctx->addr;
	if (bpf_cast_to_kern_ctx) {
		struct bpf_perf_event_data_kern *kern = bpf_cast_to_kern_ctx(ctx);

		bpf_core_read(&data, sizeof(data), &kern->data);
		bpf_core_read(&m->data_src, sizeof(m->data_src), &data->data_src.val);
		bpf_core_read(&m->latency, sizeof(m->latency), &data->weight.full);
		bpf_core_read(&flags, sizeof(flags), &data->sample_flags);
		if (!(flags & PERF_SAMPLE_DATA_SRC))
			m->data_src = 0;
		if (!(flags & PERF_SAMPLE_WEIGHT_TYPE))
			m->latency = 0;
		if (!(flags & PERF_SAMPLE_ADDR))
			m->addr = 0;
	}
	if (!m->addr) {
		count(m->data_src & (PERF_MEM_OP_LOAD | PERF_MEM_OP_STORE) ? STAT_NO_ADDRESS : STAT_NO_MEMORY);
		return 0;
	}
	if (!IS_USER(m->addr)) {
		count(STAT_IN_KERNEL);
		return 0;
	}
	return 1;
}

// access is a sample that says which access it is of. Those of operations
// without one are dropped before they count as candidates. The access is done;
// the watchpoint that it may win waits for the reuse alone.
static __always_inline int access(struct bpf_perf_event_data *ctx, __u32 event)
{
	struct memory m = {};
	__u32 index, s = 0, signal = 0;
	struct thread *t = tick(ctx, &index, &signal);
	struct trap *r;

	if (!t)
		return 0;
	if (!USER_MODE(ctx)) {
		count(STAT_IN_KERNEL);
		return 0;
	}
	if (!sampled_memory(ctx, &m))
		return 0;
	if (!report_only) {
		s = win(t, signal);
		if (s >= NO_SLOT) // nothing is read ahead of an access that is over
			return 0;
	}
	r = reserve(ctx, t, index, s & (MAX_SLOTS - 1), TRAP_SAMPLE, bpf_ktime_get_ns(), t, index);
	if (!r)
		return 0;
	r->addr = m.addr;
	r->data_src = m.data_src;
	r->latency = m.latency;
	r->event = event;
	if (report_only || hold(ctx, t, index, s, signal))
		submit(r, read_clock(ctx, index));
	else
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
	return 0;
}
