package sampler

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/operand"
)

// ReadsAhead says whether a Locator does more than find the next access.
const ReadsAhead = true

// Instructions allowed an access: where code does not touch memory, reading
// ahead ends.
const (
	firstInstructions = 4096
	perAccess         = 64
)

// Locator reads ahead of a held thread by interpreting from where it stands;
// the thread itself is not moved. It is for the tracing thread only.
type Locator struct {
	machine   *interp.Machine
	regs      interp.Regs
	memory    targetMemory
	operands  []operand.Access
	layout    interp.XSAVELayout
	xsave     []byte
	touched   map[uint64]touch
	blocks    map[uint64]struct{} // touched since the use
	accessing map[codeAddress]uint64
	// InSyscall: the thread that was looked at last stands in a system call. Who
	// has not looked yet may set it.
	// A sample never does; but the signal that holds it is sent by an
	// interrupt of its own, which may come some instructions later.
	InSyscall bool
	// StackTop of the thread to be looked at, from where on nothing need be
	// copied of its stack; 0 if that is not known.
	StackTop uint64
}

type codeAddress struct {
	pid int
	ip  uint64
}

// NewLocator returns a Locator, to be used again and again.
func NewLocator() *Locator {
	return &Locator{
		machine:   interp.New(),
		layout:    interp.ReadXSAVELayout(),
		xsave:     make([]byte, 16384), // AMX tile data included
		touched:   make(map[uint64]touch),
		blocks:    make(map[uint64]struct{}),
		accessing: make(map[codeAddress]uint64),
	}
}

// Ahead reads ahead of the held thread tid of process pid: to the access
// after the next skip ones, and up to burst accesses on from there. A reuse is
// that of an aligned block of so many bytes. pick(n) chooses one of n. The
// error is a *Declined: the sample is lost.
func (l *Locator) Ahead(pid, tid, skip, burst, block int, pick func(n int) int) (Ahead, error) {
	if err := l.readRegs(pid, tid, samplePages); err != nil {
		return Ahead{}, err
	}
	start := l.regs
	l.machine.Start(&l.regs, &l.memory)
	limit := limitFor(skip + 1)
	end := l.machine.Run(limit)
	all := l.machine.Accesses()
	if len(all) == 0 {
		return l.operand(end, pick)
	}
	if len(all) <= skip {
		// Not that many can be read ahead: take one of those that can.
		skip = pick(len(all))
		// The instructions allowed are as before, or it might not come as far.
		l.regs, l.memory.pages = start, samplePages
		l.machine.Start(&l.regs, &l.memory)
		l.machine.Run(interp.Limit{Accesses: skip + 1, Instructions: limit.Instructions})
		if all = l.machine.Accesses(); len(all) <= skip {
			return Ahead{}, &Declined{Reason: "code or data ahead changed while it was read"}
		}
	}
	l.machine.Regs(&l.regs)

	a := all[skip]
	ahead := Ahead{Use: Located{Addr: a.Addr, Size: int(a.Size), Store: a.Store, PC: a.PC, Next: l.regs.RIP}}
	ahead.Word = ahead.Use.Word(pick(ahead.Use.Words()))
	ahead.Before = instructionsTouching(all[:skip], a.Inst, ahead.Word)
	ahead.Half = halfLine(ahead.Word)
	for i := range ahead.Half {
		part := &ahead.Half[i]
		last := a.Inst
		if i > 0 {
			last++
		}
		part.Before = instructionsTouching(all, last, part.Word)
	}
	ahead.Stack = l.snapshot()

	l.follow(&ahead, all[skip+1:], burst, uint64(block))
	return ahead, nil
}

// follow looks for the reuse in rest, the other accesses of the use's own
// instruction, and then ahead of it.
func (l *Locator) follow(ahead *Ahead, rest []interp.Access, burst int, block uint64) {
	own := ahead.Word / block
	clear(l.blocks)
	for {
		for _, a := range rest {
			ahead.After++
			from, to := a.Addr/block, (a.Addr+uint64(a.Size)-1)/block
			if from <= own && own <= to {
				l.machine.Regs(&l.regs)
				ahead.Reuse, ahead.Distinct = ahead.After, 1+len(l.blocks)
				ahead.ReusePC, ahead.ReuseStack = a.PC, l.snapshot()
				ahead.End = interp.AccessesDone.String()
				return
			}
			for ; from <= to; from++ {
				l.blocks[from] = struct{}{}
			}
		}
		if ahead.After >= burst {
			ahead.End = interp.AccessesDone.String()
			return
		}
		end := l.machine.Run(interp.Limit{Accesses: 1, Instructions: perAccess})
		rest = l.machine.Accesses()
		if len(rest) == 0 {
			ahead.End = end.Cause.String()
			if errors.Is(end.Err, errPages) {
				ahead.End = errPages.Error()
			}
			if end.Cause == interp.Unsupported {
				ahead.End += ": " + end.Op
			}
			return
		}
	}
}

// Stretch looks for a stretch of about n accesses that begins at least lead
// accesses from where the held thread stands. It returns false if there is
// none: the code ahead can't be read that far, or keeps touching the same few
// words.
func (l *Locator) Stretch(pid, tid, lead, n int) (Stretch, bool) {
	if l.readRegs(pid, tid, stretchPages) != nil {
		return Stretch{}, false
	}
	l.machine.Start(&l.regs, &l.memory)
	l.machine.Run(limitFor(lead + 2*n))
	clear(l.touched)
	all := l.machine.Accesses()
	// Where the code can't be read so far ahead, half of what there is leads.
	lead = min(lead, len(all)/2)
	n = min(n, len(all)/4)
	if n < shortest {
		return Stretch{}, false
	}
	clear(l.touched)
	var s Stretch
	first := -1
	for i, a := range all {
		word := a.Addr / wordSize * wordSize
		seen := l.touched[word]
		switch {
		case a.Inst == seen.inst && seen.times > 0: // the same trap
			continue
		case seen.times > skipMost || overlaps(a, word+wordSize):
		case first < 0 && i >= lead:
			first = i
			s.From, s.FromSkip, s.PC = word, seen.times, a.PC
		case first >= 0 && i-first >= n && (seen.times == 0 || seen.index < first):
			s.To, s.ToSkip, s.Accesses = word, seen.times, i-first
			return s, true
		}
		for w := word; overlaps(a, w); w += wordSize {
			t := l.touched[w]
			l.touched[w] = touch{t.times + 1, i, a.Inst}
		}
	}
	return Stretch{}, false
}

// shortest stretch worth timing, in accesses.
const shortest = 256

// skipMost bounds the traps a thread is charged with before an end of a
// stretch.
const skipMost = 3

// touch is what is known of a word's touches ahead of a held thread.
type touch struct {
	times, index int
	inst         int32
}

func limitFor(accesses int) interp.Limit {
	return interp.Limit{Accesses: accesses, Instructions: firstInstructions + perAccess*accesses}
}

func (l *Locator) readRegs(pid, tid, pages int) error {
	var pr unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &pr); err != nil {
		return &Declined{Reason: "registers not readable"}
	}
	if pr.Cs != userCS {
		return &Declined{Reason: "32-bit code"}
	}
	l.InSyscall = int64(pr.Orig_rax) >= 0
	r := &l.regs
	r.GPR = [16]uint64{pr.Rax, pr.Rcx, pr.Rdx, pr.Rbx, pr.Rsp, pr.Rbp, pr.Rsi, pr.Rdi,
		pr.R8, pr.R9, pr.R10, pr.R11, pr.R12, pr.R13, pr.R14, pr.R15}
	r.RIP, r.Flags = pr.Rip, pr.Eflags
	r.FSBase, r.GSBase = pr.Fs_base, pr.Gs_base
	r.LoadVector = func(v *interp.Vector) error { return readVector(tid, l.layout, l.xsave, v) }
	l.memory.pid, l.memory.pages = pid, pages
	return nil
}

// userCS is the code segment of 64-bit user code.
const userCS = 0x33

func overlaps(a interp.Access, word uint64) bool {
	return a.Addr < word+wordSize && word < a.Addr+uint64(a.Size)
}

// instructionsTouching counts the instructions before number inst that touch
// word, which trap once each.
func instructionsTouching(accesses []interp.Access, inst int32, word uint64) int {
	n, last := 0, int32(-1)
	for _, a := range accesses {
		if a.Inst < inst && a.Inst != last && overlaps(a, word) {
			last = a.Inst
			n++
		}
	}
	return n
}

// operand decodes an instruction that cannot be interpreted: it need only be
// known what it touches, not what comes of it.
func (l *Locator) operand(end interp.End, pick func(n int) int) (Ahead, error) {
	if end.Cause != interp.Unsupported {
		return Ahead{}, &Declined{Reason: "no access before " + end.Cause.String()}
	}
	l.machine.Regs(&l.regs)
	r := &l.regs
	unsupported := &Declined{Reason: "instruction not supported", Op: end.Op}
	code, err := l.memory.code(r.RIP)
	if err != nil {
		return Ahead{}, &Declined{Reason: "code not readable"}
	}
	in, err := operand.DecodeX86(code)
	if err != nil || in.Branch != operand.BranchNone {
		return Ahead{}, unsupported
	}
	regs := operand.X86Regs{GPR: r.GPR, RIP: r.RIP, RFLAGS: r.Flags, FSBase: r.FSBase, GSBase: r.GSBase}
	l.operands, err = in.Accesses(&regs, l.operands[:0])
	if err != nil || len(l.operands) == 0 {
		return Ahead{}, unsupported
	}
	a := l.operands[pick(len(l.operands))]
	if a.Approx {
		return Ahead{}, &Declined{Reason: "masked or gathered access", Op: end.Op}
	}
	use := Located{Addr: a.Addr, Size: a.Size, Store: a.Store, PC: r.RIP, Next: r.RIP + uint64(in.Len)}
	word := use.Word(pick(use.Words()))
	ahead := Ahead{Use: use, Word: word, Half: halfLine(word), Stack: l.snapshot(), End: end.Cause.String() + ": " + end.Op}
	for i := range ahead.Half[1:] {
		part := &ahead.Half[1+i]
		for _, a := range l.operands {
			if (Located{Addr: a.Addr, Size: a.Size}).touches(part.Word) {
				part.Before = 1
			}
		}
	}
	return ahead, nil
}

// Reported completes an access of which a source has reported the address and
// the instruction: its size is not in a report.
func (l *Locator) Reported(pid int, pc, addr uint64, store bool) Located {
	l.memory.pid = pid
	l.operands = l.operands[:0]
	code, err := l.memory.code(pc)
	if err != nil {
		return reported(nil, addr, store)
	}
	if in, err := operand.DecodeX86(code); err == nil {
		if in.Stores() && !in.Loads() {
			store = true
		}
		// Sizes do not depend on the registers.
		var regs operand.X86Regs
		if all, err := in.Accesses(&regs, l.operands); err == nil {
			l.operands = all
		}
	}
	return reported(l.operands, addr, store)
}

// Accessing is an address inside the instruction that made the access after
// which the trap reported ip: the one that ends there. Where no accessing
// instruction ends (a call or return led there), it is ip.
func (l *Locator) Accessing(pid int, ip uint64) uint64 {
	key := codeAddress{pid, ip}
	if pc, ok := l.accessing[key]; ok {
		return pc
	}
	l.memory.pid = pid
	pc := l.memory.before(ip)
	if len(l.accessing) > maxAccessing {
		clear(l.accessing)
	}
	l.accessing[key] = pc
	return pc
}

const maxAccessing = 1 << 16

// maxInst is the length of the longest x86 instruction.
const maxInst = 15

var (
	errShort = errors.New("short read of the target's memory")
	errPages = errors.New("page budget spent")
)

// Pages a hold may copy, at about a microsecond each: code that jumps about
// in memory is read less far ahead, not held longer.
const (
	samplePages  = 24
	stretchPages = 2048
)

// targetMemory reads a process's memory; there is no way to write.
type targetMemory struct {
	pid   int
	pages int // that may still be read
	buf   [maxInst]byte

	userfault userfault
}

func (m *targetMemory) read(addr uint64, b []byte) (int, error) {
	if !m.userfault.allows(m.pid, addr, len(b)) {
		return 0, errUserfault
	}
	return unix.ProcessVMReadv(m.pid,
		[]unix.Iovec{{Base: &b[0], Len: uint64(len(b))}},
		[]unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}, 0)
}

// ReadPage implements interp.Memory.
func (m *targetMemory) ReadPage(addr uint64, buf *[4096]byte) error {
	if m.pages == 0 {
		return errPages
	}
	m.pages--
	n, err := m.read(addr, buf[:])
	if err == nil && n < len(buf) {
		err = errShort
	}
	return err
}

// code reads as much of the instruction at ip as is mapped.
func (m *targetMemory) code(ip uint64) ([]byte, error) {
	n, err := m.read(ip, m.buf[:])
	if n > 0 {
		return m.buf[:n], nil
	}
	// The page after it may be missing.
	if room := 4096 - ip%4096; room < maxInst {
		n, err = m.read(ip, m.buf[:room])
	}
	if n > 0 {
		return m.buf[:n], nil
	}
	return nil, err
}

func (m *targetMemory) before(ip uint64) uint64 {
	b := m.buf[:]
	if n, err := m.read(ip-maxInst, b); err != nil || n < maxInst {
		return ip
	}
	for n := 1; n <= maxInst; n++ {
		if in, err := operand.DecodeX86(b[maxInst-n:]); err == nil && int(in.Len) == n && in.Touches() {
			return ip - uint64(n)
		}
	}
	return ip
}
