package trace

import (
	"encoding/binary"
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

// readSegment is a segment as a block that is read sees it.
type readSegment struct {
	*segment
	first  wordState // of its first word
	states int       // index of its second word's state
	next   uint32    // the segment that followed it last time: the prediction
}

// blockReader decodes one block, run by run.
type blockReader struct {
	thread   int32
	limit    int           // accesses the block says it has
	segments []readSegment // the first is none, and what is expected at first
	states   []wordState

	previous uint32
	entry    int // number of the entry that is next
	codes    []byte
	ids      []byte // what is left of them
	firsts   []byte // likewise, and valueRoom bytes that are none
	word     int    // number of the further word that is next
	nwords   int
	sizes    []byte
	values   []byte // as firsts

	entries uint64 // in runs that are to come
	runs    varints
	nruns   uint64
	left    uint64 // entries of the run that are to come
	at      uint64 // number of the next access
	faults  varints
	// fault is the number of entries up to and with the next one that
	// stopped early, 0 if there is none; it went as far as faultAt sites.
	fault   uint64
	nfaults uint64
	faultAt int

	oneEntry []uint64 // one entry, not short: its words are from the second on
}

// openBlock reads a block's dictionary. The sections must stay unchanged.
func openBlock(info blockInfo, s [blockSections]section) (*blockReader, error) {
	defined, runs, faults, codes, ids, firsts, sizes, values := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
	if defined.n > uint64(len(defined.b)) || codes.n > maxBlockAccesses || (codes.n+1)/2 != uint64(len(codes.b)) ||
		2*ids.n != uint64(len(ids.b)) || firsts.n != uint64(len(firsts.b)) || sizes.n > 2*maxWords || (sizes.n+1)/2 != uint64(len(sizes.b)) || values.n != uint64(len(values.b)) {
		return nil, errBlock
	}
	r := &blockReader{
		thread: info.thread, limit: int(info.accesses), at: info.first,
		segments: make([]readSegment, 1, defined.n+1),
		codes:    codes.b, ids: ids.b, nwords: int(sizes.n), sizes: sizes.b,
		firsts:  firsts.b[: len(firsts.b)+valueRoom : len(firsts.b)+valueRoom],
		values:  values.b[: len(values.b)+valueRoom : len(values.b)+valueRoom],
		entries: codes.n, nruns: runs.n, runs: varints{b: runs.b}, nfaults: faults.n, faults: varints{b: faults.b},
	}
	pc := uint64(0)
	states := 0
	for d := (varints{b: defined.b}); ; {
		if len(r.segments) == cap(r.segments) {
			if len(d.b) != 0 {
				return nil, errBlock
			}
			break
		}
		words, n := d.next(), d.next()
		if n > maxSites || words > n || n > uint64(len(defined.b)) {
			return nil, errBlock
		}
		sites := make([]site, n)
		for i := range sites {
			s := &sites[i]
			pc += unzigzag(d.next())
			s.pc = pc
			f := d.next()
			s.size, s.flags = uint32(f>>3), uint8(f&7)
			base := d.next()
			if base > words || f>>3 > 1<<32-1 || base == 0 && s.flags&siteGuarded != 0 {
				return nil, errBlock
			}
			s.base = int32(base) - 1
			s.offset = unzigzag(d.next())
		}
		if d.bad {
			return nil, errBlock
		}
		r.segments = append(r.segments, readSegment{newSegment(sites, int(words), false), wordState{}, states, 0})
		states += max(int(words)-1, 0)
	}
	r.states = make([]wordState, states)
	r.oneEntry = make([]uint64, 2+maxSites)
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
		if r.entries != 0 || r.limit != 0 || r.word != r.nwords || len(r.ids) != 0 || len(r.firsts) != valueRoom || len(r.values) != valueRoom {
			return 0, errBlock
		}
		return 0, io.EOF
	}
	r.nruns--
	skipped := r.runs.next()
	r.left = r.runs.next()
	if r.runs.bad || r.left > r.entries {
		return 0, errBlock
	}
	r.entries -= r.left
	r.at += skipped
	return r.at, nil
}

// next decodes accesses of the run into dst, which holds at least 2*maxSites,
// and returns 0 when the run has ended.
func (r *blockReader) next(dst []model.Access) (int, error) {
	n := 0
	for r.left > 0 && n+2*maxSites <= len(dst) {
		g, reached, err := r.enter()
		if err != nil {
			return 0, err
		}
		k := g.expand(dst[n:], r.oneEntry, reached, r.thread)
		if err := r.leave(k); err != nil {
			return 0, err
		}
		n += k
	}
	return n, nil
}

// entryTaker takes the accesses of one entry, of which n sites were reached, and returns how many they are.
type entryTaker interface {
	one(g *segment, entry []uint64, n int, thread int32) int
}

// touch is next for what the accesses touch.
func (r *blockReader) touch(t entryTaker) (int, error) {
	n := 0
	for r.left > 0 && n < touchBatch {
		g, reached, err := r.enter()
		if err != nil {
			return 0, err
		}
		k := t.one(g, r.oneEntry[:1+g.words], reached, r.thread)
		if err := r.leave(k); err != nil {
			return 0, err
		}
		n += k
	}
	return n, nil
}

// enter decodes an entry into r.oneEntry and tells how many of its sites were reached.
func (r *blockReader) enter() (g *segment, reached int, err error) {
	if g, err = r.decode(); err != nil {
		return nil, 0, err
	}
	reached = len(g.sites)
	if r.fault > 0 {
		if r.fault--; r.fault == 0 {
			if r.faultAt > len(g.sites) {
				return nil, 0, errBlock
			}
			reached = r.faultAt
			r.nextFault()
		}
	}
	return g, reached, nil
}

// leave counts an entry with k accesses.
func (r *blockReader) leave(k int) error {
	if k > r.limit {
		return fmt.Errorf("%w: more accesses than announced", errBlock)
	}
	r.limit -= k
	r.at += uint64(k)
	r.left--
	return nil
}

// sizeMask has what a difference of so many bytes keeps of 8.
var sizeMask = [valueRoom + 1]uint64{0, 1<<8 - 1, 1<<16 - 1, 1<<24 - 1, 1<<32 - 1, 1<<40 - 1, 1<<48 - 1, 1<<56 - 1, 1<<64 - 1}

// decode decodes one entry's segment and its words into r.oneEntry.
func (r *blockReader) decode() (*segment, error) {
	id := r.segments[r.previous].next
	code := r.codes[r.entry/2] >> (r.entry % 2 * 4) & 15
	if code&anotherSegment != 0 {
		if len(r.ids) == 0 {
			return nil, errBlock
		}
		id = uint32(binary.LittleEndian.Uint16(r.ids))
		r.ids = r.ids[2:]
		if int(id) >= len(r.segments) {
			return nil, errBlock
		}
		r.segments[r.previous].next = id
	}
	r.entry++
	if id == 0 {
		return nil, errBlock
	}
	r.previous = id
	g := &r.segments[id]
	size := int(code % anotherSegment)
	if size == longDifference {
		size = valueRoom
	}
	more := max(g.words-1, 0)
	if size > len(r.firsts)-valueRoom || size > 0 && g.words == 0 || r.word+more > r.nwords {
		return nil, errBlock
	}
	if size > 0 {
		g.first.stride = unzigzag(binary.LittleEndian.Uint64(r.firsts) & sizeMask[size])
		r.firsts = r.firsts[size:]
	}
	g.first.last += g.first.stride
	r.oneEntry[1] = g.first.last
	states := r.states[g.states:][:more]
	entry := r.oneEntry[2:][:more]
	values, word := r.values, r.word
	for i := range states {
		size := int(r.sizes[word/2] >> (word % 2 * 4) & 15)
		word++
		if size > valueRoom || size > len(values)-valueRoom {
			return nil, errBlock
		}
		s := &states[i]
		if size > 0 {
			s.stride = unzigzag(binary.LittleEndian.Uint64(values) & sizeMask[size])
			values = values[size:]
		}
		s.last += s.stride
		entry[i] = s.last
	}
	r.values, r.word = values, word
	return g.segment, nil
}
