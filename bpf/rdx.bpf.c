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
	__u32 seq;       // number of the arming, ties traps to it
	__u32 skip;      // traps to let pass first
	__u32 stacks;    // traps whose stack is wanted: bits 1 << TRAP_*
	__u32 blind;     // what may be written unseen by now: bits BLIND and BLIND_WORD
	__u32 pad;
	__u64 n;         // candidates since the slot was last free
	__u64 use_clock; // clock at the use trap
	__u64 use_time;  // bpf_ktime_get_ns at the end of the use trap
};

struct thread {
	__u32 tid;
	__u32 hold; // the signal or HOLD_INTERRUPT, from its sending until user space lets the thread go
	__u32 hold_slot;
	__u32 hold_cpu;
	__u64 hold_ip; // where it was; of a thread that steps, where it is to stop, 0 until it is there
	__u64 hold_time; // bpf_ktime_get_ns
	__u64 ticks;
	__u64 sampled; // the ticks' periods added up, in the source's unit
	__u32 traps; // so far; each cost the thread time that is not its own
	__u32 holds;
	__u64 spent; // ns in the programs of traps
	__u64 stack_top; // nothing above it need be copied; 0: not known
	__u32 group; // index into groups plus one; 0: the slots are the thread's own
	__u32 trap_slot; // of the last trap, NO_SLOT if it was of another thread's datum
	__u32 others[MAX_SLOTS]; // traps of other threads' data, since armed
	__u64 waits; // how often it had waited of its own accord by its last tick
	__u64 waits_time; // of the first tick with as many
	__u64 unheld; // of ticks, those at which nothing could hold it
	__u32 first; // its first gap is one of its own: FIRST_DUE, then FIRST_TICKED, until user space sets the next
	__u32 process; // number of it, where threads are in groups
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
	__type(key, __u32); // tid
	__type(value, __u32); // index into threads
} tids SEC(".maps");

enum trap_kind {
	TRAP_USE = 1,
	TRAP_REUSE = 2,
	TRAP_SAMPLE = 5, // no trap: an access as its source reported it
	TRAP_STACK = 16, // no trap: the stack of the next one of this slot, a struct stack
	TRAP_OTHER = 3, // another thread at the datum
	TRAP_LINE = 4,  // another thread elsewhere in its line
	TRAP_BLIND = 9, // no trap at the datum: a CPU's register is silent, what comes next is not seen
	TRAP_BLIND_LINE = 10, // likewise elsewhere in its line
	REQUEST_GAP = 7,  // no trap: the thread's first tick has come, user space is to set its gap
	REQUEST_HOLD = 6, // no trap: user space is to stop the thread by an interrupt
	STAMP = 8, // no trap: where a thread has got to, a struct stamp
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
	__u64 time; // bpf_ktime_get_ns
	__u32 from;  // index into threads of who made the access
	__u32 latency;  // of a TRAP_SAMPLE: cycles, 0 if not reported
	__u64 wall; // ns since the end of the use trap; not of a use
	__u64 addr; // of the word watched; of a TRAP_SAMPLE, of its access
	__u64 data_src; // of a TRAP_SAMPLE: perf_mem_data_src, 0 if the kernel does not say
	__u32 event;    // of a TRAP_SAMPLE: which of the source's events
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
	STAT_TICKS,          // samples of threads we know
	STAT_CANDIDATES,     // of them, passed the thinning
	STAT_LOSERS,         // of them, lost the draw for a slot
	STAT_HOLDS,          // of them, signalled
	STAT_HOLD_PENDING,   // candidate while the thread was already on hold
	STAT_SIGNAL_BLOCKED, // the thread blocks the signals that could hold it
	STAT_WAITS,          // it does, is to be interrupted, but is not calm
	STAT_FIRST_AGAIN,    // ticks passed over: after the first, before the gap was set
	STAT_INTERRUPTS,     // of STAT_HOLDS, those asked of user space
	STAT_SIGNAL_FAILED,
	STAT_THROTTLED,      // over hold_limit
	STAT_RING_FULL,      // trap seen, record dropped
	STAT_EXTRA_TRAPS,    // traps of a slot that was not waiting for one
	STAT_CLOCK_FAILED,
	STAT_UNKNOWN,        // event of a thread we do not know (any more)
	STAT_STEPPING,       // ticks of a thread about to step over a watchpoint
	STAT_STACK_LOST,     // traps whose stack could not be copied, or did not fit the ring
	STAT_OTHER_TRAPS,    // traps of threads at another one's datum or line
	STAT_OTHER_EARLY,    // of them, before the use, or while it was being recorded
	STAT_OTHER_PROCESS,  // traps of other processes at the same address
	STAT_IN_KERNEL,      // ticks of an access source that fell into the kernel
	STAT_NO_MEMORY,      // ticks of it on an operation without a memory access
	STAT_NO_ADDRESS,     // ticks of it on an access whose address is not known
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
const volatile __u32 clock_hybrid = 0;   // one counter for each type of core
const volatile __u32 num_slots = MAX_SLOTS;

// Set at any time.
__u32 accept = ~0U;       // a sample is a candidate with probability accept / 2^32
__u32 hold_limit = 1000;  // holds a second, over all threads
__u64 use_cost = 0;       // ns from the end of a use trap's program to the next instruction and trap
__u32 other_limit = 0;    // traps after which an other thread's watchpoint is silent
__u32 cpu_group = 0;      // of the threads that are watched by CPU: index into groups plus one, 0 if there are none
// What loses the draw is held all the same, to be read ahead of.
__u32 hold_losers = 0;
// All slots of a thread serve one sample, which is drawn for in slot 0: that
// one watches the word of the use, slot 1 the other word of its aligned pair,
// and slots 2 and 3 the rest of the half line.
__u32 half_line = 0;
__u32 interrupts = 0;     // user space interrupts threads that block the signals
__u32 report_only = 0;    // pass on every access sampled, hold nobody: for a probe

static __u64 window_start, window_holds;

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
static __always_inline int hold(struct bpf_perf_event_data *ctx, struct thread *t, __u32 index,
				__u32 s, __u32 signal)
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

static __always_inline int passed_over(struct bpf_perf_event_data *ctx, struct thread *t, __u32 index)
{
	struct bpf_perf_event_value v = {};
	int late;

	if (t->first == FIRST_TICKED) {
		count(STAT_FIRST_AGAIN);
		return 1;
	}
	late = !bpf_perf_prog_read_value(ctx, &v, sizeof(v)) && v.enabled >= 2 * ctx->sample_period;
	if (request(REQUEST_GAP, t, index))
		t->first = FIRST_TICKED;
	if (late)
		count(STAT_FIRST_AGAIN);
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

// send_stack sends the registers and the stack, and returns how many bytes of
// that, or a negative errno.
static __always_inline __s32 send_stack(struct bpf_perf_event_data *ctx, struct thread *t,
					__u32 index, __u32 s, __u32 seq)
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
static __always_inline struct trap *reserve(struct bpf_perf_event_data *ctx, struct thread *t,
					    __u32 index, __u32 s, enum trap_kind kind, __u64 now,
					    struct thread *actor, __u32 from)
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

// One program per event of the source: a sample does not say which it is of.
SEC("perf_event")
int on_access0(struct bpf_perf_event_data *ctx)
{
	return access(ctx, 0);
}

SEC("perf_event")
int on_access1(struct bpf_perf_event_data *ctx)
{
	return access(ctx, 1);
}

SEC("perf_event")
int on_access2(struct bpf_perf_event_data *ctx)
{
	return access(ctx, 2);
}

SEC("perf_event")
int on_access3(struct bpf_perf_event_data *ctx)
{
	return access(ctx, 3);
}

SEC("perf_event")
int on_access4(struct bpf_perf_event_data *ctx)
{
	return access(ctx, 4);
}

SEC("perf_event")
int on_access5(struct bpf_perf_event_data *ctx)
{
	return access(ctx, 5);
}

// trap must return 1: kernels from 6.11 on ignore the event's limit if the
// program swallows the event.
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

// One program per slot: the event does not say which slot it belongs to.
SEC("perf_event")
int on_trap0(struct bpf_perf_event_data *ctx)
{
	return trap(ctx, 0);
}

SEC("perf_event")
int on_trap1(struct bpf_perf_event_data *ctx)
{
	return trap(ctx, 1);
}

SEC("perf_event")
int on_trap2(struct bpf_perf_event_data *ctx)
{
	return trap(ctx, 2);
}

SEC("perf_event")
int on_trap3(struct bpf_perf_event_data *ctx)
{
	return trap(ctx, 3);
}

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

SEC("perf_event")
int on_other0(struct bpf_perf_event_data *ctx)
{
	return other(ctx, 0);
}

SEC("perf_event")
int on_other1(struct bpf_perf_event_data *ctx)
{
	return other(ctx, 1);
}

SEC("perf_event")
int on_other2(struct bpf_perf_event_data *ctx)
{
	return other(ctx, 2);
}

SEC("perf_event")
int on_other3(struct bpf_perf_event_data *ctx)
{
	return other(ctx, 3);
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

SEC("perf_event")
int on_cpu0(struct bpf_perf_event_data *ctx)
{
	return by_cpu(ctx, 0);
}

SEC("perf_event")
int on_cpu1(struct bpf_perf_event_data *ctx)
{
	return by_cpu(ctx, 1);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
