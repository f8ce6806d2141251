package ahead

import (
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/operand"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Located is an access that a held thread is about to make.
type Located struct {
	Addr  uint64
	Size  int // bytes
	Store bool
	PC    uint64 // of the accessing instruction
	Next  uint64 // where a trap reports it: behind it on x86-64, at it on arm64; of what may be watched; 0: not known
}

// Words is the number of aligned words the access overlaps.
func (l Located) Words() int { return l.Blocks(sampler.WordSize) }

// Blocks is the number of aligned blocks of so many bytes it overlaps.
func (l Located) Blocks(bytes int) int {
	return int((l.Addr+uint64(max(l.Size, 1))-1)/uint64(bytes)-l.Addr/uint64(bytes)) + 1
}

// touches says whether the access overlaps the aligned word.
func (l Located) touches(word uint64) bool {
	return l.Addr < word+sampler.WordSize && word < l.Addr+uint64(l.Size)
}

// Word is the address of the i-th of them.
func (l Located) Word(i int) uint64 { return (l.Addr/sampler.WordSize + uint64(i)) * sampler.WordSize }

// reported is the access at addr that an instruction made, by the operands it
// has: of those in the given direction the first, for that is as much as a
// source tells. Without any it is one byte.
func reported(operands []operand.Access, addr uint64, store bool) Located {
	use := Located{Addr: addr, Size: 1, Store: store}
	for _, a := range operands {
		if a.Store == store && !a.Approx && a.Size > 0 {
			use.Size = a.Size
			break
		}
	}
	return use
}

// Ahead is what reading ahead of a held thread has found.
type Ahead struct {
	// Followed is the access that may be watched: one, at random, of those that are
	// open, if there are any. It stands for all of them.
	Followed
	// Others are further ones of the same hold, where they were told of with it.
	Others []Followed
	// Classified is how many touches of blocks are known to be reused or to be open when reading ended, and Open how many
	// of them are.
	Classified, Open int
	// Before is the number of instructions that touch Word before Use does:
	// traps to let pass.
	Before int
	// LineBefore is the same for all of Word's line.
	LineBefore int
	// Half is the half line with Word in it: Word, the other word of its
	// aligned pair, the other two.
	Half [4]Part
	// Accesses is how many were read ahead, and Touches how many blocks each of them
	// overlaps, added up: the unit of reuse times. An access to several blocks
	// touches one after the other.
	Accesses, Touches int
	// Instructions that were interpreted for them, and maybe some more.
	Instructions int
	// End says why reading ahead ended: "accesses done" if nothing was in
	// the way.
	End string
	// ReadTime says that the processor's clock was read on the way: what it was taken to be is a guess.
	ReadTime bool
}

// Accessing is the instruction that made an access.
type Accessing struct {
	PC    uint64
	Store bool
	// Called says that it was the call of the function that the thread stands at the
	// entry of: a stack taken now has that function's frame too many.
	Called bool
}

// Followed is a sampled access and what comes after it.
type Followed struct {
	// Share is what part of what its hold tells of it stands for.
	Share float64
	// Use is the access, and Word one of the words it overlaps: of its blocks each is
	// as likely.
	Use  Located
	Word uint64
	// Stack is the call stack before the use's instruction.
	Stack *unwind.Snapshot

	// At is Use's touch of Word's block, an index into Locator.Touched.
	At int

	// Reuse is the reuse time in touches of blocks if the next access to Word's block
	// was read ahead, and else 0; ReusePC is its instruction, ReuseStack its
	// call stack. Distinct counts the different blocks touched from Use on
	// until then, or without a Reuse in what was read ahead, Word's own among them.
	Reuse      int
	Distinct   int
	ReusePC    uint64
	ReuseStack *unwind.Snapshot
	// Heads say how many of the touches that it stands for are in each of the hold's heads, but not in the one before; nil where these
	// are not told of.
	Heads []uint16
	// After is the number of touches read ahead after Use's. Without a Reuse
	// its time is greater.
	After int
}

// Part is a word of a half line, and how many traps at it are to be let pass:
// those before the use, and but for the word of the use that of the use's own
// instruction.
type Part struct {
	Word   uint64
	Before int
}

// halfLine are the words of the half line, 32 bytes, that word is in.
func halfLine(word uint64) (h [4]Part) {
	const pair = 2 * sampler.WordSize
	other := word &^ (2*pair - 1)
	if word&pair == 0 {
		other += pair
	}
	h[0].Word, h[1].Word = word, word^sampler.WordSize
	h[2].Word, h[3].Word = other, other+sampler.WordSize
	return h
}

// Declined says why no access was located. It is a loss of one sample, not
// the end of the session.
type Declined struct {
	Reason string // few and fixed: counted
	Op     string // the instruction, if that is the reason
}

// NoAccessBefore begins the reason where something else came before an access.
const NoAccessBefore = "no access before "

// Label names the loss for a counter.
func (d *Declined) Label() string {
	if d.Op != "" {
		return d.Reason + ": " + d.Op
	}
	return d.Reason
}

func (d *Declined) Error() string { return "locate access: " + d.Label() }
