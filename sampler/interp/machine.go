package interp

import (
	"errors"
	"fmt"
)

// Cause says why a burst ended.
type Cause uint8

const (
	AccessesDone     Cause = iota // the accesses asked for are done
	InstructionLimit              // the instructions allowed are done
	Syscall                       // at a system call
	Unsupported                   // at an instruction that End.Op names
	Fault                         // at an instruction that would raise an exception
	Unreadable                    // at an access to a page that cannot be read
	Locked                        // at an atomic access, if Limit.StopLocked
	MemoryLimit                   // more pages touched than a burst may hold
	numCauses
)

var causeNames = [numCauses]string{"accesses done", "instruction limit", "system call", "unsupported instruction",
	"fault", "unreadable page", "atomic access", "memory limit"}

func (c Cause) String() string {
	if c >= numCauses {
		return "unknown"
	}
	return causeNames[c]
}

// Limit says how far to read ahead.
type Limit struct {
	// Accesses ends the burst once this many are done. The instruction that
	// reaches the number is completed, so there can be a few more; a string
	// instruction stops between two iterations.
	Accesses int
	// Instructions bounds the burst where code does not access memory. There
	// is no default: with zero nothing is run.
	Instructions int
	// StopLocked ends the burst at atomic read-modify-writes, which other
	// threads may see or contend for.
	StopLocked bool
}

// End is how a burst ended.
type End struct {
	Cause        Cause
	Op           string // mnemonic or opcode, for Unsupported and Fault
	Instructions int    // completed
	Err          error  // of Memory or LoadVector, with Unreadable
}

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

	mem   Memory
	tlb   [tlbSize]*page
	pages map[uint64]*page
	pool  []*page
	used  int

	code   map[uint64]*codePage
	cur    *codePage
	burst  uint64
	single inst
	window [16]byte

	acc      []Access
	accStart int // accesses of completed instructions and iterations
	max      int // of the current Run
	done     int
}

// none is what empty TLB entries point to: no address has its number.
var none = &page{num: ^uint64(0)}

// New returns a machine to be given a thread by Start.
func New() *Machine {
	return &Machine{pages: make(map[uint64]*page), code: make(map[uint64]*codePage)}
}

// Start begins a burst: regs are copied, everything read or written by an
// earlier burst is forgotten.
func (m *Machine) Start(regs *Regs, mem Memory) {
	m.setRegs(regs)
	m.mem = mem
	clear(m.pages)
	m.used = 0
	for i := range m.tlb {
		m.tlb[i] = none
	}
	m.burst++
	m.cur = nil
}

// Rewind takes the burst back to its start, whose registers regs are: memory is
// as it was read then.
func (m *Machine) Rewind(regs *Regs) {
	m.setRegs(regs)
	for _, p := range m.pages {
		if p.dirty {
			p.data, p.dirty = *p.read, false
			if p.code != nil {
				m.codeWritten(p)
			}
		}
	}
	m.cur = nil
}

func (m *Machine) setRegs(regs *Regs) {
	copy(m.r[:16], regs.GPR[:])
	m.rip, m.flags = regs.RIP, regs.Flags
	m.segBase = [4]uint64{0, regs.FSBase, regs.GSBase, 0}
	m.loader = regs.LoadVector
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

// Accesses are those of the last Run, in order. The slice is valid until the
// next Run.
func (m *Machine) Accesses() []Access { return m.acc }

// halt is the panic value that ends a burst from inside an instruction.
// Instructions touch memory before they change registers, so the state is that
// before the instruction, or for a string instruction between two iterations.
type halt struct {
	cause Cause
	err   error
}

func fault() { panic(halt{cause: Fault}) }

// Run interprets until a limit or the end of the burst is reached. After
// AccessesDone and InstructionLimit another Run goes on from there.
func (m *Machine) Run(limit Limit) (end End) {
	m.acc = m.acc[:0]
	m.accStart, m.done, m.max = 0, 0, limit.Accesses
	defer func() {
		end.Instructions = m.done
		if r := recover(); r != nil {
			h, ok := r.(halt)
			if !ok {
				panic(r)
			}
			m.rip = m.pc
			m.acc = m.acc[:m.accStart]
			end.Cause, end.Err = h.cause, h.err
			if h.cause == Unsupported || h.cause == Fault {
				end.Op = m.nameAt(m.pc)
			}
		}
	}()
	return End{Cause: m.loop(limit)}
}

func (m *Machine) loop(limit Limit) Cause {
	for len(m.acc) < m.max {
		if m.done >= limit.Instructions {
			return InstructionLimit
		}
		m.pc = m.rip
		m.accStart = len(m.acc)
		in := m.fetch(m.rip)
		if in.flags != 0 {
			m.prepare(in, &limit)
		}
		m.rip = in.next
		in.fn(m, in)
		m.done++
	}
	return AccessesDone
}

// prepare does what few instructions need before they run.
func (m *Machine) prepare(in *inst, limit *Limit) {
	if in.flags&isLocked != 0 && limit.StopLocked {
		panic(halt{cause: Locked})
	}
	if in.flags&usesVector != 0 && !m.vecOK {
		if err := m.loader(&m.vec); err != nil {
			panic(halt{cause: Unreadable, err: fmt.Errorf("read vector registers: %w", err)})
		}
		m.vecReady()
	}
	if in.flags&usesFloat != 0 {
		if !m.fpOK {
			panic(halt{cause: Unsupported, err: errMXCSR})
		}
		if in.raise == nil && !in.sae {
			m.exLost = true
		}
	}
}

var errMXCSR = errors.New("MXCSR asks for a rounding, flushing or exception mode that is not interpreted")

// vecReady notes that vec is filled. The rounding mode must be to nearest,
// denormals must be kept and all exceptions masked.
func (m *Machine) vecReady() {
	const modes, masked = 0xffc0, 0x1f80
	m.vecOK = true
	m.fpOK = m.vec.MXCSR&modes == masked
}
