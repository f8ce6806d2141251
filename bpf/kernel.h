// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
//
// The few kernel types the programs look at. Spelled out, so that generating
// needs no kernel headers of the other architecture and no vmlinux.h.
#ifndef RDX_KERNEL_H
#define RDX_KERNEL_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#if defined(__TARGET_ARCH_x86)
struct user_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
#define USER_IP(ctx) ((ctx)->regs.ip)
#define USER_SP(ctx) ((ctx)->regs.sp)
#define USER_MODE(ctx) ((ctx)->regs.cs & 3)
#define STEPPING(ctx) 0
#define NEAR_REGS                                                    \
	{                                                            \
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 19 \
	} // all general ones
#elif defined(__TARGET_ARCH_arm64)
struct user_regs {
	__u64 regs[31], sp, pc, pstate;
};
#define USER_IP(ctx) ((ctx)->regs.pc)
#define USER_SP(ctx) ((ctx)->regs.sp)
#define USER_MODE(ctx) (!((ctx)->regs.pstate & 0xf)) // EL0
// A watchpoint fires before its access, over which the kernel then steps the
// thread with its watchpoints off: set from the trap until the access is done.
#define STEPPING(ctx) ((ctx)->regs.pstate >> 21 & 1) // SS
#define NEAR_REGS                                                          \
	{                                                                  \
		0, 1, 2, 3, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31 \
	} // of x0 to x30, sp
#endif

// As in uapi/linux/bpf_perf_event.h.
struct bpf_perf_event_data {
	struct user_regs regs;
	__u64 sample_period;
	__u64 addr;
};

// The sample behind it, for those who may look: see bpf_cast_to_kern_ctx.
union perf_mem_data_src {
	__u64 val;
} __attribute__((preserve_access_index));

union perf_sample_weight {
	__u64 full; // the low half is the latency
} __attribute__((preserve_access_index));

struct perf_sample_data {
	__u64 sample_flags;
	union perf_mem_data_src data_src;
	union perf_sample_weight weight;
} __attribute__((preserve_access_index));

struct bpf_perf_event_data_kern {
	struct perf_sample_data *data;
} __attribute__((preserve_access_index));

extern void *bpf_cast_to_kern_ctx(void *) __ksym __weak;

// From uapi/linux/perf_event.h.
#define PERF_SAMPLE_ADDR (1 << 3)
#define PERF_SAMPLE_DATA_SRC (1 << 15)
#define PERF_SAMPLE_WEIGHT_TYPE (1 << 14 | 1 << 24) // WEIGHT or WEIGHT_STRUCT

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigaction {
	void *sa_handler;
} __attribute__((preserve_access_index));

struct k_sigaction {
	struct sigaction sa;
} __attribute__((preserve_access_index));

struct sighand_struct {
	struct k_sigaction action[64];
} __attribute__((preserve_access_index));

struct sigpending {
	sigset_t signal;
} __attribute__((preserve_access_index));

struct task_struct {
	sigset_t blocked;
	struct sigpending pending;
	struct sighand_struct *sighand;
	unsigned long nvcsw;
} __attribute__((preserve_access_index));

#define SIGURG 23
#define SIGWINCH 28

#endif
