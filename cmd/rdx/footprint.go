package main

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
	Points  []footprintPoint `json:"footprint"`

	block float64
}

type footprintPoint struct {
	Window uint64  `json:"window_accesses"`
	Blocks float64 `json:"blocks"`
	Bytes  float64 `json:"bytes"`
}

// newFootprintCurve takes windows of perOctave lengths an octave, up to the
// longest time observed: nothing is known of longer ones.
func newFootprintCurve(p *model.Profile, perOctave int) (*footprintCurve, error) {
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
	c := &footprintCurve{Profile: survey(p), block: float64(p.Block)}
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
		c.Points = append(c.Points, footprintPoint{w, blocks, blocks * c.block})
	}
}

func (c *footprintCurve) rows() [][]string {
	rows := [][]string{{"window_accesses", "blocks", "bytes"}}
	for _, p := range c.Points {
		rows = append(rows, []string{whole(p.Window), number(p.Blocks), number(p.Bytes)})
	}
	return rows
}

func (c *footprintCurve) text() string {
	var b strings.Builder
	writeOverview(&b, c.Profile)
	fmt.Fprintf(&b, "\nfootprint: data touched in a window of so many accesses, on average\n\n%10s %10s  %s\n", "window", "touched", "(bars: logarithm)")
	scale, utf8 := 1.0, hasUTF8()
	if n := len(c.Points); n > 0 {
		scale = math.Log2(1 + c.Points[n-1].Blocks)
	}
	for _, p := range c.Points {
		fmt.Fprintf(&b, "%10s %10s  %s\n", siCount(float64(p.Window)), siBytes(p.Bytes), barOf(math.Log2(1+p.Blocks), scale, 55, utf8))
	}
	return b.String()
}
