//go:build ignore

// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
//
// on_sample decides, in the sampled thread and in interrupt context, whether a
// sample wins a watchpoint; only a winner is stopped. on_access0..5 do the same
// for sources that report the access they sampled, which is then the use, and
// pass it on. on_trap0..3 stamp the two traps of a watchpoint, the use and the
// reuse. on_other0..3 see what other threads do to the datum, on_cpu0..1 what those of
// a CPU do. Policy that needs
// an operand decoder or a file descriptor is left to user space.

#include "kernel.h"
#include "types.h"
#include "clock.h"
#include "record.h"
#include "sampling.h"
#include "traps.h"
#include "others.h"

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	__u32 index, s, signal;
	struct thread *t = tick(ctx, &index, &signal);

	if (!t)
		return 0;
	s = win(t, signal);
	if (s != DROPPED)
		hold(ctx, t, index, s, signal);
	return 0;
}

// on_stamp notes where the thread stands. Its events disable themselves after one
// tick, for which it must return 1, like trap.
SEC("perf_event")
int on_stamp(struct bpf_perf_event_data *ctx)
{
	static const int of[NUM_NEAR] = NEAR_REGS;
	__u32 index;
	struct thread *t = current_thread(&index);
	struct stamp *r;
	int i;

	if (!t) {
		count(STAT_UNKNOWN);
		return 1;
	}
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r) {
		count(STAT_RING_FULL);
		return 1;
	}
	r->kind = STAMP;
	r->index = index;
	r->tid = t->tid;
	r->holds = t->holds;
	r->traps = t->traps;
	r->pad = 0;
	r->ticks = t->ticks;
	r->spent = t->spent;
	r->regs = ctx->regs;
#pragma unroll
	for (i = 0; i < NUM_NEAR; i++)
		bpf_probe_read_user(r->near[i], NEAR_BYTES, (void *)((unsigned long *)&r->regs)[of[i]]);
	r->clock = read_clock(ctx, index).value;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 1;
}

// on_step stops a thread on hold that has been let go up to an instruction, where
// a breakpoint is, by the signal that held it: no other kind of stop is harmless
// should we die before it is taken. Its events disable themselves, for which it
// must return 1, like trap.
SEC("perf_event")
int on_step(struct bpf_perf_event_data *ctx)
{
	__u32 index;
	struct thread *t = current_thread(&index);

	if (!t || !t->hold) {
		count(STAT_UNKNOWN);
		return 1;
	}
	t->hold_ip = USER_IP(ctx); // it has come
	if (bpf_send_signal_thread(t->hold))
		count(STAT_SIGNAL_FAILED);
	return 1;
}

// An event does not say to its program which of several it is: one program for each, with its number.
#define PROGRAM(name, number, does)                       \
	SEC("perf_event")                                 \
	int name##number(struct bpf_perf_event_data *ctx) \
	{                                                 \
		return does(ctx, number);                 \
	}

// The events of a source.
PROGRAM(on_access, 0, access)
PROGRAM(on_access, 1, access)
PROGRAM(on_access, 2, access)
PROGRAM(on_access, 3, access)
PROGRAM(on_access, 4, access)
PROGRAM(on_access, 5, access)

// A thread's slots.
PROGRAM(on_trap, 0, trap)
PROGRAM(on_trap, 1, trap)
PROGRAM(on_trap, 2, trap)
PROGRAM(on_trap, 3, trap)

PROGRAM(on_other, 0, other)
PROGRAM(on_other, 1, other)
PROGRAM(on_other, 2, other)
PROGRAM(on_other, 3, other)
PROGRAM(on_cpu, 0, by_cpu)
PROGRAM(on_cpu, 1, by_cpu)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
