// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
//
// What the programs and user space share: slots, threads, groups, records, counts, settings.
#pragma once

#define MAX_SLOTS 4
#define NO_SLOT MAX_SLOTS // in hold_slot
#define DROPPED (MAX_SLOTS + 1)
#define MAX_STACK 16384 // bytes copied of a stack at most
#define STACK_PIECE 512 // bytes copied at a time: all of a piece, or none

// A slot is one debug register of one thread. User space writes it while the
// thread is held, the programs while it runs: never both at once. (Where
// threads share slots, see group, user space closes the events first.)
enum slot_state {
	SLOT_FREE,  // nothing watched
	SLOT_ARMED, // waiting for the use
	SLOT_USED,  // waiting for the reuse
	SLOT_DONE,  // reuse seen; user space has not yet closed the event
};

// Others' traps at the datum are used up, or at the word of its line that a slot
// of the group watches.
#define BLIND 1
#define BLIND_WORD(s) (2 << (s))

struct slot {
	enum slot_state state;
	__u32 seq;	 // number of the arming, ties traps to it
	__u32 skip;	 // traps to let pass first
	__u32 stacks;	 // traps whose stack is wanted: bits 1 << TRAP_*
	__u32 blind;	 // what may be written unseen by now: bits BLIND and BLIND_WORD
	__u32 copied;	 // traps of the kernel's own accesses, for system calls of the thread
	__u64 n;	 // candidates since the slot was last free
	__u64 use_clock; // clock at the use trap
	__u64 use_time;	 // bpf_ktime_get_ns at the end of the use trap
};

struct thread {
	__u32 tid;
	__u32 hold; // the signal or HOLD_INTERRUPT, from its sending until user space lets the thread go
	__u32 hold_slot;
	__u32 hold_cpu;
	__u64 hold_ip;	 // where it was; of a thread that steps, where it is to stop, 0 until it is there
	__u64 hold_time; // bpf_ktime_get_ns
	__u64 ticks;
	__u64 sampled; // the ticks' periods added up, in the source's unit
	__u32 traps;   // so far; each cost the thread time that is not its own
	__u32 holds;
	__u64 spent;		 // ns in the programs of traps
	__u64 stack_top;	 // nothing above it need be copied; 0: not known
	__u32 group;		 // index into groups plus one; 0: the slots are the thread's own
	__u32 trap_slot;	 // of the last trap, NO_SLOT if it was of another thread's datum
	__u32 others[MAX_SLOTS]; // traps of other threads' data, since armed
	__u64 waits;		 // how often it had waited of its own accord by its last tick
	__u64 waits_time;	 // of the first tick with as many
	__u64 unheld;		 // of ticks, those at which nothing could hold it
	__u64 last_copy;	 // bpf_ktime_get_ns of the last trap that is in a slot's copied
	__u32 first;	  // its first period is drawn otherwise: FIRST_DUE, then FIRST_TICKED, until the next is set
	__u32 process;	  // number of it, where threads are in groups
	__u32 hold_drawn; // the slot that the draw was for, won or lost
	__u32 pad;
	struct slot slots[MAX_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

// A group is the slots that the threads of a process share where a datum is
// watched in all of them: one register of each. It serves the datum of one
// thread, its owner, or watches the same line elsewhere for it. Processes whose data are watched
// by CPU are all in one group.
struct group_slot {
	__u32 owner; // index into threads plus one; 0: none
	__u32 main;  // the owner's slot it serves: this one, or that of the line's datum
	__u64 n;     // as in struct slot
	__u64 addr;  // the word watched
};

struct group {
	__u32 num; // slots in use
	__u32 pad;
	struct group_slot slots[MAX_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct group);
} groups SEC(".maps");

// How many more traps the register of a CPU takes for a slot until it is silent, by
// MAX_SLOTS * CPU + slot. User space writes it while the event is disabled, and
// makes it larger.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} cpu_traps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);   // tid
	__type(value, __u32); // index into threads
} tids SEC(".maps");

enum trap_kind {
	TRAP_USE = 1,
	TRAP_REUSE = 2,
	TRAP_SAMPLE = 5,      // no trap: an access as its source reported it
	TRAP_STACK = 16,      // no trap: the stack of the next one of this slot, a struct stack
	TRAP_OTHER = 3,	      // another thread at the datum
	TRAP_LINE = 4,	      // another thread elsewhere in its line
	TRAP_BLIND = 9,	      // no trap at the datum: a CPU's register is silent, what comes next is not seen
	TRAP_BLIND_LINE = 10, // likewise elsewhere in its line
	REQUEST_PERIOD = 7,   // no trap: the thread's first tick has come, user space is to set its period
	REQUEST_HOLD = 6,     // no trap: user space is to stop the thread by an interrupt
	STAMP = 8,	      // no trap: where a thread has got to, a struct stamp
};

struct trap {
	enum trap_kind kind;
	__u32 index; // into threads, of whose datum it is
	__u32 tid;   // who made the access
	__u32 slot;
	__u32 seq;
	__u32 traps;
	__u32 holds;
	__s32 stack_bytes; // of the struct stack sent before, or a negative errno
	__u64 ip;
	__u64 clock;
	__u64 clock_lag; // how long the counters did not count so far, or CLOCK_FAILED
	__u64 time;	 // bpf_ktime_get_ns
	__u32 from;	 // index into threads of who made the access
	__u32 latency;	 // of a TRAP_SAMPLE: cycles, 0 if not reported
	__u64 wall;	 // ns since the end of the use trap; not of a use
	__u64 addr;	 // of the word watched; of a TRAP_SAMPLE, of its access
	__u64 data_src;	 // of a TRAP_SAMPLE: perf_mem_data_src, 0 if the kernel does not say
	__u32 event;	 // of a TRAP_SAMPLE: which of the source's events
	__u32 pad;
	__u64 spent; // thread.spent: of a use, when its clock was read, else before the trap
};
const struct trap *unused_trap __attribute__((unused)); // for bpf2go -type

// What user space needs to unwind a stack: the registers and a copy of the
// stack from its pointer up.
struct stack_head {
	enum trap_kind kind;
	__u32 index, slot, seq; // as in the trap
	struct user_regs regs;
};
const struct stack_head *unused_stack_head __attribute__((unused));

struct stack {
	struct stack_head head;
	__u8 data[MAX_STACK];
};

#define NUM_NEAR 16
#define NEAR_BYTES 64

// Where a thread was at a moment after it was let go, and what it had lost to us by
// then.
struct stamp {
	enum trap_kind kind;
	__u32 index; // into threads
	__u32 tid;
	__u32 holds;
	__u32 traps;
	__u32 pad;
	__u64 ticks;
	__u64 spent;
	__u64 clock;
	struct user_regs regs;
	// What lies where registers point to: loops of interpreters come by with the
	// same registers again and again.
	__u8 near[NUM_NEAR][NEAR_BYTES];
};
const struct stamp *unused_stamp __attribute__((unused));

// Programs of perf events don't interrupt each other: the kernel drops the
// second one's event.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
} stack_buffer SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ring SEC(".maps");

enum stat {
	STAT_TICKS,	     // samples of threads we know
	STAT_CANDIDATES,     // of them, passed the thinning
	STAT_LOSERS,	     // of them, lost the draw for a slot
	STAT_HOLDS,	     // of them, signalled
	STAT_HOLD_PENDING,   // candidate while the thread was already on hold
	STAT_SIGNAL_BLOCKED, // the thread blocks the signals that could hold it
	STAT_WAITS,	     // it does, is to be interrupted, but is not calm
	STAT_FIRST_AGAIN,    // ticks passed over: after the first, before the period was set
	STAT_FIRST_LATE,     // first ticks passed over: the thread was in the kernel at their time
	STAT_INTERRUPTS,     // of STAT_HOLDS, those asked of user space
	STAT_SIGNAL_FAILED,
	STAT_THROTTLED,	  // over hold_limit
	STAT_RING_FULL,	  // trap seen, record dropped
	STAT_EXTRA_TRAPS, // traps of a slot that was not waiting for one
	STAT_CLOCK_FAILED,
	STAT_UNKNOWN,	    // event of a thread we do not know (any more)
	STAT_STEPPING,	    // ticks of a thread about to step over a watchpoint
	STAT_STACK_LOST,    // traps whose stack could not be copied, or did not fit the ring
	STAT_OTHER_TRAPS,   // traps of threads at another one's datum or line
	STAT_OTHER_EARLY,   // of them, before the use, or while it was being recorded
	STAT_OTHER_PROCESS, // traps of other processes at the same address
	STAT_IN_KERNEL,	    // ticks of an access source that fell into the kernel
	STAT_NO_MEMORY,	    // ticks of it on an operation without a memory access
	STAT_NO_ADDRESS,    // ticks of it on an access whose address is not known
	NUM_STATS,
};

// All in one value: user space reads them several times a second, each value by a system call.
struct counts {
	__u64 n[NUM_STATS];
};
const struct counts *unused_counts __attribute__((unused)); // for bpf2go -type
const enum stat *unused_stat __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} stats SEC(".maps");

// Clock counters of the threads, MAX_COUNTERS each, by index into threads; only
// with a PMU. User space puts a larger map in this one's place.
#define MAX_COUNTERS 3 // types of core
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} counters SEC(".maps");

// Set before loading.
const volatile __u32 clock_counters = 0; // whose sum is the clock; 0: CPU time
const volatile __u32 clock_hybrid = 0;	 // one counter for each type of core
const volatile __u32 num_slots = MAX_SLOTS;

// Set at any time.
__u32 accept = ~0U;	 // a sample is a candidate with probability accept / 2^32
__u32 hold_limit = 1000; // holds a second, over all threads
__u64 use_cost = 0;	 // ns from the end of a use trap's program to the next instruction and trap
__u32 other_limit = 0;	 // traps after which an other thread's watchpoint is silent
__u32 cpu_group = 0;	 // of the threads that are watched by CPU: index into groups plus one, 0 if there are none
// What loses the draw is held all the same, to be read ahead of.
__u32 hold_losers = 0;
// All slots of a thread serve one sample, which is drawn for in slot 0: that
// one watches the word of the use, slot 1 the other word of its aligned pair,
// and slots 2 and 3 the rest of the half line.
__u32 half_line = 0;
__u32 interrupts = 0;  // user space interrupts threads that block the signals
__u32 report_only = 0; // pass on every access sampled, hold nobody: for a probe

static __always_inline void count(enum stat which)
{
	__u32 key = 0;
	struct counts *v = bpf_map_lookup_elem(&stats, &key);

	if (v)
		v->n[which]++;
}

static __always_inline struct thread *current_thread(__u32 *index)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u32 *i = bpf_map_lookup_elem(&tids, &tid);

	if (!i)
		return 0;
	*index = *i;
	return bpf_map_lookup_elem(&threads, i);
}

static __always_inline struct group *group_of(struct thread *t)
{
	__u32 i = t->group - 1;

	return t->group ? bpf_map_lookup_elem(&groups, &i) : 0;
}
