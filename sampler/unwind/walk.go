package unwind

import "encoding/binary"

// Stack is a copy of stack memory from address Base up: Data, and behind it Above, which several copies may share.
type Stack struct {
	Base  uint64
	Data  []byte
	Above []byte
}

// Load reads the 8 bytes at an address.
func (s *Stack) Load(addr uint64) (uint64, bool) {
	const size = 8
	off, copied := addr-s.Base, uint64(len(s.Data))
	switch {
	case off < copied && copied-off >= size:
		return binary.LittleEndian.Uint64(s.Data[off:]), true
	case off < copied: // both
		var b [size]byte
		if n := copy(b[:], s.Data[off:]); copy(b[n:], s.Above) < size-n {
			return 0, false
		}
		return binary.LittleEndian.Uint64(b[:]), true
	}
	if off -= copied; off > uint64(len(s.Above)) || uint64(len(s.Above))-off < size {
		return 0, false
	}
	return binary.LittleEndian.Uint64(s.Above[off:]), true
}

// Snapshot is what a stack is unwound from: a thread's registers, and a copy
// of its stack from the stack pointer up.
type Snapshot struct {
	Regs  Regs
	Stack Stack
}

// Frame is a function on the stack.
type Frame struct {
	// PC is where it is: of the leaf the next instruction, of its callers the
	// return address. What a signal has interrupted was called by nobody: there
	// it is the next instruction plus one, to be treated like the others.
	PC uint64
	// CFA is the stack pointer before the function was called: what lies from
	// there down to the CFA of the frame before is the function's own. 0 if
	// not known.
	CFA uint64
}

// End says how a walk ended.
type End uint8

const (
	Outermost    End = iota // at the thread's first function: the stack is complete
	NotCopied               // at an address beyond the copy of the stack
	UnknownCode             // in code of no known mapping, without frame pointers
	NoInfo                  // in a file that says nothing of the code, without frame pointers
	BadInfo                 // the information can't be read, or leads nowhere
	LostRegister            // a register is needed that is not known any more
	TooDeep                 // at MaxFrames
	NumEnds
)

func (e End) String() string {
	return [...]string{
		Outermost:    "complete",
		NotCopied:    "deeper than was copied",
		UnknownCode:  "code outside of known files, no frame pointers",
		NoInfo:       "code without unwind information or frame pointers",
		BadInfo:      "unwind information unusable",
		LostRegister: "register not recoverable",
		TooDeep:      "too many frames",
	}[e]
}

// MaxFrames of a stack.
const MaxFrames = 512

// Code is where an address of code belongs.
type Code struct {
	Table *Table // nil if it is in no file, or that is not readable
	PC    uint64 // address of the file
	Known bool   // it is in a mapping of code
}

// A Walker walks stacks. Its buffers are reused; it is for one goroutine.
type Walker struct {
	arch   *Arch
	find   func(pc uint64) Code
	frames []Frame
	regs   Regs
	mem    *Stack
	linked bool // the return address may still be in its register
	byFP   bool // the last step was by frame pointer
}

// NewWalker returns a Walker for code that find knows.
func NewWalker(arch *Arch, find func(pc uint64) Code) *Walker {
	return &Walker{arch: arch, find: find}
}

// Walk walks a stack and returns its frames, leaf first, at least one. They
// are valid until the next call.
func (w *Walker) Walk(s *Snapshot) ([]Frame, End) {
	w.regs, w.mem = s.Regs, &s.Stack
	if w.arch == AMD64 {
		w.regs.R[16] = w.regs.PC
	}
	w.regs.known = 1<<len(w.arch.names) - 1
	w.frames = w.frames[:0]
	w.linked, w.byFP = w.arch.linked, false
	interrupted := true // PC is of the next instruction, not behind a call
	for {
		if len(w.frames) == MaxFrames {
			return w.frames, TooDeep
		}
		frame := Frame{PC: w.regs.PC}
		if interrupted && len(w.frames) > 0 {
			frame.PC++
		}
		w.frames = append(w.frames, frame)
		var end End
		var more bool
		if interrupted, end, more = w.step(interrupted); !more {
			return w.frames, end
		}
	}
}

// step replaces the registers by those of the caller. signal: this frame is
// the trampoline of a signal handler, and the caller what was interrupted.
func (w *Walker) step(interrupted bool) (signal bool, end End, more bool) {
	pc := w.regs.PC
	if !interrupted {
		pc-- // the call may be the function's last instruction
	}
	code := w.find(pc)
	if code.Table == nil || code.Table.Go {
		end = NoInfo
		if code.Table == nil && !code.Known {
			end = UnknownCode
		}
		end, more = w.byFramePointer(end)
		return false, end, more
	}
	r, err := code.Table.row(code.PC)
	switch {
	case err == nil:
		return w.byRow(r)
	case err != errNoInfo:
		return false, BadInfo, false
	}
	end, more = w.byFramePointer(NoInfo)
	return false, end, more
}

// byRow steps by call frame information.
func (w *Walker) byRow(r *row) (signal bool, end End, more bool) {
	w.byFP = false
	cfa, end := w.cfa(r)
	if end != Outermost {
		return false, end, false
	}
	frame := &w.frames[len(w.frames)-1]
	next := w.regs
	for i := range r.rules {
		to := &r.rules[i]
		if to.kind == same {
			continue
		}
		v, ok, err := w.value(&to.rule, cfa)
		if err != nil {
			return false, BadInfo, false
		}
		if to.n == r.ra && !ok {
			frame.CFA = cfa
			switch to.kind {
			case undefined:
				return false, Outermost, false
			case register:
				return false, LostRegister, false
			}
			return false, NotCopied, false
		}
		next.set(to.n, v)
		if !ok {
			next.known &^= 1 << to.n
		}
	}
	ra := r.rule(r.ra).kind
	if ra == same && !w.linked {
		return false, BadInfo, false
	}
	pc, ok := next.get(uint64(r.ra))
	if !ok {
		return false, LostRegister, false
	}
	pc &= w.arch.codeMask
	if r.rule(w.arch.sp).kind == same {
		next.set(w.arch.sp, cfa)
	}
	// Calls nest: the caller's frame lies above, but for what a signal has
	// interrupted, which may be on another stack. A frame is empty only where
	// the return address is in a register.
	if sp := w.regs.R[w.arch.sp]; !r.signal && (cfa < sp || cfa == sp && ra != same && ra != register) {
		return false, BadInfo, false
	}
	frame.CFA = cfa
	if pc == 0 {
		return false, Outermost, false
	}
	w.setCaller(&next, pc)
	w.linked = r.signal && w.arch.linked
	return r.signal, Outermost, true
}

// setCaller makes next, with its code at pc, the frame to go on from.
func (w *Walker) setCaller(next *Regs, pc uint64) {
	w.regs = *next
	w.regs.PC = pc
	if w.arch == AMD64 {
		w.regs.set(16, pc) // rip and the return address share a number
	}
}

// cfa of a row; Outermost if it is known.
func (w *Walker) cfa(r *row) (cfa uint64, end End) {
	v, ok, err := w.value(&r.cfa, 0)
	switch {
	case err != nil:
		return 0, BadInfo
	case !ok && r.cfa.kind == valExpression:
		return 0, NotCopied
	case !ok:
		return 0, LostRegister
	}
	return v, Outermost
}

// value that a rule gives; ok is false if it is not known.
func (w *Walker) value(r *rule, cfa uint64) (v uint64, ok bool, err error) {
	defer recoverMalformed(&err)
	switch r.kind {
	case offset:
		v, ok = w.mem.Load(cfa + uint64(r.offset))
	case valOffset:
		v, ok = cfa+uint64(r.offset), true
	case register:
		v, ok = w.regs.get(uint64(r.reg))
		v += uint64(r.offset)
	case expression:
		if v, ok = evaluate(r.expr, &w.regs, w.mem, cfa, cfa != 0); ok {
			v, ok = w.mem.Load(v)
		}
	case valExpression:
		v, ok = evaluate(r.expr, &w.regs, w.mem, cfa, cfa != 0)
	case same, undefined:
	}
	return v, ok, nil
}

// byFramePointer steps over code that has no information, on the assumption
// that it keeps frame pointers: both architectures' lead to the caller's, above
// which is the return address. without is how the walk ends if it does not.
func (w *Walker) byFramePointer(without End) (end End, more bool) {
	fp, ok := w.regs.get(uint64(w.arch.fp))
	if !ok {
		return without, false
	}
	if fp == 0 && w.byFP {
		// By the ABIs the outermost frame's pointer is zero.
		return Outermost, false
	}
	if fp%8 != 0 || fp < w.regs.R[w.arch.sp] {
		return without, false
	}
	caller, ok1 := w.mem.Load(fp)
	pc, ok2 := w.mem.Load(fp + 8)
	if !ok1 || !ok2 {
		if fp-w.mem.Base < maxFPDistance {
			return NotCopied, false
		}
		return without, false
	}
	pc &= w.arch.codeMask
	if pc != 0 && !w.find(pc-1).Known {
		return without, false // the register was not a frame pointer
	}
	next := Regs{}
	next.set(w.arch.fp, caller)
	next.set(w.arch.sp, fp+16)
	w.frames[len(w.frames)-1].CFA = fp + 16
	if pc == 0 {
		return Outermost, false
	}
	w.setCaller(&next, pc)
	w.linked, w.byFP = false, true
	return Outermost, true
}

// maxFPDistance tells a frame pointer beyond the copy from a register that is
// used for something else.
const maxFPDistance = 1 << 20
