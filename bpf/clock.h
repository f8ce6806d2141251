// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
//
// The clock of a thread.
#pragma once

#include "types.h"

struct clock {
	__u64 value;
	__u64 lag;
};

#define CLOCK_FAILED (~0ULL)

// read_clock is the thread's own time: the on-CPU nanoseconds since the event
// was enabled, or the sum of the thread's counters.
//
// Counters that had to make room for others have a hole in their count: two
// readings are only to be compared if the lag is the same in both.
static __always_inline struct clock read_clock(struct bpf_perf_event_data *ctx, __u32 index)
{
	struct bpf_perf_event_value v = {};
	struct clock clock = {};
	__u32 i;

	if (!clock_counters) {
		if (bpf_perf_prog_read_value(ctx, &v, sizeof(v)))
			goto failed;
		clock.value = v.enabled;
		return clock;
	}
	for (i = 0; i < MAX_COUNTERS && i < clock_counters; i++) {
		if (bpf_perf_event_read_value(&counters, MAX_COUNTERS * index + i, &v, sizeof(v)))
			goto failed;
		clock.value += v.counter;
		clock.lag -= v.running;
		if (i == 0 || !clock_hybrid)
			clock.lag += v.enabled;
	}
	return clock;
failed:
	count(STAT_CLOCK_FAILED);
	clock.lag = CLOCK_FAILED;
	return clock;
}
