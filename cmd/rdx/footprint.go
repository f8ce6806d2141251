package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
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
	times, err := p.Times()
	if err != nil {
		return nil, err
	}
	var fp model.Footprint
	if err := fp.Reset(times); err != nil {
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

func (c *footprintCurve) write(w io.Writer, format string, utf8 bool) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(c)
	case "csv":
		out := csv.NewWriter(w)
		out.Write([]string{"window_accesses", "blocks", "bytes"})
		for _, p := range c.Points {
			out.Write([]string{strconv.FormatUint(p.Window, 10), strconv.FormatFloat(p.Blocks, 'g', -1, 64), strconv.FormatFloat(p.Bytes, 'g', -1, 64)})
		}
		out.Flush()
		return out.Error()
	}
	if err := writeOverview(w, c.Profile); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nfootprint: data touched in a window of so many accesses, on average\n\n%10s %10s  %s\n", "window", "touched", "(bars: logarithm)")
	scale := 1.0
	if n := len(c.Points); n > 0 {
		scale = math.Log2(1 + c.Points[n-1].Blocks)
	}
	for _, p := range c.Points {
		fmt.Fprintf(&b, "%10s %10s  %s\n", siCount(float64(p.Window)), siBytes(p.Bytes), barOf(math.Log2(1+p.Blocks), scale, 55, utf8))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
