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
#elif defined(__TARGET_ARCH_arm64)
struct user_regs {
	__u64 regs[31], sp, pc, pstate;
};
#define USER_IP(ctx) ((ctx)->regs.pc)
#define USER_SP(ctx) ((ctx)->regs.sp)
#endif

// As in uapi/linux/bpf_perf_event.h.
struct bpf_perf_event_data {
	struct user_regs regs;
	__u64 sample_period;
	__u64 addr;
};

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
} __attribute__((preserve_access_index));

#define SIGURG 23
#define SIGWINCH 28

#endif
