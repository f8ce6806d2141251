package trace

import (
	"fmt"

	"github.com/rdx-profiler/rdx/model"
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

	// of the thread seen last; set by placer.place, and by pairer.pair
	placed *placedSegment
	paired *pairedSegment
}

const (
	pcBits       = 48
	sizeBits     = 12
	offsetBits   = 52
	baseNewWord  = 0xfff
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
		case baseNewWord:
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
