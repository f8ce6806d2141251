// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
//
// What other threads do to a datum, by a watchpoint of their own or by the register of a CPU.
#pragma once

#include "record.h"

// blinded notes that what a slot of the group watches for its owner may be written
// unseen from its use on.
static __always_inline void blinded(struct slot *slot, __u32 m, __u32 s)
{
	slot->blind |= m == s ? BLIND : BLIND_WORD(s);
}

// end gives what a slot of the group watches its end.
static __always_inline void end(struct group *g, struct slot *slot, __u32 m, __u32 s)
{
	g->slots[s].owner = 0;
	if (m == s) {
		slot->state = SLOT_DONE;
		slot->n = 0;
		g->slots[s].n = 0;
	}
}

// other is a trap in a thread at what another one's slot watches. The watchpoint
// is armed before the owner's use, and cannot know when that is: what comes
// before it is passed over, and so is what comes while the owner is in its
// trap, a time that is no part of its life without us.
static __always_inline int other(struct bpf_perf_event_data *ctx, __u32 s)
{
	__u32 index, owner, m;
	struct thread *t = current_thread(&index), *o;
	struct group *g;
	struct slot *slot;
	struct trap *r;
	struct clock none = {};
	__u64 now = bpf_ktime_get_ns();

	g = t ? group_of(t) : 0;
	if (!g || g->slots[s].addr != ctx->addr) {
		count(STAT_OTHER_PROCESS);
		return 1;
	}
	owner = g->slots[s].owner - 1;
	if (owner == index)
		return 1; // watched in all threads of a CPU: its own watchpoint deals with it
	o = bpf_map_lookup_elem(&threads, &owner);
	if (o && o->process != t->process) {
		count(STAT_OTHER_PROCESS);
		return 1;
	}
	t->traps++;
	t->trap_slot = NO_SLOT;
	count(STAT_OTHER_TRAPS);
	if (!o) {
		count(STAT_OTHER_EARLY); // seen once already
		return 1;
	}
	m = g->slots[s].main & (MAX_SLOTS - 1);
	slot = &o->slots[m];
	// The use's trap may have ended, on another CPU, since now.
	if (slot->state != SLOT_USED || (__s64)(now - slot->use_time) < (__s64)use_cost) {
		count(STAT_OTHER_EARLY);
		if (++t->others[s] >= other_limit && slot->state < SLOT_DONE)
			blinded(slot, m, s);
		return 1;
	}
	end(g, slot, m, s);
	r = reserve(ctx, o, owner, m, m == s ? TRAP_OTHER : TRAP_LINE, now, t, index);
	if (r)
		submit(r, none);
	return 1;
}

// silent is called when the register of a CPU has taken the last of its traps, of
// whatever process: what is still waited for ends here, as far as is known.
static __always_inline void silent(struct bpf_perf_event_data *ctx, __u32 s)
{
	__u32 i = cpu_group - 1, owner, m, index;
	struct group *g = bpf_map_lookup_elem(&groups, &i);
	struct thread *o;
	struct slot *slot;
	struct trap *r;
	struct clock none = {};
	__u64 now = bpf_ktime_get_ns();

	if (!g || g->slots[s].addr != ctx->addr)
		return;
	owner = g->slots[s].owner - 1;
	o = bpf_map_lookup_elem(&threads, &owner);
	if (!o)
		return; // has its end
	m = g->slots[s].main & (MAX_SLOTS - 1);
	slot = &o->slots[m];
	if (slot->state == SLOT_ARMED ||
	    (slot->state == SLOT_USED && (__s64)(now - slot->use_time) < (__s64)use_cost)) {
		blinded(slot, m, s);
		return;
	}
	// The owner's own trap is its reuse now.
	if (slot->state != SLOT_USED || (m == s && current_thread(&index) && index == owner))
		return;
	end(g, slot, m, s);
	r = reserve(ctx, o, owner, m, m == s ? TRAP_BLIND : TRAP_BLIND_LINE, now, o, owner);
	if (r)
		submit(r, none);
}

// by_cpu is other for all threads of a CPU, those of other processes included.
static __always_inline int by_cpu(struct bpf_perf_event_data *ctx, __u32 s)
{
	__u32 i = MAX_SLOTS * bpf_get_smp_processor_id() + s;
	__u64 *left = bpf_map_lookup_elem(&cpu_traps, &i);

	other(ctx, s);
	if (!left || !*left)
		return 1; // in the kernel's time to disable it
	if (!--*left)
		silent(ctx, s);
	return 1;
}
