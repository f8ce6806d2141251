package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rdx-profiler/rdx/model"
)

// phasesReport is what rdx phases prints.
type phasesReport struct {
	Bytes   []uint64      `json:"bytes"` // cache sizes
	Windows []phaseWindow `json:"windows"`
	Phases  []phase       `json:"phases"`

	levels []string // names of the sizes
}

type phaseWindow struct {
	File    string    `json:"file"`
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"`
	Holds   int       `json:"holds"`
	Rate    float64   `json:"accesses_per_second"`
	// Ratios are per size; Changed says of which the window differs from the phase before it.
	Ratios  []band `json:"miss_ratios"`
	Changed []bool `json:"changed"`
	Pair    string `json:"top_pair"`
	Share   band   `json:"top_pair_share_of_accesses"`

	quoted []bool // of the ratios: those known well enough for a number
}

// phase is a run of windows without a change, and their mean ratios.
type phase struct {
	First  int    `json:"first_window"`
	Last   int    `json:"last_window"`
	Ratios []band `json:"miss_ratios"`
}

func NewPhases(files []string, all []*model.Profile, sizes []string, o model.CurveOptions) (*phasesReport, error) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return all[a].Start.Compare(all[b].Start) })
	first := all[order[0]]
	r := &phasesReport{}
	if len(sizes) == 0 {
		for _, c := range first.Caches {
			sizes = append(sizes, strconv.FormatInt(c.Size, 10))
		}
	}
	if len(sizes) == 0 {
		return nil, BadInput(fmt.Errorf("phases: the profiles name no caches (use --sizes)"))
	}
	for _, i := range order {
		p := all[i]
		if p.Block != first.Block {
			return nil, fmt.Errorf("%s and %s: blocks of %d and %d bytes", files[order[0]], files[i], first.Block, p.Block)
		}
		w := phaseWindow{File: files[i], Start: p.Start, Seconds: p.Duration.Seconds()}
		if Observed(p) {
			c, err := NewMissCurve(p, sizes, o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", files[i], err)
			}
			w.add(p, c)
			if len(r.Bytes) == 0 {
				for _, q := range c.Points {
					r.Bytes = append(r.Bytes, q.Bytes)
					r.levels = append(r.levels, strings.TrimSpace(q.cache+" "+Bytes(float64(q.Bytes))))
				}
			}
		}
		r.Windows = append(r.Windows, w)
	}
	if len(r.Bytes) == 0 {
		return nil, fmt.Errorf("phases: none of the profiles has an observation")
	}
	r.find()
	return r, nil
}

func (w *phaseWindow) add(p *model.Profile, c *missCurve) {
	w.Holds = c.Holds
	for _, q := range c.Points {
		w.Ratios = append(w.Ratios, band(q.raw.Estimate()))
		w.quoted = append(w.quoted, q.raw.Quote == model.Quoted)
	}
	w.Changed = make([]bool, len(w.Ratios))
	if w.Seconds > 0 {
		w.Rate = c.Profile.Accesses / w.Seconds
	}
	m, err := FindMetric(p, "misses")
	if err != nil {
		m, _ = FindMetric(p, "reuses")
	}
	if q := Pairs(p, m.Value); len(q) > 0 {
		w.Pair = q[0].Use.String() + " -> " + q[0].Reuse.String()
		w.Share = band(p.PerAccess(q[0].records, m.Value, c.Profile.Accesses, p.Holds(), .05))
	}
}

// find goes through the windows and begins a phase where one differs from the mean of those
// since the last began, by more than all comparisons together make by chance.
func (r *phasesReport) find() {
	comparisons := 0
	for _, w := range r.Windows {
		comparisons += len(w.Ratios)
	}
	// Bands are of 95 %; those of the comparisons together are so much wider.
	wider := distuv.UnitNormal.Quantile(1-.05/2/float64(max(comparisons, 1))) / distuv.UnitNormal.Quantile(.975)
	var mean pooled
	begin := -1
	end := func(last int) {
		if begin >= 0 {
			r.Phases = append(r.Phases, phase{begin, last, mean.bands()})
		}
	}
	last := -1 // window with observations
	for i := range r.Windows {
		w := &r.Windows[i]
		if len(w.Ratios) == 0 {
			continue
		}
		if begin < 0 {
			begin = i
		} else {
			before := mean.bands()
			for k := range w.Ratios {
				a, b := model.Estimate(before[k]).Widened(wider), model.Estimate(w.Ratios[k]).Widened(wider)
				w.Changed[k] = b.Minus(a).Significant()
			}
			if slices.Contains(w.Changed, true) {
				end(last)
				begin, mean = i, pooled{}
			}
		}
		mean.add(w)
		last = i
	}
	end(last)
}

// pooled is the mean of windows' ratios, weighted by what they are worth, with its band.
type pooled struct {
	n            float64
	sum          []float64
	below, above []float64 // squares of the bands' sides, weighted by the squares of the weights
}

func (m *pooled) add(w *phaseWindow) {
	if m.sum == nil {
		n := len(w.Ratios)
		m.sum, m.below, m.above = make([]float64, n), make([]float64, n), make([]float64, n)
	}
	n := float64(max(w.Holds, 1))
	m.n += n
	for k, b := range w.Ratios {
		m.sum[k] += n * b.Value
		m.below[k] += n * n * (b.Value - b.Low) * (b.Value - b.Low)
		m.above[k] += n * n * (b.High - b.Value) * (b.High - b.Value)
	}
}

func (m *pooled) bands() []band {
	out := make([]band, len(m.sum))
	for k := range out {
		v := m.sum[k] / m.n
		out[k] = band{v, max(0, v-math.Sqrt(m.below[k])/m.n), min(1, v+math.Sqrt(m.above[k])/m.n)}
	}
	return out
}

func (r *phasesReport) Table() [][]string {
	head := []string{"file", "start", "seconds", "holds", "accesses_per_second"}
	for _, b := range r.Bytes {
		s := Whole(b)
		head = append(head, "miss_ratio_"+s, "low_"+s, "high_"+s, "changed_"+s)
	}
	rows := [][]string{append(head, "top_pair", "top_pair_share", "top_pair_low", "top_pair_high")}
	for _, w := range r.Windows {
		row := []string{w.File, w.Start.Format(time.RFC3339Nano), Float(w.Seconds), strconv.Itoa(w.Holds), Float(w.Rate)}
		for k := range r.Bytes {
			if len(w.Ratios) == 0 {
				row = append(row, "", "", "", "")
				continue
			}
			q := w.Ratios[k]
			row = append(row, Float(q.Value), Float(q.Low), Float(q.High), strconv.FormatBool(w.Changed[k]))
		}
		rows = append(rows, append(row, w.Pair, Float(w.Share.Value), Float(w.Share.Low), Float(w.Share.High)))
	}
	return rows
}

func (r *phasesReport) Text() string {
	var b strings.Builder
	b.WriteString("miss ratio, % of accesses; in brackets 95 % confidence; ? known too\nroughly to quote; * changed by more than chance\n\n")
	fmt.Fprintf(&b, "%-9s %5s %10s", "at", "holds", "accesses/s")
	for _, l := range r.levels {
		fmt.Fprintf(&b, " %-22s", l)
	}
	b.WriteString(" top pair\n")
	start := r.Windows[0].Start
	for _, w := range r.Windows {
		at := "-"
		if !w.Start.IsZero() {
			at = sinceStart(w.Start.Sub(start))
		}
		fmt.Fprintf(&b, "%-9s %5d %10s", at, w.Holds, Amount(w.Rate))
		if len(w.Ratios) == 0 {
			b.WriteString("  no observations\n")
			continue
		}
		for k, q := range w.Ratios {
			star := " "
			if w.Changed[k] {
				star = "*"
			}
			ratio := "?"
			if w.quoted[k] {
				ratio = fmt.Sprintf("%.2f", 100*q.Value)
			}
			fmt.Fprintf(&b, " %-22s", fmt.Sprintf("%6s%s[%5.2f, %6.2f]", ratio, star, 100*q.Low, 100*q.High))
		}
		fmt.Fprintf(&b, " %s\n", w.Pair)
	}
	fmt.Fprintf(&b, "\n%s\n", Plural(int64(len(r.Phases)), "phase"))
	for i, p := range r.Phases {
		fmt.Fprintf(&b, "%3d  windows %d to %d:", i+1, p.First+1, p.Last+1)
		for k, q := range p.Ratios {
			fmt.Fprintf(&b, "  %s %.2f [%.2f, %.2f]", r.levels[k], 100*q.Value, 100*q.Low, 100*q.High)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// sinceStart is a time of the run.
func sinceStart(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	return Nanoseconds(float64(d))
}

// WriteSVG draws a line for each cache over time with its band, and upright lines where phases
// begin; below it the rate of accesses.
func (r *phasesReport) WriteSVG(w io.Writer) error {
	const width, height, left, right, top, middle, bottom = 900, 480, 70, 30, 20, 330, 450
	begin := r.Windows[0].Start
	endOf := func(w phaseWindow) float64 { return w.Start.Sub(begin).Seconds() + w.Seconds }
	span, greatest, rate := 0.0, 0.0, 0.0
	for _, p := range r.Windows {
		span, rate = max(span, endOf(p)), max(rate, p.Rate)
		for _, q := range p.Ratios {
			greatest = max(greatest, min(q.High, 3*q.Value+.01))
		}
	}
	if !(span > 0) || !(greatest > 0) {
		return errNothing
	}
	axis := 1.0
	for _, a := range []float64{1, .5, .25, .1, .05, .01} {
		if greatest <= a {
			axis = a
		}
	}
	x := func(s float64) float64 { return left + (width-left-right)*s/span }
	y := func(v float64) float64 { return top + (middle-top)*(1-min(v, axis)/axis) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n"+`<rect width="%d" height="%d" fill="white"/>`+"\n", width, height, width, height)
	for k := 0; k <= 5; k++ {
		v := axis * float64(k) / 5
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.4g%%</text>`+"\n", left, y(v), width-right, left-6, y(v)+4, 100*v)
	}
	for k := 0; k <= 6; k++ {
		s := span * float64(k) / 6
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(s), height-12, Nanoseconds(s*1e9))
	}
	for _, p := range r.Phases[min(1, len(r.Phases)):] {
		at := x(r.Windows[p.First].Start.Sub(begin).Seconds())
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#000" stroke-dasharray="3 3"/>`+"\n", at, top, bottom)
	}
	for k, name := range r.levels {
		color := colors[k%len(colors)]
		for _, p := range r.Windows {
			if len(p.Ratios) == 0 {
				continue
			}
			q, x0, x1 := p.Ratios[k], x(p.Start.Sub(begin).Seconds()), x(endOf(p))
			fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" fill-opacity="0.15"/><path d="M%.1f %.1fH%.1f" stroke="%s" stroke-width="2"/>`+"\n",
				x0, y(q.High), max(x1-x0, .5), max(y(q.Low)-y(q.High), .5), color, x0, y(q.Value), x1, color)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>`+"\n", width-right-6, top+14+16*k, color, html.EscapeString(Printable(name)))
	}
	for _, p := range r.Windows {
		if rate > 0 && p.Rate > 0 {
			h := (bottom - middle - 30) * p.Rate / rate
			x0, x1 := x(p.Start.Sub(begin).Seconds()), x(endOf(p))
			fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#999"/>`+"\n", x0, bottom-h, max(x1-x0-1, .5), h)
		}
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#666">accesses a second, up to %s</text>`+"\n</svg>\n", left, middle+22, Amount(rate))
	_, err := io.WriteString(w, b.String())
	return err
}
