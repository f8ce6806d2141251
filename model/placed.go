package model

// Place is where accesses come from: an instruction, one direction of it, in one thread.
type Place struct {
	PC     uint64
	Thread int32
	Op     Op
}

// PlacedTouches is Touches of which the place of every touch is known.
type PlacedTouches struct {
	Touches
	// Places has the number of the place of each touch, the repeated ones of a run, too, in order. Numbers
	// begin with 1. Continued is added where the access has touched the block below before.
	Places []uint32
	// New are the places that no batch before had: they have the next numbers.
	New []Place
	// Masks has of each touch the bytes of its line that the access covers, as LineMask has
	// them; nil unless asked for, and only for blocks that are lines.
	Masks []uint64
}

// Continued marks touches that do not begin an access.
const Continued = 1 << 31

// Placer cuts accesses into PlacedTouches.
type Placer struct {
	gran    Granularity
	masks   bool
	numbers map[Place]uint32
	recent  [1 << 10]struct {
		place  Place
		number uint32
	}
	to *PlacedTouches
}

// NewPlacer returns one for blocks of that size; masks asks for masks.
func NewPlacer(gran Granularity, masks bool) *Placer {
	return &Placer{gran: gran, masks: masks && gran.Bytes() == LineBytes, numbers: map[Place]uint32{}}
}

// HasMasks says whether batches have masks.
func (p *Placer) HasMasks() bool { return p.masks }

// Begin makes b the batch that is filled, and empties it.
func (p *Placer) Begin(b *PlacedTouches) {
	*b = PlacedTouches{Touches: Touches{Blocks: b.Blocks[:0], Runs: b.Runs[:0]}, Places: b.Places[:0], New: b.New[:0], Masks: b.Masks[:0]}
	p.to = b
}

// Number is that of a place.
func (p *Placer) Number(at Place) uint32 {
	h := (at.PC ^ uint64(uint32(at.Thread))<<40 ^ uint64(at.Op)<<56) * 0x9e3779b97f4a7c15
	r := &p.recent[h>>54]
	if r.number != 0 && r.place == at {
		return r.number
	}
	n, ok := p.numbers[at]
	if !ok {
		n = uint32(len(p.numbers) + 1)
		p.numbers[at] = n
		p.to.New = append(p.to.New, at)
	}
	r.place, r.number = at, n
	return n
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
			b.Places = append(b.Places, place)
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
