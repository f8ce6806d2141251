package a64

import (
	"errors"
	"fmt"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

// Machine interprets one thread at a time. It is made for reuse: its buffers
// and decoded code stay between bursts. It is not safe for concurrent use.
type Machine struct {
	r     [64]uint64 // 0-30, and see regSP
	nzcv  uint8
	pc    uint64 // of the instruction that runs
	next  uint64 // of the one after it
	tpidr uint64
	dczid uint64

	// What the last load-exclusive was of; size 0: none.
	exclusive     uint64
	exclusiveSize uint8

	vec    Vector
	vecOK  bool
	fpOK   bool // FPCR is zero: rounding to nearest, nothing flushed, nothing trapped
	exLost bool // the sticky flags in FPSR are no longer exact
	loader func(*Vector) error

	mem  interp.Pages
	code interp.CodeCache[inst]

	acc      []interp.Access
	ofRuns   []interp.Access // where accesses are kept while those of Append are others
	appends  bool
	base     int // instructions of the Runs before, since Append
	accStart int // accesses of completed instructions
	max      int // of the current Run
	done     int

	time interp.Time
	ran  int // instructions of the Runs before, since Start

	waypoints interp.Waypoints
}

// New returns a machine to be given a thread by Start.
func New() *Machine {
	m := &Machine{code: interp.NewCodeCache[inst]()}
	m.mem = interp.NewPages(m.code.Written)
	return m
}

// Start begins a burst: regs are copied, everything read or written by an
// earlier burst is forgotten.
func (m *Machine) Start(regs *Regs, mem interp.Memory) {
	m.setRegs(regs)
	m.mem.Reset(mem)
	m.code.Start()
	m.waypoints.Set(nil)
}

// Rewind takes the burst back to its start, whose registers regs are: memory is
// as it was read then.
func (m *Machine) Rewind(regs *Regs) {
	m.setRegs(regs)
	m.mem.Undo()
	m.code.Undone()
}

func (m *Machine) setRegs(regs *Regs) {
	copy(m.r[:31], regs.X[:])
	m.r[regSP], m.next = regs.SP, regs.PC
	m.nzcv = uint8(regs.NZCV >> flagShift & 15)
	m.tpidr, m.dczid = regs.TPIDR, regs.DCZID
	m.exclusiveSize = 0 // the exception that stopped the thread has cleared the monitor
	m.loader = regs.LoadVector
	m.ran, m.time.Read = 0, false
	m.vecOK, m.exLost = false, false
	if m.loader == nil {
		m.vec = regs.Vector
		m.vecReady()
	}
}

// Regs stores the state before the next instruction. Vector is left alone if
// it was never loaded.
func (m *Machine) Regs(regs *Regs) {
	copy(regs.X[:], m.r[:31])
	regs.SP, regs.PC = m.r[regSP], m.next
	regs.NZCV = uint64(m.nzcv) << flagShift
	regs.TPIDR, regs.DCZID = m.tpidr, m.dczid
	if m.vecOK {
		regs.Vector, regs.LoadVector = m.vec, nil
	}
}

// SetTime says what CNTVCT_EL0 is at Start, for the bursts to come until it is told anew.
func (m *Machine) SetTime(ticks uint64) { m.time = interp.Time{Ticks: ticks} }

// Time is what the clock was taken to be.
func (m *Machine) Time() interp.Time { return m.time }

// Waypoints are where Runs end, with Arrived.
func (m *Machine) Waypoints() *interp.Waypoints { return &m.waypoints }

// Called is the system call that Run has ended at.
func (m *Machine) Called() (number uint64, args [6]uint64) {
	return m.r[8], [6]uint64(m.r[:6])
}

// Return goes on behind a system call that Run has ended at, as if the kernel had
// returned that result. What it writes is Store's.
func (m *Machine) Return(result uint64) {
	m.next += 4
	m.r[0] = result
	m.exclusiveSize = 0
}

// Store writes b to the burst's own copies from outside of a run, as the kernel
// does; false if that memory can't be had.
func (m *Machine) Store(addr uint64, b []byte) bool { return m.mem.Store(addr, b) }

// Forget drops the burst's copies of the pages from start to limit: what they hold is
// asked for anew.
func (m *Machine) Forget(start, limit uint64) { m.mem.Forget(start, limit) }

// Prefetch reads the pages that the burst is likely to need, judged by the last ones of the same owner.
func (m *Machine) Prefetch(owner int) int { return m.mem.Prefetch(owner) }

// Unchanged says whether code that the burst had from earlier ones is what the memory holds.
func (m *Machine) Unchanged() bool { return m.mem.Unchanged() }

// Drop forgets what the last burst has read, and learns from it for Prefetch.
func (m *Machine) Drop() { m.mem.Drop() }

// ForgetOwner forgets the pages of an owner's bursts.
func (m *Machine) ForgetOwner(owner int) { m.mem.ForgetOwner(owner) }

// Load reads b from the burst's copies from outside of a run; false if that memory
// can't be had.
func (m *Machine) Load(addr uint64, b []byte) bool { return m.mem.Load(addr, b) }

// Recycle is Pages.Recycle.
func (m *Machine) Recycle() { m.mem.Recycle() }

// Reserve is Pages.Reserve.
func (m *Machine) Reserve(pages int) { m.mem.Reserve(pages) }

// Held is Pages.Held.
func (m *Machine) Held(addr uint64, n uint8) (uint64, bool) { return m.mem.Held(addr, n) }

// Append has Runs add their accesses to those, and count instructions on from one to the next, until EndAppend: nothing need be copied.
func (m *Machine) Append(to []interp.Access) { m.ofRuns, m.acc, m.appends, m.base = m.acc, to, true, 0 }

// EndAppend ends that.
func (m *Machine) EndAppend() { m.acc, m.ofRuns, m.appends, m.base = m.ofRuns, nil, false, 0 }

// Accesses are those of the last Run, in order, or all since Append. The slice is valid until the
// next Run.
func (m *Machine) Accesses() []interp.Access { return m.acc }

// Overlay puts what the burst has stored over a copy of the target's memory at
// addr, so that b is that memory as the burst sees it.
func (m *Machine) Overlay(addr uint64, b []byte) { m.mem.Overlay(addr, b) }

// StoredTo is how many of the n bytes at addr, from the first on, lie up to the end of the last page among
// them that the burst has stored to.
func (m *Machine) StoredTo(addr uint64, n int) int { return m.mem.StoredTo(addr, n) }

// Run interprets until a limit or the end of the burst is reached. After
// AccessesDone and InstructionLimit another Run goes on from there.
func (m *Machine) Run(limit interp.Limit) (end interp.End) {
	if !m.appends {
		m.acc = m.acc[:0]
	}
	m.accStart, m.done, m.max = len(m.acc), 0, len(m.acc)+limit.Accesses
	defer func() {
		end.Instructions = m.done
		m.ran += m.done
		if m.appends {
			m.base += m.done
		}
		if r := recover(); r != nil {
			h, ok := r.(interp.Halt)
			if !ok {
				panic(r)
			}
			m.next = m.pc
			m.acc = m.acc[:m.accStart]
			end.Cause, end.Err = h.Cause, h.Err
			if h.Cause == interp.Unsupported || h.Cause == interp.Fault {
				end.Op = m.nameAt(m.pc)
			}
		}
	}()
	return interp.End{Cause: m.loop(limit)}
}

func (m *Machine) loop(limit interp.Limit) interp.Cause {
	for len(m.acc) < m.max {
		if m.done >= limit.Instructions {
			return interp.InstructionLimit
		}
		if m.waypoints.At(m.next) && m.waypoints.Arrived(m.next, m.r[:]) {
			return interp.Arrived
		}
		m.pc = m.next
		m.accStart = len(m.acc)
		in := m.fetch(m.pc)
		if in.flags != 0 {
			m.prepare(in, &limit)
		}
		m.next = m.pc + 4
		in.fn(m, in)
		m.done++
	}
	return interp.AccessesDone
}

// prepare does what few instructions need before they run.
func (m *Machine) prepare(in *inst, limit *interp.Limit) {
	if in.flags&isLocked != 0 && limit.StopLocked {
		panic(interp.Halt{Cause: interp.Locked})
	}
	if in.flags&usesVector != 0 && !m.vecOK {
		if err := m.loader(&m.vec); err != nil {
			panic(interp.Halt{Cause: interp.Unreadable, Err: fmt.Errorf("read vector registers: %w", err)})
		}
		m.vecReady()
	}
	if in.flags&usesFloat != 0 {
		if !m.fpOK {
			panic(interp.Halt{Cause: interp.Unsupported, Err: errFPCR})
		}
		m.exLost = true
	}
}

var errFPCR = errors.New("FPCR asks for a rounding, flushing or exception mode that is not interpreted")

// vecReady notes that vec is filled.
func (m *Machine) vecReady() {
	m.vecOK = true
	m.fpOK = m.vec.FPCR == 0
}

// Instructions touch memory before they change registers, so that after a Halt
// the state is that before the instruction.
func fault(*Machine, *inst)       { panic(interp.Halt{Cause: interp.Fault}) }
func unsupported(*Machine, *inst) { panic(interp.Halt{Cause: interp.Unsupported}) }
func enterKernel(*Machine, *inst) { panic(interp.Halt{Cause: interp.Syscall}) }
func nop(*Machine, *inst)         {}

// canonical is an address without the top byte, which the CPU ignores.
func canonical(addr uint64) uint64 { return uint64(int64(addr<<8) >> 8) }

func (m *Machine) log(addr uint64, n int, store bool) {
	m.acc = append(m.acc, interp.Access{PC: m.pc, Addr: addr, Size: uint16(n), Inst: int32(m.base + m.done), Store: store})
}
