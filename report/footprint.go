package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// A footprintCurve is what rdx hist --kind footprint prints: how much data a
// stretch of the program touches, by the stretch's length (Ding & Xiang).
type footprintCurve struct {
	Profile *overview        `json:"profile"`
	Points  []FootprintPoint `json:"footprint"`

	block float64
}

type FootprintPoint struct {
	Window uint64  `json:"window_accesses"`
	Blocks float64 `json:"blocks"`
	Bytes  float64 `json:"bytes"`
}

// NewFootprintCurve takes windows of perOctave lengths an octave, up to the
// longest time observed: nothing is known of longer ones.
func NewFootprintCurve(p *model.Profile, perOctave int) (*footprintCurve, error) {
	survival, err := p.Survival()
	if err != nil {
		return nil, err
	}
	if !(survival.Total() > 0) {
		return nil, errNoObservations
	}
	var fp model.Footprint
	if err := fp.Reset(survival); err != nil {
		return nil, err
	}
	c := &footprintCurve{Profile: Survey(p), block: float64(p.Block)}
	longest := p.Longest()
	for i := 0; ; i++ {
		w := uint64(math.Round(math.Exp2(float64(i) / float64(perOctave))))
		if w > longest {
			return c, nil
		}
		if n := len(c.Points); n > 0 && c.Points[n-1].Window == w {
			continue
		}
		blocks := fp.At(float64(w))
		c.Points = append(c.Points, FootprintPoint{w, blocks, blocks * c.block})
	}
}

func (c *footprintCurve) Table() [][]string {
	rows := [][]string{{"window_accesses", "blocks", "bytes"}}
	for _, p := range c.Points {
		rows = append(rows, []string{Whole(p.Window), Float(p.Blocks), Float(p.Bytes)})
	}
	return rows
}

func (c *footprintCurve) overviews() []*overview { return []*overview{c.Profile} }

func (c *footprintCurve) Text() string {
	var b strings.Builder
	WriteOverview(&b, c.Profile)
	fmt.Fprintf(&b, "\nfootprint: data touched in a window of so many accesses, on average\n\n%10s %10s  %s\n", "window", "touched", "(bars: logarithm)")
	scale, utf8 := 1.0, HasUTF8()
	if n := len(c.Points); n > 0 {
		scale = math.Log2(1 + c.Points[n-1].Blocks)
	}
	for _, p := range c.Points {
		fmt.Fprintf(&b, "%10s %10s  %s\n", Amount(float64(p.Window)), Bytes(p.Bytes), BarOf(math.Log2(1+p.Blocks), scale, 55, utf8))
	}
	return b.String()
}
