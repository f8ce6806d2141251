package trace

import (
	"fmt"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// The stream the engine writes, as valgrind/stream.h describes it: words of
// 64 bits. Unless it is a short entry's, a first word's low half is a segment's
// number or one of these, its high half the number of words that follow.
const (
	wordPad          = 0
	wordDefine       = 4
	wordThread       = 8
	wordFault        = 12
	wordExec         = 16
	wordEnd          = 20
	wordSkipped      = 24
	wordTime         = 28
	wordFirstSegment = 64

	// The first word of a short entry: the number of its words, which is never 0
	// as in all others, and is a part of the segment's number; above that is an address.
	shortWords   = 3
	shortNumbers = 1 << shortAddress
	shortAddress = 16

	streamVersion = 4

	bufferBytes = 1 << 20
	// Of each process under Valgrind; with Options.Children it uses a quarter of them.
	bufferCount = 32
	// Of each thread under QEMU.
	threadBuffers = 8
	// Of each thread whose order is kept: they are not used twice.
	orderedBuffers = 4096
)

const (
	siteLoad    = 1
	siteStore   = 2
	siteGuarded = 4 // its word is 0 when it did not happen
)

// absolute as a site's base: the address is in the description.
const absolute = -1

// site is one place in the code that accesses memory. Without siteLoad and
// siteStore it is an instruction that can fault and accesses nothing.
type site struct {
	pc     uint64
	offset uint64 // added to the word, or the address
	base   int32  // index of a word of the segment, or absolute
	size   uint32 // bytes
	flags  uint8
}

// segment is a straight run of code: entered, it performs all its accesses in
// order. Each entry brings a fixed number of words, from which all addresses
// follow.
type segment struct {
	sites []site
	plain []plainAccess // if none is guarded: of an entry that is complete
	words int
	// Of an entry: whether it is short, and its words, the first one included.
	short  bool
	length int
	most   int // accesses of one entry, if all the guarded ones happen
	// guarded: some may not happen
	guarded bool

	// set by prepare
	touches     []touch
	mostTouches int
	ops         uint64 // loads, and stores from bit 32 on
	simple      bool   // all accesses happen, if it is not stopped by a fault, and they are not many
}

const (
	pcBits       = 48
	sizeBits     = 12
	offsetBits   = 52
	baseOwn      = 0xfff
	baseNone     = 0xffe
	maxSites     = 4096
	maxIDs       = 1 << 26 // segments of one process; bounds what a corrupt stream can ask for
	siteOpsShift = 60
)

// plainAccess is an access but for its thread and its address, to which a word
// of the entry is added, after a shift; the mask takes it out if the address is constant.
type plainAccess struct {
	access model.Access
	mask   uint64
	word   int32
	shift  uint8
}

// first reads the first word of an entry, or of a mark: the number of the segment or
// the kind, and the number of words in all.
func first(w uint64) (id uint32, length int) {
	if n := int(w % (shortWords + 1)); n != 0 {
		return uint32(w % shortNumbers), n
	}
	return uint32(w), 1 + int(w>>32)
}

// isMark says whether a first word is no entry's.
func isMark(w uint64) bool { return w%(shortWords+1) == 0 && uint32(w) < wordFirstSegment }

// place is where an entry has a word of the segment.
func (g *segment) place(word int32) (at int32, shift uint8) {
	switch {
	case !g.short:
		return word + 1, 0
	case word == 0:
		return 0, shortAddress
	}
	return word, 0
}

// word is a word of the segment.
func (g *segment) word(entry []uint64, word int32) uint64 {
	at, shift := g.place(word)
	return uint64(int64(entry[at]) >> shift)
}

// newSegment counts; words is the number of own words among the sites.
func newSegment(sites []site, words int, short bool) *segment {
	g := &segment{sites: sites, words: words, short: short, length: 1 + words}
	if short {
		g.length = max(words, 1)
	}
	for i := range sites {
		s := &sites[i]
		if s.flags&siteGuarded != 0 {
			g.guarded = true
		}
		p := plainAccess{access: model.Access{Addr: s.offset, PC: s.pc, Size: s.size, Op: model.Load}}
		if s.base != absolute {
			p.mask = ^uint64(0)
			p.word, p.shift = g.place(s.base)
		}
		if s.flags&siteLoad != 0 {
			g.plain = append(g.plain, p)
		}
		if s.flags&siteStore != 0 {
			p.access.Op = model.Store
			g.plain = append(g.plain, p)
		}
	}
	g.most = len(g.plain)
	return g
}

// decodeDefinition reads the words of a wordDefine.
func decodeDefinition(w []uint64) (id uint32, g *segment, err error) {
	if len(w) == 0 {
		return 0, nil, fmt.Errorf("empty segment description")
	}
	id = uint32(w[0])
	n := int(w[0] >> 32)
	if n > maxSites || len(w) != 1+2*n || isMark(uint64(id)) || id > maxIDs {
		return 0, nil, fmt.Errorf("segment %d: description of %d words for %d accesses", id, len(w), n)
	}
	sites := make([]site, n)
	words := 0
	for i := range sites {
		a, b := w[1+2*i], w[2+2*i]
		s := &sites[i]
		s.pc = a & (1<<pcBits - 1)
		s.size = uint32(a >> pcBits & (1<<sizeBits - 1))
		s.flags = uint8(a >> siteOpsShift & 7)
		s.offset = uint64(int64(b<<(64-offsetBits)) >> (64 - offsetBits))
		switch base := b >> offsetBits; base {
		case baseOwn:
			s.base = int32(words)
			words++
		case baseNone:
			s.base = absolute
		default:
			if int(base) >= words {
				return 0, nil, fmt.Errorf("segment %d: access %d relative to word %d of %d", id, i, base, words)
			}
			s.base = int32(base)
		}
		if s.flags&siteGuarded != 0 && s.base < 0 {
			return 0, nil, fmt.Errorf("segment %d: guarded access %d without a word", id, i)
		}
	}
	short := id%(shortWords+1) != 0
	if short && (id >= shortNumbers || int(id%(shortWords+1)) != max(words, 1)) {
		return 0, nil, fmt.Errorf("segment %d: the number is not one of a segment of %d words", id, words)
	}
	return id, newSegment(sites, words, short), nil
}

// happened says whether a site of an entry was an access.
func (g *segment) happened(s *site, entry []uint64) bool {
	return s.flags&siteGuarded == 0 || g.word(entry, s.base)+s.offset != 0
}

// count is the number of accesses of one entry, of which the first n sites
// were reached.
func (g *segment) count(entry []uint64, n int) int {
	if n == len(g.sites) && !g.guarded {
		return g.most
	}
	k := 0
	for i := range g.sites[:n] {
		if s := &g.sites[i]; g.happened(s, entry) {
			k += int(s.flags&siteLoad) + int(s.flags&siteStore)/siteStore
		}
	}
	return k
}

// expand writes the accesses of one entry to dst, which has room for
// segment.most, and returns their number. Only the first n sites were reached.
func (g *segment) expand(dst []model.Access, entry []uint64, n int, thread int32) int {
	if n == len(g.sites) && !g.guarded {
		dst = dst[:len(g.plain)]
		for i := range g.plain {
			p := &g.plain[i]
			a := p.access
			a.Addr += uint64(int64(entry[p.word])>>p.shift) & p.mask
			a.Thread = thread
			dst[i] = a
		}
		return len(dst)
	}
	k := 0
	for i := range g.sites[:n] {
		s := &g.sites[i]
		if !g.happened(s, entry) {
			continue
		}
		a := model.Access{Addr: s.offset, PC: s.pc, Thread: thread, Size: s.size, Op: model.Load}
		if s.base != absolute {
			a.Addr += g.word(entry, s.base)
		}
		if s.flags&siteLoad != 0 {
			dst[k] = a
			k++
		}
		if s.flags&siteStore != 0 {
			a.Op = model.Store
			dst[k] = a
			k++
		}
	}
	return k
}

// reached is the number of sites performed when the segment stopped at pc:
// those before the first site of that instruction.
func (g *segment) reached(pc uint64) int {
	for i := range g.sites {
		if g.sites[i].pc == pc {
			return i
		}
	}
	return len(g.sites)
}

// sink takes what a stream says, in order.
type sink interface {
	// enter takes the entries from word i on, up to the next word that is
	// none, and returns its index.
	enter(d *decoder, w []uint64, i int) (next int, err error)
}

// decoder reads the stream of one process.
type decoder struct {
	segments []*segment // by number
	thread   int32
	// redefined is how many segments were described whose numbers others had before
	redefined int
	skipped   func(accesses uint64) // nil if none can be
	entries   bool                  // the buffer is known to hold nothing but entries
	ended     bool                  // wordEnd was seen, and nothing after it
	exec      bool                  // the last word is an exec
}

// at is the entry at word i and the index behind it; nil if there is none.
func (d *decoder) at(w []uint64, i int) (g *segment, next int) {
	if id, _ := first(w[i]); int(id) < len(d.segments) {
		g = d.segments[id]
	}
	if g != nil {
		i += g.length
	}
	return g, i
}

// whole is at for who reads the entry: its length is checked.
func (d *decoder) whole(w []uint64, i int) (g *segment, next int, err error) {
	g, next = d.at(w, i)
	if g != nil {
		if _, n := first(w[i]); i+n != next || next > len(w) {
			return nil, 0, errEntry(w, i, g.length)
		}
	}
	return g, next, nil
}

// reached is how many sites of the entry that ends before word i were: all,
// unless it stopped at a fault.
func (d *decoder) reached(g *segment, w []uint64, i int) int {
	if i+1 < len(w) && uint32(w[i]) == wordFault {
		return g.reached(w[i+1])
	}
	return len(g.sites)
}

// buffer reads one buffer of whole entries. With cut, the last entry is left
// out and returned if nothing follows it: it may not have been completed.
func (d *decoder) buffer(w []uint64, cut bool, to sink) (left *segment, err error) {
	for i := 0; i < len(w); {
		if g, next := d.at(w, i); g != nil {
			if cut {
				// slow, and only for the last buffer: one entry at a time
				if next >= len(w) {
					return g, nil
				}
				end := next
				if uint32(w[next]) == wordFault {
					end = min(next+2, len(w))
				}
				if _, err := to.enter(d, w[:end], i); err != nil {
					return nil, err
				}
				i = next
			} else if i, err = to.enter(d, w, i); err != nil {
				return nil, err
			}
			d.ended, d.exec = false, false
			continue
		}
		if i, err = d.mark(w, i); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// mark reads a word that is no entry, and what belongs to it.
func (d *decoder) mark(w []uint64, i int) (next int, err error) {
	if !isMark(w[i]) {
		return 0, errUndescribed(w, i)
	}
	kind, n := uint32(w[i]), int(w[i]>>32)
	if n > len(w)-i-1 {
		return 0, fmt.Errorf("stream: word %d: %d words of kind %d, the buffer ends after %d", i, n, kind, len(w)-i-1)
	}
	body := w[i+1 : i+1+n]
	if kind != wordTime {
		d.ended, d.exec = kind == wordEnd, kind == wordExec
	}
	switch kind {
	case wordDefine:
		id, g, err := decodeDefinition(body)
		if err != nil {
			return 0, fmt.Errorf("stream: word %d: %w", i, err)
		}
		for int(id) >= len(d.segments) {
			d.segments = append(d.segments, make([]*segment, max(1024, len(d.segments)))...)
		}
		if d.segments[id] != nil {
			d.segments = slices.Clone(d.segments) // others read what they were given
			d.redefined++
		}
		d.segments[id] = g
	case wordThread:
		if n != 1 {
			return 0, fmt.Errorf("stream: word %d: thread of %d words", i, n)
		}
		d.thread = int32(body[0])
	case wordSkipped:
		if n != 1 || d.skipped == nil {
			return 0, fmt.Errorf("stream: word %d: accesses skipped that were not to be", i)
		}
		d.skipped(body[0])
	case wordFault, wordExec, wordEnd, wordPad:
	case wordTime:
		if n != 1 {
			return 0, fmt.Errorf("stream: word %d: time of %d words", i, n)
		}
	default:
		return 0, fmt.Errorf("stream: word %d: unknown kind %d", i, kind)
	}
	return i + 1 + n, nil
}

// errUndescribed is about an entry at word i of a segment that is not known.
func errUndescribed(w []uint64, i int) error {
	id, _ := first(w[i])
	return fmt.Errorf("stream: word %d: segment %d was never described", i, id)
}

// errEntry is about the entry of a segment at word i that is not there whole.
func errEntry(w []uint64, i, length int) error {
	_, n := first(w[i])
	return fmt.Errorf("stream: word %d: an entry of %d words of a segment that has %d, and the buffer ends after %d", i, n, length, len(w)-i)
}
