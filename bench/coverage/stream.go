package coverage

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/trace"
)

// lineBytes is a cache line's size: what miss ratios are of.
const lineBytes = 64

// Sizes are the caches, in bytes, whose miss ratios are judged.
var Sizes = [3]int64{32 << 10, 1 << 20, 32 << 20}

// blocks are Sizes in lines.
func blocks() (out []uint64) {
	for _, s := range Sizes {
		out = append(out, uint64(s)/lineBytes)
	}
	return out
}

// Stream is what a program touches in a stretch of its steady state, line by line. It begins again at
// its end.
type Stream struct {
	Name string
	// Exact are the miss ratios at Sizes.
	Exact [len(Sizes)]float64

	line     []uint32 // that a touch goes to
	address  []uint64 // of each line, in lines
	words    []uint8  // of it, as bits
	next     []uint32 // touch of the line; where it is not later, it is of the next lap
	distance []uint16 // lines between a touch and the one before of its line, as far as is counted
	kinds    []kind
	lines    int
	resident int64 // bytes, by pages
	clocks   [2]clock

	footprint model.Footprint
	times     *model.Hist // from each touch to the next of its line
	distances *model.Hist
}

// Recording says which stretch of which program's run is recorded.
type Recording struct {
	Name    string
	Command trace.Command
	Skip    int // accesses before it
	Length  int // touches of lines
	Options trace.Options
}

// Record runs a program under the engine until a stretch of it has been seen.
func Record(ctx context.Context, r Recording) (*Stream, error) {
	live := trace.StartLive(ctx, r.Command, r.Options)
	m := newMaker(r.Length)
	left := r.Skip
	for m.room() {
		batch := live.NextBatch()
		if len(batch) == 0 {
			break
		}
		skipped := min(left, len(batch))
		left -= skipped
		for i := skipped; i < len(batch) && m.room(); i++ {
			m.add(&batch[i])
		}
	}
	ended := !m.room()
	live.Close()
	if err := live.Err(); err != nil && !ended {
		return nil, fmt.Errorf("record %s: %w", r.Name, err)
	}
	if !ended {
		return nil, fmt.Errorf("record %s: it ended after %d of %d touches (give it more work)", r.Name, len(m.line), r.Length)
	}
	return m.stream(r.Name)
}

// maker makes a stream of accesses.
type maker struct {
	most   int
	number map[uint64]uint32
	lines  []uint64 // by number
	pages  map[uint64]struct{}
	line   []uint32
	words  []uint8
	kinds  []kind
	page   uint64 // of the last access
}

func newMaker(most int) *maker {
	return &maker{most: most, number: make(map[uint64]uint32), pages: make(map[uint64]struct{})}
}

func (m *maker) room() bool { return len(m.line) < m.most }

func (m *maker) add(a *model.Access) {
	const word = 8
	from, to := a.Addr, a.Addr+max(uint64(a.Size), 1)-1
	if page := from >> 12; page != m.page {
		m.page = page
		m.pages[page] = struct{}{}
	}
	for l := from / lineBytes; l <= to/lineBytes; l++ {
		n, ok := m.number[l]
		if !ok {
			n = uint32(len(m.number))
			m.number[l] = n
			m.lines = append(m.lines, l)
		}
		first, last := max(from, l*lineBytes)%lineBytes/word, min(to, (l+1)*lineBytes-1)%lineBytes/word
		m.line = append(m.line, n)
		m.words = append(m.words, uint8(1<<(last+1)-1<<first))
		m.kinds = append(m.kinds, kindOf(a.PC))
	}
}

// stream counts what there is to know of it.
func (m *maker) stream(name string) (*Stream, error) {
	n := len(m.line)
	s := &Stream{Name: name, line: m.line, address: m.lines, words: m.words, kinds: m.kinds, lines: len(m.number), resident: int64(len(m.pages)) << 12,
		next: make([]uint32, n), distance: make([]uint16, n), times: model.NewHist(model.LogBins(32)), distances: model.NewHist(model.LogBins(32))}
	last := make([]uint32, s.lines)
	for i := 2*n - 1; i >= 0; i-- { // the later lap says what follows in the first
		at := uint32(i % n)
		s.next[at], last[m.line[at]] = last[m.line[at]], at
	}
	const batch = 1 << 16
	var block, distance, time [batch]uint64
	stack := exact.NewOlken()
	for lap := range 2 {
		for from := 0; from < n; from += batch {
			k := min(batch, n-from)
			for i := range k {
				block[i] = uint64(m.line[from+i])
			}
			if err := stack.Touch(block[:k], distance[:k], time[:k]); err != nil {
				return nil, fmt.Errorf("stream %s: %w", name, err)
			}
			if lap == 0 {
				continue
			}
			for i, d := range distance[:k] {
				s.distances.Add(max(d, 1), 1)
				s.times.Add(time[i], 1)
				s.distance[from+i] = uint16(min(d, 1<<16-1))
				level := sort.Search(len(Sizes), func(l int) bool { return d < uint64(Sizes[l])/lineBytes })
				s.kinds[from+i] = s.kinds[from+i].from(level)
				for l := range level {
					s.Exact[l]++
				}
			}
		}
	}
	for l := range s.Exact {
		s.Exact[l] /= float64(n)
	}
	if err := s.footprint.Reset(s.times); err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	for c := range s.clocks {
		s.clocks[c] = newClock(s.kinds, costs(Clocking(c)))
	}
	return s, nil
}

// at is the touch of an endless run's number.
func (s *Stream) at(p int) int { return p % len(s.next) }

// after is the number of the next touch of its line.
func (s *Stream) after(p int) int {
	i := s.at(p)
	if next := int(s.next[i]); next > i {
		return p + next - i
	} else {
		return p + next - i + len(s.next)
	}
}

// Converted are how far off the conversion of times to distances is by itself: by how many times too large a cache seems
// to be in a long session that counts accesses, as a logarithm. Sizes at which the ratio tells nothing are left out.
func (s *Stream) Converted(holds int, seed uint64) (off []float64, err error) {
	p := s.Draw(Setting{Clock: ByAccesses, Holds: holds}, rand.New(rand.NewPCG(seed, 0)))
	const smallest, perOctave = 128, 8
	var sizes []uint64
	for i := range 20 * perOctave {
		sizes = append(sizes, uint64(smallest*math.Exp2(float64(i)/perOctave)))
	}
	curve, err := p.MissRatios(sizes, model.CurveOptions{})
	if err != nil {
		return nil, fmt.Errorf("conversion of %s: %w", s.Name, err)
	}
	for i := 2 * perOctave; i < len(sizes)-2*perOctave; i += perOctave {
		exact := s.distances.MissRatio(sizes[i])
		// Where the ratio hardly falls, a size tells nothing of the conversion.
		if exact < rarest || s.distances.MissRatio(2*sizes[i]) > 0.8*exact {
			continue
		}
		k := sort.Search(len(sizes), func(k int) bool { return curve.Points[k].MissRatio <= exact })
		off = append(off, float64(k-i)/perOctave*math.Ln2)
	}
	return off, nil
}

// rarest is the smallest miss ratio of which it is looked at how its size is converted.
const rarest = 1e-3

// quantile of numbers, which it sorts.
func quantile(v []float64, q float64) float64 {
	slices.Sort(v)
	return v[int(q*float64(len(v)-1)+0.5)]
}
