package collector

// places are numbered densely, so that what is known of them lies in arrays, each for as long as a stream has it.
type places struct {
	number map[place]uint32
	of     []placed // by number
	free   []uint32
}

type placed struct {
	place
	streams int32 // that have it; 0: the number is free
}

// take is the place's number, for one more stream.
func (p *places) take(x place) uint32 {
	n, ok := p.number[x]
	if !ok {
		if p.number == nil {
			p.number = make(map[place]uint32)
		}
		if last := len(p.free) - 1; last >= 0 {
			n, p.free = p.free[last], p.free[:last]
		} else {
			n, p.of = uint32(len(p.of)), append(p.of, placed{})
		}
		p.number[x], p.of[n].place = n, x
	}
	p.of[n].streams++
	return n
}

// drop is for a stream that has it no longer.
func (p *places) drop(n uint32) {
	x := &p.of[n]
	if x.streams--; x.streams == 0 {
		delete(p.number, x.place)
		p.free = append(p.free, n)
	}
}

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
