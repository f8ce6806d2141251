package model

import (
	"fmt"
	"math/bits"
)

// Access is one load or store of Size bytes at Addr. A read-modify-write is
// two accesses, a Load and a Store.
type Access struct {
	Addr   uint64
	PC     uint64 // of the instruction, 0 if unknown
	Thread int32
	Size   uint32 // bytes; 0 is taken as 1
	Op     Op     // OpUnknown counts as a load
}

// Wraps says whether the access goes past the end of the address space, which
// none does: a reader is to refuse it. (Analyses take what lies before the end.)
func (a *Access) Wraps() bool { return a.Size > 0 && a.Addr+uint64(a.Size)-1 < a.Addr }

// Block sizes, in bytes, that count as one datum.
const (
	WordBytes = 8
	LineBytes = 64
	PageBytes = 4096
)

// Granularity turns addresses into block numbers. The zero value counts every
// byte as a block of its own.
type Granularity struct{ shift uint }

// NewGranularity returns the granularity for blocks of the given number of
// bytes, a power of two.
func NewGranularity(bytes int) (Granularity, error) {
	if bytes <= 0 || bytes&(bytes-1) != 0 {
		return Granularity{}, fmt.Errorf("block size %d: not a power of two", bytes)
	}
	return Granularity{uint(bits.TrailingZeros(uint(bytes)))}, nil
}

// Shift is the number of address bits within a block.
func (g Granularity) Shift() uint { return g.shift }

// Bytes is the size of a block.
func (g Granularity) Bytes() int { return 1 << g.shift }

// Span returns the numbers of the first and the last block the access
// overlaps. An access that would run past the end of the address space ends
// at its last byte.
func (g Granularity) Span(a *Access) (first, last uint64) {
	end := a.Addr
	if a.Size > 1 {
		end = a.Addr + uint64(a.Size-1)
		if end < a.Addr {
			end = ^uint64(0)
		}
	}
	return a.Addr >> g.shift, end >> g.shift
}

// Infinite is the stack distance and the reuse time of a first access.
const Infinite = ^uint64(0)

// Touches is a part of a stream, cut into touches of single blocks. Touches of
// one block that follow each other are one run: all but the first have a stack
// distance of 0 and a reuse time of 1.
type Touches struct {
	Blocks []uint64
	// Runs has of each run the direction of its first touch, 1 for a store and
	// 0 for all else, and in the upper bits the number of touches after it, up
	// to 63.
	Runs    []uint8
	Repeats [2]uint64         // touches but the first of each run; [1] stores, [0] all else
	Ops     [Store + 1]uint64 // the accesses that these are, by Op
}

// Place is where accesses come from: an instruction, one direction of it, in one thread.
type Place struct {
	PC     uint64
	Thread int32
	Op     Op
}

// PlacedTouches is Touches of which the place of every touch is known.
type PlacedTouches struct {
	Touches
	// PlaceNumbers has the number of the place of each touch, the repeated ones of a run, too, in order. Numbers
	// begin with 1. Continued is added where the access has touched the block below before.
	PlaceNumbers []uint32
	// New are the places that no batch before had: they have the next numbers.
	New []Place
	// Masks has of each touch the bytes of its line that the access covers, as LineMask has
	// them; nil unless asked for, and only for blocks that are lines.
	Masks []uint64
}

// Continued marks touches that do not begin an access.
const Continued = 1 << 31

// PairedTouches is Touches of which it is known what is needed to tell by which place a block was used before: the places
// of a run's first touch and of its last one, and how often its other touches came after which. What is in Again may be of touches of
// earlier batches.
type PairedTouches struct {
	Blocks []uint64
	Runs   []uint8   // as Touches has them, but that their lowest bit is 0
	Ends   []RunEnds // by run
	Again  []AgainTouches
	New    []Place           // as PlacedTouches has them
	Ops    [Store + 1]uint64 // as Touches has them
}

// RunEnds are the numbers, from 1 on, of the places of a run's first touch and of its last one.
type RunEnds struct{ First, Last uint32 }

// AgainTouches is how many touches by the place To were right after one of the same block by the place From, in a run.
type AgainTouches struct {
	From, To uint32
	N        uint64
}

// Numbering gives places their numbers, from 1 on.
type Numbering struct {
	numbers map[Place]uint32
	recent  [1 << 10]struct {
		place  Place
		number uint32
	}
	fresh *[]Place
}

// NewNumbering returns one that has no places. Into must follow.
func NewNumbering() *Numbering { return &Numbering{numbers: map[Place]uint32{}} }

// Into says where places are added that have a number from now on.
func (n *Numbering) Into(fresh *[]Place) { n.fresh = fresh }

// Number is that of a place.
func (n *Numbering) Number(at Place) uint32 {
	h := (at.PC ^ uint64(uint32(at.Thread))<<40 ^ uint64(at.Op)<<56) * 0x9e3779b97f4a7c15
	r := &n.recent[h>>54]
	if r.number != 0 && r.place == at {
		return r.number
	}
	number, ok := n.numbers[at]
	if !ok {
		number = uint32(len(n.numbers) + 1)
		n.numbers[at] = number
		*n.fresh = append(*n.fresh, at)
	}
	r.place, r.number = at, number
	return number
}

// Placer cuts accesses into PlacedTouches.
type Placer struct {
	*Numbering
	gran  Granularity
	masks bool
	to    *PlacedTouches
}

// NewPlacer returns one for blocks of that size; masks asks for masks.
func NewPlacer(gran Granularity, masks bool) *Placer {
	return &Placer{gran: gran, masks: masks && gran.Bytes() == LineBytes, Numbering: NewNumbering()}
}

// HasMasks says whether batches have masks.
func (p *Placer) HasMasks() bool { return p.masks }

// Begin makes b the batch that is filled, and empties it.
func (p *Placer) Begin(b *PlacedTouches) {
	*b = PlacedTouches{Touches: Touches{Blocks: b.Blocks[:0], Runs: b.Runs[:0]}, PlaceNumbers: b.PlaceNumbers[:0], New: b.New[:0], Masks: b.Masks[:0]}
	p.to = b
	p.Into(&b.New)
}

// Add cuts accesses. No run goes on from the batch before.
func (p *Placer) Add(accesses []Access) {
	b := p.to
	for i := range accesses {
		a := &accesses[i]
		op := min(a.Op, Store)
		b.Ops[op]++
		place := p.Number(Place{a.PC, a.Thread, a.Op})
		block, last := p.gran.Span(a)
		for ; ; block++ {
			b.touch(block, op == Store)
			b.PlaceNumbers = append(b.PlaceNumbers, place)
			if p.masks {
				b.Masks = append(b.Masks, LineMask(block, a.Addr, a.Size))
			}
			if block == last {
				break
			}
			place |= Continued
		}
	}
}

// touch appends one.
func (t *Touches) touch(block uint64, stores bool) {
	store := uint8(0)
	if stores {
		store = 1
	}
	n := len(t.Blocks)
	if n > 0 && t.Blocks[n-1] == block && t.Runs[n-1] < 126 {
		t.Runs[n-1] += 2
		t.Repeats[store]++
		return
	}
	t.Blocks, t.Runs = append(t.Blocks, block), append(t.Runs, store)
}
