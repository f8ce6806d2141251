// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
//
// Records of the ring.
#pragma once

#include "clock.h"

// send_stack sends the registers and the stack, and returns how many bytes of
// that, or a negative errno.
static __always_inline __s32 send_stack(struct bpf_perf_event_data *ctx, struct thread *t, __u32 index, __u32 s,
					__u32 seq)
{
	__u32 zero = 0, n;
	struct stack *b = bpf_map_lookup_elem(&stack_buffer, &zero);
	__u64 sp = USER_SP(ctx), want = t->stack_top - sp;
	long err;

	if (!b)
		return -1;
	b->head.kind = TRAP_STACK;
	b->head.index = index;
	b->head.slot = s;
	b->head.seq = seq;
	b->head.regs = ctx->regs;
	for (n = 0; n < MAX_STACK && n < want; n += STACK_PIECE)
		if (bpf_probe_read_user(b->data + n, STACK_PIECE, (void *)(sp + n)))
			break;
	if (n > MAX_STACK)
		return -1; // for the verifier
	err = bpf_ringbuf_output(&ring, b, sizeof(b->head) + n, BPF_RB_NO_WAKEUP);
	if (!n || err) {
		count(STAT_STACK_LOST);
		return err ?: -14; // EFAULT
	}
	return n;
}

// reserve fills in all of a record but its clock: of an access by thread actor,
// number from, to what slot s of thread t watches.
static __always_inline struct trap *reserve(struct bpf_perf_event_data *ctx, struct thread *t, __u32 index, __u32 s,
					    enum trap_kind kind, __u64 now, struct thread *actor, __u32 from)
{
	__s32 stack_bytes = 0;
	struct trap *r;

	// The stack of a reported access is taken when the thread is held.
	if (kind != TRAP_SAMPLE && t->slots[s].stacks >> kind & 1)
		stack_bytes = send_stack(ctx, actor, from, s, t->slots[s].seq);
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r) {
		count(STAT_RING_FULL);
		return 0;
	}
	r->kind = kind;
	r->index = index;
	r->tid = actor->tid;
	r->slot = s;
	r->seq = t->slots[s].seq;
	r->traps = t->traps;
	r->holds = t->holds;
	r->ip = USER_IP(ctx);
	r->time = now;
	r->wall = now - t->slots[s].use_time;
	r->addr = ctx->addr;
	r->clock = 0;
	r->clock_lag = 0;
	r->from = from;
	r->data_src = 0;
	r->latency = r->event = r->pad = 0;
	r->spent = t->spent;
	r->stack_bytes = stack_bytes;
	return r;
}

// Nobody waits for a trap: the reader polls, the target pays no wakeup.
static __always_inline void submit(struct trap *r, struct clock clock)
{
	r->clock = clock.value;
	r->clock_lag = clock.lag;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

// spend adds the time since a moment in a trap's program to what the programs
// took of the thread's time.
static __always_inline void spend(struct thread *t, __u64 since)
{
	t->spent += bpf_ktime_get_ns() - since;
}

// no_more_stacks ends the copying of stacks: only those of the use and of the
// first reuse are of use, and each costs the thread tens of microseconds.
static __always_inline void no_more_stacks(struct thread *t, struct slot *slot)
{
	__u32 i;

	slot->stacks = 0;
	if (half_line)
		for (i = 0; i < MAX_SLOTS; i++)
			t->slots[i].stacks = 0;
}
