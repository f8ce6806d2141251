package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/rdx-profiler/rdx/model"
)

// varints reads varints off a slice; bad stays true once one was cut short.
type varints struct {
	b   []byte
	bad bool
}

func (v *varints) next() uint64 {
	if len(v.b) > 0 && v.b[0] < 0x80 {
		x := uint64(v.b[0])
		v.b = v.b[1:]
		return x
	}
	x, n := binary.Uvarint(v.b)
	if n <= 0 {
		v.bad = true
		v.b = nil
		return 0
	}
	v.b = v.b[n:]
	return x
}

// surprise is the inverse of buffer.put.
func (v *varints) surprise() (hits, value uint64) {
	if len(v.b) == 0 {
		v.bad = true
		return 0, 0
	}
	t := v.b[0]
	v.b = v.b[1:]
	hits = uint64(t >> 4)
	if hits == 15 {
		hits += v.next()
	}
	size := int(t & 15)
	if size > 8 || size > len(v.b) {
		v.bad = true
		v.b = nil
		return 0, 0
	}
	if len(v.b) >= 8 {
		// size 0: a shift by 64 gives 0
		value = binary.LittleEndian.Uint64(v.b) << (64 - 8*size) >> (64 - 8*size)
	} else {
		for i := size - 1; i >= 0; i-- {
			value = value<<8 | uint64(v.b[i])
		}
	}
	v.b = v.b[size:]
	return hits, value
}

// section is a count, a length and so many bytes.
func (v *varints) section() (n uint64, s varints) {
	n = v.next()
	size := v.next()
	if size > uint64(len(v.b)) {
		v.bad = true
		return 0, varints{bad: true}
	}
	s.b = v.b[:size]
	v.b = v.b[size:]
	return n, s
}

// none is a segment index that no segment has.
const none = ^uint32(0)

// readSegment is a segment as a block that is read sees it.
type readSegment struct {
	*segment
	states int    // index of its first word's state
	next   uint32 // segment that followed it last time: the prediction
}

// blockReader decodes one block, run by run.
type blockReader struct {
	thread   int32
	limit    int // accesses the block says it has
	segments []readSegment
	states   []wordState

	ids, words       varints
	idHits, wordHits uint64
	// what comes when the hits are used up
	idInstead, wordInstead uint64
	previous               uint32
	entries                uint64 // left in the block

	runs   varints
	nruns  uint64
	left   uint64 // entries of the run that are to come
	at     uint64 // number of the next access
	faults varints
	// fault is the number of entries up to and with the next one that
	// stopped early, 0 if there is none; it went as far as faultAt sites.
	fault   uint64
	nfaults uint64
	faultAt int

	own []uint64 // words of one entry
}

var errBlock = errors.New("contents make no sense")

// openBlock reads a block's dictionary. The payload must stay unchanged.
func openBlock(info blockInfo, payload []byte) (*blockReader, error) {
	v := varints{b: payload}
	nsegs, defined := v.section()
	r := &blockReader{thread: info.thread, limit: int(info.accesses), at: info.first, previous: none}
	r.nruns, r.runs = v.section()
	r.nfaults, r.faults = v.section()
	r.entries, r.ids = v.section()
	nstates, words := v.section()
	r.words = words
	if v.bad || len(v.b) != 0 || nsegs > uint64(len(defined.b)) || nstates > uint64(len(defined.b)) || r.entries > maxBlockAccesses {
		return nil, errBlock
	}
	r.segments = make([]readSegment, 0, nsegs)
	pc := uint64(0)
	states := 0
	for range nsegs {
		words, n := defined.next(), defined.next()
		if n > maxSites || words > n || n > uint64(len(defined.b)) {
			return nil, errBlock
		}
		sites := make([]site, n)
		for i := range sites {
			s := &sites[i]
			pc += unzigzag(defined.next())
			s.pc = pc
			f := defined.next()
			s.size, s.flags = uint32(f>>3), uint8(f&7)
			base := defined.next()
			if base > words || f>>3 > 1<<32-1 || base == 0 && s.flags&siteGuarded != 0 {
				return nil, errBlock
			}
			s.base = int32(base) - 1
			s.offset = unzigzag(defined.next())
		}
		if defined.bad {
			return nil, errBlock
		}
		r.segments = append(r.segments, readSegment{newSegment(sites, int(words)), states, none})
		states += int(words)
	}
	if states != int(nstates) || len(defined.b) != 0 {
		return nil, errBlock
	}
	r.states = make([]wordState, states)
	r.own = make([]uint64, maxSites)
	r.idHits, r.idInstead = r.ids.surprise()
	r.wordHits, r.wordInstead = r.words.surprise()
	r.nextFault()
	return r, nil
}

func (r *blockReader) nextFault() {
	r.fault = 0
	if r.nfaults > 0 {
		r.nfaults--
		r.fault = r.faults.next()
		r.faultAt = int(min(r.faults.next(), maxSites))
	}
}

// run starts the next run and tells the number of its first access; io.EOF
// if there is none.
func (r *blockReader) run() (first uint64, err error) {
	if r.nruns == 0 {
		if r.entries != 0 || r.limit != 0 {
			return 0, errBlock
		}
		return 0, io.EOF
	}
	r.nruns--
	gap := r.runs.next()
	r.left = r.runs.next()
	if r.runs.bad || r.left > r.entries {
		return 0, errBlock
	}
	r.entries -= r.left
	r.at += gap
	return r.at, nil
}

// next decodes accesses of the run into dst, which holds at least 2*maxSites,
// and returns 0 when the run has ended.
func (r *blockReader) next(dst []model.Access) (int, error) {
	n := 0
	for r.left > 0 && n+2*maxSites <= len(dst) {
		g, err := r.entry()
		if err != nil {
			return 0, err
		}
		reached := len(g.sites)
		if r.fault > 0 {
			if r.fault--; r.fault == 0 {
				if r.faultAt > len(g.sites) {
					return 0, errBlock
				}
				reached = r.faultAt
				r.nextFault()
			}
		}
		k := g.expand(dst[n:], r.own, reached, r.thread)
		if k > r.limit {
			return 0, fmt.Errorf("%w: more accesses than announced", errBlock)
		}
		r.limit -= k
		n += k
		r.at += uint64(k)
		r.left--
	}
	return n, nil
}

// entry decodes one entry's segment and its words into r.own.
func (r *blockReader) entry() (*segment, error) {
	var local uint32
	if r.idHits > 0 {
		r.idHits--
		if r.previous == none {
			return nil, errBlock
		}
		local = r.segments[r.previous].next
	} else {
		if r.idInstead >= uint64(len(r.segments)) || r.ids.bad {
			return nil, errBlock
		}
		local = uint32(r.idInstead)
		if r.previous != none {
			r.segments[r.previous].next = local
		}
		r.idHits, r.idInstead = r.ids.surprise()
	}
	if local == none || r.ids.bad {
		return nil, errBlock
	}
	r.previous = local
	g := &r.segments[local]
	states := r.states[g.states:][:g.words]
	hits := r.wordHits
	for i := range states {
		s := &states[i]
		if hits > 0 {
			hits--
		} else {
			s.stride = unzigzag(r.wordInstead)
			hits, r.wordInstead = r.words.surprise()
		}
		s.last += s.stride
		r.own[i] = s.last
	}
	r.wordHits = hits
	if r.words.bad {
		return nil, errBlock
	}
	return g.segment, nil
}
