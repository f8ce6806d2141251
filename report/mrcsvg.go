package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// colors tell curves apart, also for the colour blind (Okabe & Ito).
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// WriteSVG draws all curves in one picture: cache size on a logarithmic axis,
// miss ratio on a linear one, bands behind the lines. A curve is dashed where
// its ratio is not to be quoted.
func (r *MissRatios) WriteSVG(w io.Writer) error {
	const width, height, left, right, top, bottom = 760, 440, 64, 32, 20, 56
	low, high, greatest, axis := math.Inf(1), 0.0, 0.0, 1.0
	for _, c := range r.Curves {
		for _, q := range c.Points {
			low, high = min(low, float64(q.Bytes)), max(high, float64(q.Bytes))
			greatest = max(greatest, q.High)
		}
	}
	if !(high > low) || !(greatest > 0) {
		return errNothing
	}
	for _, top := range []float64{1, 0.5, 0.25, 0.1, 0.05, 0.01} { // five even ticks
		if greatest <= top {
			axis = top
		}
	}
	x := func(bytes float64) float64 {
		return left + (width-left-right)*math.Log2(bytes/low)/math.Log2(high/low)
	}
	y := func(ratio float64) float64 { return top + (height-top-bottom)*(1-min(ratio, axis)/axis) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for k := 0; k <= 5; k++ {
		v := axis * float64(k) / 5
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.4g%%</text>`+"\n", left, y(v), width-right, left-6, y(v)+4, 100*v)
	}
	for s := math.Exp2(math.Ceil(math.Log2(low))); s <= high; s *= 4 {
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#eee"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(s), top, height-bottom, x(s), height-bottom+18, strings.Replace(Bytes(s), ".00", "", 1))
	}
	marked := map[string]bool{}
	for _, c := range r.Curves {
		for _, q := range c.Points {
			if q.cache != "" && !marked[q.cache] {
				marked[q.cache] = true
				at := x(float64(q.Bytes))
				fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#999" stroke-dasharray="2 3"/><text x="%.1f" y="%d" fill="#666">%s</text>`+"\n", at, top, height-bottom, at+3, top+12, html.EscapeString(Printable(q.cache)))
			}
		}
	}
	for i, c := range r.Curves {
		color := colors[i%len(colors)]
		var band strings.Builder
		for _, q := range c.Points {
			fmt.Fprintf(&band, "%.1f,%.1f ", x(float64(q.Bytes)), y(q.High))
		}
		for k := len(c.Points) - 1; k >= 0; k-- {
			fmt.Fprintf(&band, "%.1f,%.1f ", x(float64(c.Points[k].Bytes)), y(c.Points[k].Low))
		}
		fmt.Fprintf(&b, `<polygon points="%s" fill="%s" fill-opacity="0.15"/>`+"\n", strings.TrimSpace(band.String()), color)
		for k := 1; k < len(c.Points); k++ {
			p, q := c.Points[k-1], c.Points[k]
			dash := ""
			if p.raw.Quote != model.Quoted || q.raw.Quote != model.Quoted {
				dash = ` stroke-dasharray="4 4"`
			}
			fmt.Fprintf(&b, `<path d="M%.1f %.1fL%.1f %.1f" stroke="%s" stroke-width="2"%s/>`+"\n", x(float64(p.Bytes)), y(p.raw.MissRatio), x(float64(q.Bytes)), y(q.raw.MissRatio), color, dash)
		}
		name := c.File
		if c.Profile.Command != "" {
			name = fmt.Sprintf("%s (%s)", name, Shorten(c.Profile.Command, 40))
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>`+"\n", width-right-6, top+30+16*i, color, html.EscapeString(Printable(name)))
	}
	ways := "fully associative"
	if r.Ways > 0 {
		ways = fmt.Sprintf("%d ways", r.Ways)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">cache size (LRU, %s), miss ratio with 95 %% confidence; dashed: too rare or not observed</text>`+"\n", (left+width-right)/2, height-14, ways)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
