// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
//
// The traps of a watchpoint in the thread that it was armed for.
#pragma once

#include "record.h"

// ONE_COPY is longer than a trap takes, in ns: two of the kernel that follow within it are of one copy.
#define ONE_COPY 20000

// copied is a trap of the kernel's own access to what the slot watches, as it reads or writes memory for a system call:
// nine microseconds for each byte where it copies by these. That is no use and no reuse, but time that the thread
// has not without us: from trap to trap of one copy, and what a trap takes for the first.
static __always_inline void copied(struct thread *t, struct slot *slot, __u64 now)
{
	if (now - t->last_copy < ONE_COPY)
		t->spent += now - t->last_copy;
	else
		t->traps++;
	t->last_copy = now;
	slot->copied++;
}

// trap must return 1 for the thread's own accesses: kernels from 6.11 on ignore
// the event's limit if the program swallows the event. The kernel's are swallowed, so that they don't use the limit up.
//
// The use is stamped as late, the reuse as early as possible, so that the
// copies of stacks, whose cost varies, stay outside of the time between them.
static __always_inline int trap(struct bpf_perf_event_data *ctx, __u32 s)
{
	__u32 index;
	struct thread *t = current_thread(&index);
	struct group *g;
	struct slot *slot;
	struct trap *r;
	struct clock clock;
	__u64 began = bpf_ktime_get_ns();

	if (!t) {
		count(STAT_UNKNOWN);
		return 1;
	}
	slot = &t->slots[s];
	if (!USER_MODE(ctx)) {
		copied(t, slot, began);
		return 0;
	}
	t->trap_slot = s;
	// The other words of a half line are skipped up to the use, by the use's
	// own instruction at last: in one exception with the use, which counts.
	if (!half_line || !s || !slot->skip)
		t->traps++;
	if (slot->skip) {
		slot->skip--;
		return 1;
	}
	if (half_line && s && t->slots[0].state == SLOT_ARMED) {
		slot->state = SLOT_DONE; // not what was read ahead
		count(STAT_EXTRA_TRAPS);
		return 1;
	}
	switch (slot->state) {
	case SLOT_ARMED:
		r = reserve(ctx, t, index, s, TRAP_USE, began, t, index);
		// Whether there is a record is asked once: verifiers up to Linux
		// 6.1 take it for possibly null again when asked a second time.
		if (r) {
			spend(t, began);
			r->spent = t->spent;
			clock = read_clock(ctx, index);
			slot->use_clock = clock.value;
			submit(r, clock);
		}
		slot->use_time = bpf_ktime_get_ns();
		slot->state = SLOT_USED; // last: another thread may end it
		return 1;
	case SLOT_USED:
		clock = read_clock(ctx, index);
		if (!half_line)
			slot->n = 0;
		else if (s < 2) // the pair is watched on after the half line
			t->slots[0].n = 0;
		g = group_of(t);
		if (g)
			g->slots[s].n = 0;
		slot->state = SLOT_DONE;
		r = reserve(ctx, t, index, s, TRAP_REUSE, began, t, index);
		if (r)
			submit(r, clock);
		no_more_stacks(t, slot);
		spend(t, began);
		return 1;
	default:
		count(STAT_EXTRA_TRAPS);
		spend(t, began);
		return 1;
	}
}
