package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// MissRatios is what rdx mrc prints.
type MissRatios struct {
	Model  string       `json:"model"`
	Ways   int          `json:"ways"` // 0: fully associative
	Curves []*missCurve `json:"curves"`
}

// missCurve is one profile's.
type missCurve struct {
	File    string      `json:"file"`
	Profile *overview   `json:"profile"`
	Holds   int         `json:"holds"` // independent places at which the program was looked at
	Points  []MissPoint `json:"points"`
}

// MissPoint is one cache size. Without a ratio that may be quoted, Note says
// why and only the band stands.
type MissPoint struct {
	Bytes     uint64   `json:"bytes"`
	Blocks    uint64   `json:"blocks"`
	MissRatio *float64 `json:"miss_ratio"` // null where it is not to be quoted
	Low       float64  `json:"low"`        // 95 % confidence
	High      float64  `json:"high"`
	Misses    *float64 `json:"misses"`
	Note      string   `json:"note,omitempty"`

	raw   model.Point
	cache string // that has this size
}

// NewMissCurve computes the curve at the given sizes, or, if there are none,
// at the powers of two and the profile's caches.
func NewMissCurve(p *model.Profile, sizes []string, o model.CurveOptions) (*missCurve, error) {
	if p.Block <= 0 {
		return nil, fmt.Errorf("the profile does not tell its block size")
	}
	var bytes []uint64
	for _, s := range sizes {
		n, err := sampler.ParseSize(s)
		if err != nil {
			return nil, BadInput(fmt.Errorf("--sizes: %w", err))
		}
		if n < int64(p.Block) {
			return nil, BadInput(fmt.Errorf("--sizes: %s is less than one block of %d bytes", s, p.Block))
		}
		bytes = append(bytes, uint64(n))
	}
	if len(sizes) == 0 {
		bytes = curveSizes(p, max(1, o.Ways))
	}
	slices.Sort(bytes)
	bytes = slices.Compact(bytes)
	blocks := make([]uint64, len(bytes))
	for i, b := range bytes {
		blocks[i] = b / uint64(p.Block)
		if o.Ways > 0 && blocks[i]%uint64(o.Ways) != 0 {
			return nil, BadInput(fmt.Errorf("--ways %d: %s are not a whole number of sets of %d blocks of %d bytes (consider: --sizes)", o.Ways, Bytes(float64(b)), o.Ways, p.Block))
		}
	}
	curve, err := p.MissRatios(blocks, o)
	if err != nil {
		return nil, err
	}
	known := curve
	if o != (model.CurveOptions{}) {
		known = nil
	}
	c := &missCurve{Profile: SurveyOf(p, known), Holds: curve.Holds}
	for i, q := range curve.Points {
		m := MissPoint{Bytes: bytes[i], Blocks: q.Blocks, Low: q.Low, High: q.High, Note: q.Quote.String(), raw: q}
		if q.Quote == model.Quoted {
			m.MissRatio, m.Misses = &q.MissRatio, &q.Misses
		}
		for _, cache := range p.Caches {
			if uint64(max(cache.Size, 0)) == m.Bytes {
				m.cache = strings.TrimSpace(m.cache + " " + cache.Level)
			}
		}
		c.Points = append(c.Points, m)
	}
	return c, nil
}

// curveSizes are those of powers of two of sets of so many ways, from 1 KiB, or 16 blocks, on to where all
// that was seen fits, and the profile's caches that have a whole number of sets.
func curveSizes(p *model.Profile, ways int) []uint64 {
	largest := uint64(1 << 20)
	var sizes []uint64
	set := uint64(p.Block * ways)
	for _, c := range p.Caches {
		if s := uint64(max(c.Size, 0)); s >= uint64(p.Block) {
			if s%set == 0 {
				sizes = append(sizes, s)
			}
			largest = max(largest, s)
		}
	}
	if h, err := p.Stacks(model.LogBins(1)); err == nil {
		for i, w := range h.W {
			if w > 0 && h.Bins.Hi(i) < 1<<40 {
				largest = max(largest, h.Bins.Hi(i)*uint64(p.Block))
			}
		}
	}
	for s := set; s <= min(2*largest, 1<<50); s *= 2 {
		if s >= uint64(max(1024, 16*p.Block)) {
			sizes = append(sizes, s)
		}
	}
	return sizes
}

func (r *MissRatios) Table() [][]string {
	rows := [][]string{{"file", "bytes", "blocks", "miss_ratio", "low", "high", "misses", "note"}}
	for _, c := range r.Curves {
		for _, q := range c.Points {
			rows = append(rows, []string{c.File, Whole(q.Bytes), Whole(q.Blocks), FloatOr(q.MissRatio), Float(q.Low), Float(q.High), FloatOr(q.Misses), q.Note})
		}
	}
	return rows
}

func (r *MissRatios) overviews() (all []*overview) {
	for _, c := range r.Curves {
		all = append(all, c.Profile)
	}
	return all
}

func (r *MissRatios) Text() string {
	var b strings.Builder
	for i, c := range r.Curves {
		if i > 0 {
			b.WriteString("\n")
		}
		if len(r.Curves) > 1 {
			fmt.Fprintf(&b, "%-13s%s\n", "file", Printable(c.File))
		}
		c.writeText(&b, r, HasUTF8())
	}
	return b.String()
}

func (c *missCurve) writeText(b *strings.Builder, r *MissRatios, utf8 bool) {
	WriteOverview(b, c.Profile)
	kind := "fully associative"
	if r.Ways > 0 {
		kind = fmt.Sprintf("%d ways", r.Ways)
	}
	fmt.Fprintf(b, "\nmiss ratio, LRU, %s, %d-byte blocks, model %s; in brackets 95 %% confidence\n\n", kind, c.Profile.Block, r.Model)
	greatest := 0.0
	for _, q := range c.Points {
		greatest = max(greatest, q.High)
	}
	const labels = 44 // columns before the bars
	for _, q := range c.Points {
		ratio := Percent(q.raw.MissRatio, 1)
		bar := q.raw.MissRatio
		if q.MissRatio == nil {
			ratio = below(q.High)
			if q.raw.Quote.Unknown() {
				ratio = "?"
			}
			bar = 0
		}
		line := fmt.Sprintf("%-4s %9s %8s [%6s, %6s]  ", q.cache, Bytes(float64(q.Bytes)), ratio, Percent(q.Low, 1), Percent(q.High, 1))
		if q.Note != "" {
			line += q.Note
		} else {
			line += BarOf(bar, greatest, 80-labels, utf8)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// errNothing is for drawings without a point.
var errNothing = errors.New("mrc: no cache size has a miss ratio to draw; profile longer")
