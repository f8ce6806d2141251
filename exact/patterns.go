package exact

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// Patterns tells of each instruction of a whole access stream its stride, of the lines that it fetches how much is used,
// and its traffic, for fully associative LRU caches of some sizes: docs/explanation/patterns.md. Threads share one stack.
//
// Memory is that of an Olken, 23 bytes a line more and 16 for each cache, and some 350 bytes an instruction. A Patterns is for
// one goroutine.
type Patterns struct {
	lines   []uint64 // of the caches
	olken   *Olken
	index   blockIndex // line -> its number
	stays   []lineStay // those of a line follow each other, one for each cache
	last    []uint64   // by line: runs until the last one of it
	runs    uint64
	byPlace []placePattern

	accesses, loads, stores uint64
	split                   *model.Placer
	batch                   model.PlacedTouches
	dist, time              [exactChunk]uint64
}

// lineStay is a line in a cache; the zero value in none.
type lineStay struct {
	touched uint64
	by      uint32 // the place that has fetched it
	stored  bool
}

// placePattern is what is known of a place.
type placePattern struct {
	place    model.Place
	accesses uint64
	last     uint64 // address of the last access
	strides  model.Strides
	use      []model.LineUse
	traffic  []model.Traffic
}

// NewPatterns is for caches of those sizes in bytes.
func NewPatterns(sizes []int64) (*Patterns, error) {
	g, err := model.NewGranularity(model.LineBytes)
	if err != nil {
		return nil, err
	}
	p := &Patterns{olken: NewOlken(), split: model.NewPlacer(g, true), byPlace: make([]placePattern, 1)}
	p.index.init()
	for _, s := range sizes {
		if s < model.LineBytes {
			return nil, errors.New("patterns: a cache has less than a line")
		}
		p.lines = append(p.lines, uint64(s)/model.LineBytes)
	}
	return p, nil
}

// Add analyses the next accesses. The only error is ErrTooManyBlocks.
func (p *Patterns) Add(accesses []model.Access) error {
	return eachPlaced(p.split, &p.batch, accesses, p.AddTouches)
}

// AddTouches is Add for accesses that were cut into touches of lines, with masks, all by one Placer.
func (p *Patterns) AddTouches(t *model.PlacedTouches) error {
	if len(t.Masks) != len(t.PlaceNumbers) {
		return errors.New("patterns: touches without the bytes that they touch")
	}
	p.accesses += t.Ops[model.OpUnknown] + t.Ops[model.Load] + t.Ops[model.Store]
	p.loads += t.Ops[model.Load]
	p.stores += t.Ops[model.Store]
	for _, at := range t.New {
		p.byPlace = append(p.byPlace, placePattern{place: at, use: make([]model.LineUse, len(p.lines)), traffic: make([]model.Traffic, len(p.lines))})
	}
	k := 0
	for at := 0; at < len(t.Blocks); at += exactChunk {
		end := min(at+exactChunk, len(t.Blocks))
		blocks, runs := t.Blocks[at:end], t.Runs[at:end]
		if err := p.olken.touch(blocks, runs, p.dist[:len(blocks)], p.time[:len(blocks)]); err != nil {
			return err
		}
		for i, b := range blocks {
			n := int(runs[i]>>1) + 1
			p.run(b, p.dist[i], t.PlaceNumbers[k:k+n], t.Masks[k:k+n])
			k += n
		}
	}
	return nil
}

// run does the touches of one line that follow each other; the first has that distance.
func (p *Patterns) run(line, dist uint64, byPlace []uint32, masks []uint64) {
	number := p.index.slot(line)
	if *number == coldPos {
		p.last = append(p.last, 0)
		*number = uint32(len(p.last))
		p.stays = append(p.stays, make([]lineStay, len(p.lines))...)
	}
	p.runs++
	p.last[*number-1] = p.runs
	stays := p.stays[int(*number-1)*len(p.lines):][:len(p.lines)]
	for c := range stays {
		if dist >= p.lines[c] { // Infinite, too
			p.fetch(&stays[c], c, byPlace[0]&^model.Continued)
		}
	}
	var touched uint64
	stored := false
	for i, number := range byPlace {
		at := &p.byPlace[number&^model.Continued]
		touched |= masks[i]
		stored = stored || at.place.Op == model.Store
		if number&model.Continued != 0 {
			continue
		}
		addr := line*model.LineBytes + uint64(bits.TrailingZeros64(masks[i]))
		if at.accesses++; at.accesses > 1 {
			at.strides.Add(int64(addr-at.last), 1)
		}
		at.last = addr
	}
	for c := range stays {
		stays[c].touched |= touched
		stays[c].stored = stays[c].stored || stored
	}
}

// fetch begins a stay in cache c.
func (p *Patterns) fetch(s *lineStay, c int, by uint32) {
	p.end(s, c, true)
	*s = lineStay{by: by}
	p.byPlace[by].traffic[c].Fills++
}

// end ends a stay, if there is one; gone says that the line has left the cache.
func (p *Patterns) end(s *lineStay, c int, gone bool) {
	if s.by == 0 {
		return
	}
	at := &p.byPlace[s.by]
	at.use[c].Add(model.LineUse{Stays: 1, Bytes: float64(bits.OnesCount64(s.touched))})
	if gone && s.stored {
		at.traffic[c].WriteBacks++
	}
}

// Accesses is the number of accesses added. Loads and Stores are those of known direction.
func (p *Patterns) Accesses() uint64 { return p.accesses }
func (p *Patterns) Loads() uint64    { return p.loads }
func (p *Patterns) Stores() uint64   { return p.stores }

// Touches is the number of lines touched, repetitions included, and Blocks that of distinct ones.
func (p *Patterns) Touches() uint64 { return p.olken.Accesses() }
func (p *Patterns) Blocks() uint64  { return p.olken.Blocks() }

// InstructionPattern is what is known of one direction of an instruction.
type InstructionPattern struct {
	PC       uint64
	Op       model.Op
	Accesses uint64
	Strides  model.Strides
	LineUse  []model.LineUse // by cache
	Traffic  []model.Traffic
}

// Result ends the analysis: the instructions, in the order of their addresses, and by cache how many lines are dirty at the end.
func (p *Patterns) Result() (all []InstructionPattern, dirty []uint64) {
	dirty = make([]uint64, len(p.lines))
	order := make([]uint32, len(p.last)) // lines, the one touched last first: a cache has the first ones
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(p.last[b], p.last[a]) })
	for k, line := range order {
		for c, s := range p.stays[int(line)*len(p.lines):][:len(p.lines)] {
			gone := uint64(k) >= p.lines[c]
			p.end(&s, c, gone)
			if s.stored && !gone {
				dirty[c]++
			}
		}
	}
	type key struct {
		pc uint64
		op model.Op
	}
	at := map[key]int{}
	for i := range p.byPlace[1:] {
		x := &p.byPlace[i+1]
		k := key{x.place.PC, x.place.Op}
		n, ok := at[k]
		if !ok {
			n = len(all)
			at[k] = n
			all = append(all, InstructionPattern{PC: k.pc, Op: k.op, LineUse: make([]model.LineUse, len(p.lines)), Traffic: make([]model.Traffic, len(p.lines))})
		}
		y := &all[n]
		y.Accesses += x.accesses
		y.Strides.Merge(&x.strides)
		for c := range p.lines {
			y.LineUse[c].Add(x.use[c])
			y.Traffic[c].Add(x.traffic[c])
		}
	}
	slices.SortFunc(all, func(a, b InstructionPattern) int { return cmp.Or(cmp.Compare(a.PC, b.PC), cmp.Compare(a.Op, b.Op)) })
	return all, dirty
}
