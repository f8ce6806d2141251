package sampler

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// MaxThreads is how many threads one session can watch at a time.
const MaxThreads = 16384

// NumSlots is the number of watchpoint slots a thread has in the table; the
// machine may offer fewer.
const NumSlots = 4

// FirstDue is Thread.First of one whose first tick comes after a period of its own:
// RequestPeriod then asks for the next, and until First is 0 again ticks are passed
// over.
const FirstDue = 1

// NoSlot is the HoldSlot of a sample that has won none.
const NoSlot = NumSlots

// Slot and Thread are shared with the BPF programs: user space writes them
// only while the thread is held.
type (
	Slot      = bpf.RDXSlot
	SlotState = bpf.RDXSlotState
	TrapKind  = bpf.RDXTrapKind
	Thread    = bpf.RDXThread
)

// Trap is what the BPF programs say of one.
type Trap struct {
	bpf.RDXTrap
	// Stack is the thread's, if it was asked for by Slot.Stacks and could be
	// copied. It is the receiver's to keep.
	Stack *unwind.Snapshot
}

// MaxStack is how much of a stack is copied, in bytes.
const MaxStack = 16384

// States of a slot and kinds of traps.
const (
	SlotFree  = bpf.RDXSlotStateSLOT_FREE
	SlotArmed = bpf.RDXSlotStateSLOT_ARMED // waits for the use
	SlotUsed  = bpf.RDXSlotStateSLOT_USED  // waits for the reuse
	SlotDone  = bpf.RDXSlotStateSLOT_DONE  // has seen both

	TrapUse   = bpf.RDXTrapKindTRAP_USE
	TrapReuse = bpf.RDXTrapKindTRAP_REUSE
	TrapOther = bpf.RDXTrapKindTRAP_OTHER // another thread at the datum
	TrapLine  = bpf.RDXTrapKindTRAP_LINE  // another thread elsewhere in its line
	// A CPU's register has taken its last trap: what comes next at the datum, or
	// elsewhere in its line, is not seen.
	TrapBlind     = bpf.RDXTrapKindTRAP_BLIND
	TrapBlindLine = bpf.RDXTrapKindTRAP_BLIND_LINE
	// TrapSample is no trap: the use as an access source reported it.
	TrapSample = bpf.RDXTrapKindTRAP_SAMPLE
	// RequestPeriod: the thread has ticked for the first time, and needs a period.
	RequestPeriod = bpf.RDXTrapKindREQUEST_PERIOD
	// RequestHold: the thread is to be stopped by Tracer.Interrupt.
	RequestHold = bpf.RDXTrapKindREQUEST_HOLD
)

// Kernel is the loaded BPF side of one session.
type Kernel struct {
	obj    objects
	mem    []byte
	table  []Thread
	free   []uint32 // indices of table not in use
	groups groupTable
	// cpuTraps is what is left to each Register; revives: startAgain works here.
	cpuTraps cpuTraps
	revives  bool
	rearms   bool // Watchpoints.Rearms
	copies   bool // Watchpoints.Copies
	reader   *ringbuf.Reader
	record   ringbuf.Record
	stacks   map[slotOf]sentStack // whose traps are still to be read
	stamps   map[uint32][]Stamp   // by index: those asked for

	clock    Clock
	counters *ebpf.Map       // of the clock, nil for CPU time
	probed   Stats           // what probes of our own counted
	perCPU   []bpf.RDXCounts // by CPU, as last read
	rings    atomic.Int64    // of sampling events, for what the kernel says of them
}

// Load loads the BPF programs and maps. It needs root or CAP_BPF and
// CAP_PERFMON. slots is the number of watchpoints a thread may have, 1 to 4.
// The clock is CPU time.
func Load(slots int, needs Needs) (*Kernel, error) { return LoadClock(slots, CPUTime(), needs) }

// LoadClock is Load with another clock.
func LoadClock(slots int, clock Clock, needs Needs) (*Kernel, error) {
	if slots < 1 || slots > NumSlots {
		return nil, fmt.Errorf("load bpf: %d slots a thread, want 1 to %d", slots, NumSlots)
	}
	// Kernels before 5.11 charge maps to the memlock limit; later ones do
	// not need it, so that a refusal is only an error if loading fails too.
	memlockErr := rlimit.RemoveMemlock()

	spec, err := bpf.LoadRDX()
	if err != nil {
		return nil, fmt.Errorf("load bpf: %w", err)
	}
	spec.Maps[bpf.RDXMapThreads].MaxEntries = MaxThreads
	spec.Maps[bpf.RDXMapTids].MaxEntries = MaxThreads
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("load bpf: %w", err)
	}
	spec.Maps[bpf.RDXMapCpuTraps].MaxEntries = uint32(NumSlots * cpus)
	if err := spec.Variables[bpf.RDXVarNumSlots].Set(uint32(slots)); err != nil {
		return nil, fmt.Errorf("load bpf: set number of slots: %w", err)
	}

	k := &Kernel{clock: clock, stacks: make(map[slotOf]sentStack), stamps: make(map[uint32][]Stamp), perCPU: make([]bpf.RDXCounts, cpus)}
	if clock.Counted != nil {
		if k.counters, err = useCounters(spec, clock.Counted); err != nil {
			return nil, fmt.Errorf("load bpf: %w", err)
		}
	}
	if err := k.obj.load(spec, needs.programs()); err != nil {
		k.counters.Close()
		if errors.Is(err, os.ErrPermission) {
			// Which of the objects was refused says nothing to the user.
			if (Machine{Proc: os.DirFS("/proc")}).InUserNamespace() {
				return nil, fmt.Errorf("load bpf: %w (%s)", unix.EPERM, userNamespaceRemedy)
			}
			return nil, fmt.Errorf("load bpf: %w (run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, before Linux 5.11 CAP_SYS_RESOURCE too)", unix.EPERM)
		}
		if errors.Is(err, unix.EMFILE) {
			return nil, fmt.Errorf("load bpf: %w (raise the limit, as by ulimit -n 20000; rdx doctor says for how many threads it is enough)", unix.EMFILE)
		}
		if memlockErr != nil {
			err = fmt.Errorf("%w; %w", err, memlockErr)
		}
		return nil, fmt.Errorf("load bpf: %w (rdx needs Linux 5.10 or later with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF; see rdx doctor)", err)
	}
	size := MaxThreads * int(unsafe.Sizeof(Thread{}))
	k.mem, err = unix.Mmap(k.obj.Threads.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		k.counters.Close()
		k.obj.Close()
		return nil, fmt.Errorf("map thread table: %w", err)
	}
	k.table = unsafe.Slice((*Thread)(unsafe.Pointer(&k.mem[0])), MaxThreads)
	for i := MaxThreads - 1; i >= 0; i-- {
		k.free = append(k.free, uint32(i))
	}
	if err := errors.Join(k.groups.open(k.obj.Groups), k.cpuTraps.open(k.obj.CpuTraps)); err != nil {
		k.Close()
		return nil, err
	}
	k.reader, err = ringbuf.NewReader(k.obj.Ring)
	if err != nil {
		k.Close()
		return nil, fmt.Errorf("read ring: %w", err)
	}
	return k, nil
}

// Close unloads everything. Watchpoints and sources must be closed before.
func (k *Kernel) Close() error {
	var errs []error
	if k.reader != nil {
		errs = append(errs, k.reader.Close())
	}
	errs = append(errs, k.groups.close(), k.cpuTraps.close(), unix.Munmap(k.mem), k.obj.Close(), k.counters.Close())
	return errors.Join(errs...)
}

// SetAccept sets the probability with which a sample becomes a candidate for
// a watchpoint.
func (k *Kernel) SetAccept(p float64) error {
	p = min(max(p, 0), 1)
	return k.obj.Accept.Set(uint32(p * (1<<32 - 1)))
}

// HoldLosers makes samples that win no slot be held, too, with NoSlot.
func (k *Kernel) HoldLosers() error { return k.obj.HoldLosers.Set(uint32(1)) }

// HoldByInterrupt makes threads that block the signals be held, too: by
// RequestHold.
func (k *Kernel) HoldByInterrupt() error { return k.obj.Interrupts.Set(uint32(1)) }

// SetHalfLines makes all slots of a thread serve one sample each: see half_line
// in the programs.
func (k *Kernel) SetHalfLines() error { return k.obj.HalfLine.Set(uint32(1)) }

// SetHoldLimit sets the most holds a second, over all threads.
func (k *Kernel) SetHoldLimit(perSecond uint32) error {
	return k.obj.HoldLimit.Set(perSecond)
}

// AddThread enters a thread in the table. The entry stays valid until
// RemoveThread.
func (k *Kernel) AddThread(tid int) (uint32, *Thread, error) {
	if len(k.free) == 0 {
		return 0, nil, fmt.Errorf("add thread %d: already %d threads, the most rdx watches at a time", tid, MaxThreads)
	}
	index := k.free[len(k.free)-1]
	t := &k.table[index]
	*t = Thread{Tid: uint32(tid)}
	if err := k.obj.Tids.Put(uint32(tid), index); err != nil {
		return 0, nil, fmt.Errorf("add thread %d: %w", tid, err)
	}
	k.free = k.free[:len(k.free)-1]
	return index, t, nil
}

// RemoveThread takes the thread out of the table. It is not an error if the
// thread has exited meanwhile.
func (k *Kernel) RemoveThread(index uint32) error {
	tid := k.table[index].Tid
	err := k.obj.Tids.Delete(tid)
	k.free = append(k.free, index)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove thread %d: %w", tid, err)
	}
	return nil
}

// Stats are counted by the BPF programs.
type Stats struct {
	Ticks         uint64 // samples of known threads
	Candidates    uint64 // of these, passed the thinning
	Losers        uint64 // of these, lost the draw for a slot
	Holds         uint64 // of these, held
	HoldPending   uint64 // candidate while its thread was on hold already
	SignalBlocked uint64 // not held: the thread blocks the signals that could hold it
	Waits         uint64 // not held: it blocks them, and has waited within 10 ms
	FirstAgain    uint64 // ticks after a thread's first, before it had its period
	FirstLate     uint64 // first ticks of threads that were in the kernel at their time
	Interrupts    uint64 // of Holds, by Tracer.Interrupt
	SignalFailed  uint64 // not held: the kernel would not send the signal
	Throttled     uint64 // not held: too many holds this second
	RingFull      uint64 // traps whose record was dropped
	ExtraTraps    uint64 // traps nobody waited for
	ClockFailed   uint64 // traps without a time
	Unknown       uint64 // events of a thread no longer in the table
	Stepping      uint64 // ticks of a thread that was stepping over a watchpoint
	StackLost     uint64 // traps without the stack that was asked for
	OtherTraps    uint64 // traps of threads at another one's datum or line
	OtherEarly    uint64 // of these, not between use and end
	OtherProcess  uint64 // traps of other processes at the same address
	InKernel      uint64 // ticks of an access source that fell into the kernel
	NoMemory      uint64 // ticks of it on an operation that accesses no memory
	NoAddress     uint64 // ticks of it on an access whose address is not known
}

// Stats sums the counters over all CPUs, without what probes counted.
func (k *Kernel) Stats() (Stats, error) {
	s, err := k.rawStats()
	if err == nil {
		all := s.all()
		for i, n := range k.probed.all() {
			*all[i] -= *n
		}
	}
	return s, err
}

// forget takes what was counted so far for probes.
func (k *Kernel) forget() error {
	var err error
	k.probed, err = k.rawStats()
	return err
}

func (k *Kernel) rawStats() (Stats, error) {
	var s Stats
	if err := k.obj.Stats.Lookup(uint32(0), k.perCPU); err != nil {
		return s, fmt.Errorf("read bpf counters: %w", err)
	}
	all := s.all()
	for i := range k.perCPU {
		for which, n := range k.perCPU[i].N {
			*all[which] += n
		}
	}
	return s, nil
}

// all is the fields in the order of the programs' enum stat.
func (s *Stats) all() []*uint64 {
	return []*uint64{
		bpf.RDXStatSTAT_TICKS:          &s.Ticks,
		bpf.RDXStatSTAT_CANDIDATES:     &s.Candidates,
		bpf.RDXStatSTAT_LOSERS:         &s.Losers,
		bpf.RDXStatSTAT_HOLDS:          &s.Holds,
		bpf.RDXStatSTAT_HOLD_PENDING:   &s.HoldPending,
		bpf.RDXStatSTAT_SIGNAL_BLOCKED: &s.SignalBlocked,
		bpf.RDXStatSTAT_WAITS:          &s.Waits,
		bpf.RDXStatSTAT_FIRST_AGAIN:    &s.FirstAgain,
		bpf.RDXStatSTAT_FIRST_LATE:     &s.FirstLate,
		bpf.RDXStatSTAT_INTERRUPTS:     &s.Interrupts,
		bpf.RDXStatSTAT_SIGNAL_FAILED:  &s.SignalFailed,
		bpf.RDXStatSTAT_THROTTLED:      &s.Throttled,
		bpf.RDXStatSTAT_RING_FULL:      &s.RingFull,
		bpf.RDXStatSTAT_EXTRA_TRAPS:    &s.ExtraTraps,
		bpf.RDXStatSTAT_CLOCK_FAILED:   &s.ClockFailed,
		bpf.RDXStatSTAT_UNKNOWN:        &s.Unknown,
		bpf.RDXStatSTAT_STEPPING:       &s.Stepping,
		bpf.RDXStatSTAT_STACK_LOST:     &s.StackLost,
		bpf.RDXStatSTAT_OTHER_TRAPS:    &s.OtherTraps,
		bpf.RDXStatSTAT_OTHER_EARLY:    &s.OtherEarly,
		bpf.RDXStatSTAT_OTHER_PROCESS:  &s.OtherProcess,
		bpf.RDXStatSTAT_IN_KERNEL:      &s.InKernel,
		bpf.RDXStatSTAT_NO_MEMORY:      &s.NoMemory,
		bpf.RDXStatSTAT_NO_ADDRESS:     &s.NoAddress,
	}
}
