package interp

import (
	"errors"
	"fmt"
)

// Machine interprets one thread at a time. It is made for reuse: its buffers
// and decoded code stay between bursts. It is not safe for concurrent use.
type Machine struct {
	r       [32]uint64 // 0-15 general registers, 16 always zero
	flags   uint64
	rip     uint64
	pc      uint64    // of the instruction that runs
	segBase [4]uint64 // by inst.seg: none, fs, gs

	vec    Vector
	vecOK  bool
	fpOK   bool // MXCSR is the default rounding with exceptions masked
	exLost bool // the sticky flags in MXCSR are no longer exact
	loader func(*Vector) error
	tmp    Vec // result being built
	src    Vec // operand loaded from memory

	other     inst // an instruction with another form
	otherForm vecForm

	Pages
	code   CodeCache[inst]
	single [1]inst
	window [16]byte

	acc      []Access
	ofRuns   []Access // where accesses are kept while those of Append are others
	appends  bool
	base     int // instructions of the Runs before, since Append
	accStart int // accesses of completed instructions and iterations
	max      int // of the current Run
	done     int

	time Time
	ran  int // instructions of the Runs before, since Start

	follows bool
	path    []uint64 // instructions of the current Run, if it is followed

	waypoints Waypoints
	stubs     *stubs
}

// New returns a machine to be given a thread by Start.
func New() *Machine {
	m := &Machine{code: NewCodeCache[inst]()}
	m.Pages = NewPages(m.code.Written)
	return m
}

// Start begins a burst: regs are copied, everything read or written by an
// earlier burst is forgotten.
func (m *Machine) Start(regs *Regs, mem Memory) {
	m.setRegs(regs)
	m.Reset(mem)
	m.code.Start()
	m.waypoints.Set(nil)
}

// Rewind takes the burst back to its start, whose registers regs are: memory is
// as it was read then.
func (m *Machine) Rewind(regs *Regs) {
	m.setRegs(regs)
	m.Undo()
	m.code.Undone()
}

func (m *Machine) setRegs(regs *Regs) {
	copy(m.r[:16], regs.GPR[:])
	m.rip, m.flags = regs.RIP, regs.Flags
	m.segBase = [4]uint64{0, regs.FSBase, regs.GSBase, 0}
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
	copy(regs.GPR[:], m.r[:16])
	regs.RIP, regs.Flags = m.rip, m.flags
	regs.FSBase, regs.GSBase = m.segBase[segFS], m.segBase[segGS]
	if m.vecOK {
		regs.Vector, regs.LoadVector = m.vec, nil
	}
}

// Waypoints are where Runs end, with Arrived.
func (m *Machine) Waypoints() *Waypoints { return &m.waypoints }

// Called is the system call that Run has ended at.
func (m *Machine) Called() (number uint64, args [6]uint64) {
	return m.r[RAX], [6]uint64{m.r[RDI], m.r[RSI], m.r[RDX], m.r[10], m.r[8], m.r[9]}
}

// Return goes on behind a system call that Run has ended at, as if the kernel had
// returned that result. What it writes is Store's.
func (m *Machine) Return(result uint64) {
	const length = 2
	m.rip += length
	m.r[RAX], m.r[RCX], m.r[R11] = result, m.rip, m.flags
}

// Append has Runs add their accesses to those, and count instructions on from one to the next, until EndAppend: nothing need be copied.
func (m *Machine) Append(to []Access) { m.ofRuns, m.acc, m.appends, m.base = m.acc, to, true, 0 }

// EndAppend ends that.
func (m *Machine) EndAppend() { m.acc, m.ofRuns, m.appends, m.base = m.ofRuns, nil, false, 0 }

// Accesses are those of the last Run, in order, or all since Append. The slice is valid until the
// next Run.
func (m *Machine) Accesses() []Access { return m.acc }

// Follow has Runs keep the addresses of their instructions, for Path.
func (m *Machine) Follow(on bool) { m.follows = on }

// Path is the addresses of the instructions of the last Run, in order, the one that ended it among them. The slice is valid until
// the next Run.
func (m *Machine) Path() []uint64 { return m.path }

// Instructions touch memory before they change registers, so that after a Halt
// the state is that before the instruction, or for a string instruction between two
// iterations.
func fault() { panic(Halt{Cause: Fault}) }

// Run interprets until a limit or the end of the burst is reached. After
// AccessesDone and InstructionLimit another Run goes on from there.
func (m *Machine) Run(limit Limit) (end End) {
	m.path = m.path[:0]
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
			h, ok := r.(Halt)
			if !ok {
				panic(r)
			}
			m.rip = m.pc
			m.acc = m.acc[:m.accStart]
			end.Cause, end.Err = h.Cause, h.Err
			if h.Cause == Unsupported || h.Cause == Fault {
				end.Op = m.nameAt(m.pc)
			}
		}
	}()
	return End{Cause: m.loop(limit)}
}

func (m *Machine) loop(limit Limit) Cause {
	var run []inst // begins with the last instruction
	for len(m.acc) < m.max {
		if m.done >= limit.Instructions {
			return InstructionLimit
		}
		rip := m.rip
		if m.waypoints.At(rip) && m.waypoints.Arrived(rip, m.r[:]) {
			return Arrived
		}
		if m.follows {
			m.path = append(m.path, rip)
		}
		m.pc = rip
		m.accStart = len(m.acc)
		// Mostly the one behind it is next; unless code was written to.
		if len(run) > 1 && run[1].at == rip && m.code.Last != nil {
			run = run[1:]
		} else {
			run = m.fetch(rip)
		}
		in := &run[0]
		fn := in.fn
		if in.flags != 0 {
			fn = m.prepare(in, &limit)
		}
		m.rip = in.next
		fn(m, in)
		m.done++
	}
	return AccessesDone
}

// prepare does what few instructions need before they run, and says what runs
// them.
func (m *Machine) prepare(in *inst, limit *Limit) func(*Machine, *inst) {
	if in.flags&isLocked != 0 && limit.StopLocked {
		panic(Halt{Cause: Locked})
	}
	if in.flags&usesVector != 0 && !m.vecOK {
		if err := m.loader(&m.vec); err != nil {
			panic(Halt{Cause: Unreadable, Err: fmt.Errorf("read vector registers: %w", err)})
		}
		m.vecReady()
	}
	if in.nat != nil && in.flags&usesX87 != 0 && m.vec.FCW&x87Masks != x87Masks && m.nativeOK() {
		return x87Native
	}
	if in.flags&usesFloat == 0 {
		return in.fn
	}
	if in.nat != nil && m.nativeOK() {
		return in.nat.run
	}
	if !m.fpOK {
		panic(Halt{Cause: Unsupported, Err: errMXCSR})
	}
	if in.raise == nil && !in.sae {
		m.exLost = true
	}
	return in.fn
}

var errMXCSR = errors.New("MXCSR asks for a rounding, flushing or exception mode that is not interpreted")

// vecReady notes that vec is filled. The rounding mode must be to nearest,
// denormals must be kept and all exceptions masked.
func (m *Machine) vecReady() {
	const modes, masked = 0xffc0 | misalignedSSE, 0x1f80
	m.vecOK = true
	m.fpOK = m.vec.MXCSR&modes == masked
}
