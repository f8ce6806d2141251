package interleave

// numbering gives locations numbers, densely, so that what is known of them lies in arrays, each for as long as a stream
// has it. They are looked up by stretch of memory: what a thread touches is near to what it has touched.
type numbering struct {
	stretches map[location]*locationStretch
	recent    [64]*locationStretch // by hash of where they begin
	spare     []*locationStretch
	of        []numbered // by number
	free      []uint32
}

// locationStretch is an aligned stretch of stretchBlocks blocks.
type locationStretch struct {
	at      location
	numbers [stretchBlocks]uint32 // plus one; 0: none
	used    int
}

const stretchBlocks = 128

type numbered struct {
	in      *locationStretch
	at      uint32
	streams int32 // that have it; 0: the number is free
}

// take is the location's number, for one more stream.
func (p *numbering) take(x location) uint32 {
	in, at := p.stretch(location{x.space, x.block / stretchBlocks}), uint32(x.block%stretchBlocks)
	n := in.numbers[at] - 1
	if in.numbers[at] == 0 {
		if last := len(p.free) - 1; last >= 0 {
			n, p.free = p.free[last], p.free[:last]
		} else {
			n, p.of = uint32(len(p.of)), append(p.of, numbered{})
		}
		in.numbers[at] = n + 1
		in.used++
		p.of[n] = numbered{in, at, 0}
	}
	p.of[n].streams++
	return n
}

func (p *numbering) stretch(at location) *locationStretch {
	recent := &p.recent[(at.block^uint64(at.space))%uint64(len(p.recent))]
	if *recent != nil && (*recent).at == at {
		return *recent
	}
	in := p.stretches[at]
	if in == nil {
		if last := len(p.spare) - 1; last >= 0 {
			in, p.spare = p.spare[last], p.spare[:last]
		} else {
			in = &locationStretch{}
		}
		in.at = at
		if p.stretches == nil {
			p.stretches = make(map[location]*locationStretch)
		}
		p.stretches[at] = in
	}
	*recent = in
	return in
}

// drop is for a stream that has it no longer.
func (p *numbering) drop(n uint32) {
	x := &p.of[n]
	if x.streams--; x.streams > 0 {
		return
	}
	x.in.numbers[x.at] = 0
	p.free = append(p.free, n)
	if x.in.used--; x.in.used == 0 {
		delete(p.stretches, x.in.at)
		// Nothing must find it by where it was.
		x.in.at = location{space: noSpace}
		p.spare = append(p.spare, x.in)
	}
}

// noSpace is none's number.
const noSpace = 0

// sightings are what is known of places, by number, forgotten at once.
type sightings struct {
	of    []sighting
	round uint32
}

type sighting struct {
	round uint32 // of another one nothing is known
	known uint8
}

// begin forgets all.
func (m *sightings) begin() {
	if m.round++; m.round == 0 { // what is left of that long ago would count again
		clear(m.of)
		m.round = 1
	}
}

// note adds what is known of a place and returns what was before.
func (m *sightings) note(n uint32, known uint8) (before uint8) {
	for int(n) >= len(m.of) {
		m.of = append(m.of, sighting{})
	}
	x := &m.of[n]
	if x.round != m.round {
		*x = sighting{round: m.round}
	}
	before = x.known
	x.known |= known
	return before
}
