//go:build ignore

// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
//
// Where blocks of memory were allocated, for rdx attach --heap: probes on the
// entry and the return of malloc and its kin. A block's entry is never taken
// out, only overwritten by one of the same place and size: of several that hold
// an address the latest is meant. So free need not be probed.

#include "kernel.h"

#define BLOCK_STACK 192 // bytes copied of the caller's stack
#define MAX_BLOCKS 65536
#define MIN_CLASS 4

// A block of class c is longer than 2^(c-1) bytes and at most 2^c: two of a class
// cannot begin in the same window of 2^(c-1) bytes.
struct block_key {
	__u32 pid;
	__u32 class;
	__u64 window; // base >> (class - 1)
};

struct block {
	__u64 base;
	__u64 size;	       // 0: call without a block
	__u64 time;	       // bpf_ktime_get_ns
	__u64 out;	       // where posix_memalign puts the address, 0 for the others
	struct user_regs regs; // at the entry
	__u8 stack[BLOCK_STACK];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_BLOCKS);
	__type(key, struct block_key);
	__type(value, struct block);
} blocks SEC(".maps");

// Calls that have not returned, by stack pointer: they may be nested. What
// never returns gives way to others.
struct call_key {
	__u64 pid_tgid;
	__u64 sp; // after the return
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct call_key);
	__type(value, struct block);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct block);
} scratch SEC(".maps");

__u64 classes = 0;   // bits 1 << class of all blocks so far
__u64 allocated = 0; // blocks seen; racing CPUs may lose some
__u64 full = 0;	     // of them, found no room

#if defined(__TARGET_ARCH_x86)
#define ARG1(r) ((r)->di)
#define ARG2(r) ((r)->si)
#define ARG3(r) ((r)->dx)
#define RESULT(r) ((r)->ax)
#define RETURN_POPS 8
#elif defined(__TARGET_ARCH_arm64)
#define ARG1(r) ((r)->regs[0])
#define ARG2(r) ((r)->regs[1])
#define ARG3(r) ((r)->regs[2])
#define RESULT(r) ((r)->regs[0])
#define RETURN_POPS 0
#endif

static __always_inline int enter(struct user_regs *regs, __u64 size, __u64 out)
{
	struct call_key key = {};
	__u32 zero = 0;
	struct block *b = bpf_map_lookup_elem(&scratch, &zero);

	if (!b)
		return 0;
	b->size = size ?: 1;
	b->out = out;
	b->regs = *regs;
	if (bpf_probe_read_user(b->stack, BLOCK_STACK, (void *)regs->sp))
		__builtin_memset(b->stack, 0, BLOCK_STACK); // near the stack's end
	key.pid_tgid = bpf_get_current_pid_tgid();
	key.sp = regs->sp + RETURN_POPS;
	bpf_map_update_elem(&calls, &key, b, BPF_ANY);
	return 0;
}

static __always_inline __u32 class_of(__u64 size)
{
	__u32 class = MIN_CLASS;

	for (int i = MIN_CLASS; i < 63 && size > 1ULL << i; i++)
		class = i + 1;
	return class;
}

static __always_inline void keep(struct block *b, __u64 base, __u64 pid_tgid)
{
	struct block_key key = {};

	b->base = base;
	b->time = bpf_ktime_get_ns();
	key.pid = pid_tgid >> 32;
	key.class = class_of(b->size);
	key.window = base >> (key.class - 1);
	classes |= 1ULL << key.class;
	allocated++;
	if (bpf_map_update_elem(&blocks, &key, b, BPF_ANY))
		full++;
}

SEC("uprobe")
int on_malloc(struct user_regs *regs)
{
	return enter(regs, ARG1(regs), 0);
}

SEC("uprobe")
int on_calloc(struct user_regs *regs)
{
	return enter(regs, ARG1(regs) * ARG2(regs), 0);
}

// realloc, aligned_alloc, memalign and mmap.
SEC("uprobe")
int on_second(struct user_regs *regs)
{
	return enter(regs, ARG2(regs), 0);
}

SEC("uprobe")
int on_posix_memalign(struct user_regs *regs)
{
	return enter(regs, ARG3(regs), ARG1(regs));
}

SEC("uprobe")
int on_return(struct user_regs *regs)
{
	struct call_key key = {};
	struct block *b;
	__u64 base = RESULT(regs);

	key.pid_tgid = bpf_get_current_pid_tgid();
	key.sp = regs->sp;
	b = bpf_map_lookup_elem(&calls, &key);
	if (!b)
		return 0;
	if (b->out && (base || bpf_probe_read_user(&base, sizeof(base), (void *)b->out)))
		base = 0;
	if (base && base != ~0ULL) // MAP_FAILED
		keep(b, base, key.pid_tgid);
	bpf_map_delete_elem(&calls, &key);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
