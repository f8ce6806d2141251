package report

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// HasUTF8 says whether the locale's letters include block elements.
func HasUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// A bar is one row: the values From..To-1, or a name for what has none.
type bar struct {
	Name   string   `json:"name,omitempty"`
	From   uint64   `json:"from"`
	To     uint64   `json:"to"`
	FromNS *float64 `json:"from_ns,omitempty"`
	ToNS   *float64 `json:"to_ns,omitempty"`
	Weight float64  `json:"accesses"` // after Kaplan-Meier
	Share  float64  `json:"share"`
	// 95 % confidence of Share; of stack distances only.
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	remark string
}

// A chart is what rdx hist prints.
type Chart struct {
	Profile *overview `json:"profile"`
	Kind    string    `json:"kind"`
	Unit    string    `json:"unit"` // of From and To
	Total   float64   `json:"total_accesses"`
	Bars    []bar     `json:"bins"`
	// What has no value on the axis: below_resolution, invalidated, never.
	Masses []bar `json:"masses"`

	profile *model.Profile
	raw     [model.Lost + 1]float64 // accesses by kind, as observed
}

func NewChart(p *model.Profile, kind string, perOctave int) (*Chart, error) {
	times, err := p.Times()
	if err != nil {
		return nil, err
	}
	c := &Chart{Profile: Survey(p), Kind: kind, Unit: "accesses", profile: p}
	h := model.NewHist(model.LogBins(perOctave))
	below := 0.0
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind <= model.Lost {
			c.raw[r.Kind] += r.Accesses
		}
		switch {
		case r.Kind != model.Reuse:
		case r.BelowResolution:
			below += r.Reuses
		default:
			h.Add(r.Time, r.Reuses)
		}
	}
	scale := 1.0
	var band *model.HistBand
	if kind == "stack" {
		// Reuses below the resolution are spread over what they can be.
		if times.Total() > 0 {
			if band, err = p.StackBands(h.Bins, model.CurveOptions{}); err != nil {
				return nil, err
			}
			h = band.H
		}
		below, c.Unit, scale = 0, "bytes", float64(p.Block)
	}
	c.Total = h.Finite() + below + times.Invalidated + times.Cold
	c.fill(h, band, scale)
	c.mass("below_resolution", below)
	c.mass("invalidated", times.Invalidated)
	c.mass("never", times.Cold)
	if band != nil {
		c.Masses[2].band(c.share(band.ColdLow), c.share(band.ColdHigh))
	}
	return c, nil
}

func (b *bar) band(low, high float64) { b.Low, b.High = &low, &high }

func (c *Chart) mass(name string, w float64) {
	c.Masses = append(c.Masses, bar{Name: name, Weight: w, Share: c.share(w)})
}

func (c *Chart) share(w float64) float64 {
	if !(c.Total > 0) {
		return 0
	}
	return w / c.Total
}

// fill makes a bar of every bin from the first to the last that holds
// something. band is nil if there is none.
func (c *Chart) fill(h *model.Hist, band *model.HistBand, scale float64) {
	first, last := -1, -1
	for i, w := range h.W {
		if w > 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return
	}
	for i := first; i <= last; i++ {
		b := bar{From: scaleUp(h.Bins.Lo(i), scale), To: scaleUp(h.Bins.Hi(i), scale), Weight: h.W[i], Share: c.share(h.W[i])}
		if band != nil {
			b.band(c.share(band.Low[i]), c.share(band.High[i]))
		}
		if p := c.profile; c.Kind == "time" && p.Clock.Unit == "nanoseconds" && p.Clock.Rate > 0 {
			from, to := float64(b.From)/p.Clock.TouchRate(), float64(b.To)/p.Clock.TouchRate()
			b.FromNS, b.ToNS = &from, &to
		}
		if c.Kind == "stack" {
			for _, cache := range c.profile.Caches {
				if s := uint64(max(cache.Size, 0)); s >= b.From && s < b.To {
					b.remark += " <- " + cache.Level + " " + Bytes(float64(cache.Size))
				}
			}
		}
		c.Bars = append(c.Bars, b)
	}
}

func scaleUp(v uint64, f float64) uint64 {
	if s := float64(v) * f; s < math.MaxUint64 {
		return uint64(s)
	}
	return math.MaxUint64
}

func (c *Chart) Table() [][]string {
	rows := [][]string{{"name", "from_" + c.Unit, "to_" + c.Unit, "from_ns", "to_ns", "accesses", "share", "share_low", "share_high"}}
	for _, b := range c.Bars {
		rows = append(rows, []string{"", Whole(b.From), Whole(b.To), FloatOr(b.FromNS), FloatOr(b.ToNS), Float(b.Weight), Float(b.Share), FloatOr(b.Low), FloatOr(b.High)})
	}
	for _, b := range c.Masses {
		rows = append(rows, []string{b.Name, "", "", "", "", Float(b.Weight), Float(b.Share), FloatOr(b.Low), FloatOr(b.High)})
	}
	for k := model.Reuse; k < model.Lost; k++ {
		rows = append(rows, []string{"observed " + k.String(), "", "", "", "", Float(c.raw[k]), Float(c.rawShare(k)), "", ""})
	}
	return rows
}

// rawShare is the share of the accesses whose observation ended so.
func (c *Chart) rawShare(k model.Kind) float64 {
	sum := 0.0
	for j := model.Reuse; j < model.Lost; j++ {
		sum += c.raw[j]
	}
	if !(sum > 0) {
		return 0
	}
	return c.raw[k] / sum
}

func (c *Chart) overviews() []*overview { return []*overview{c.Profile} }

func (c *Chart) Text() string {
	var b strings.Builder
	WriteOverview(&b, c.Profile)
	amount, utf8 := Amount, HasUTF8()
	title := "reuse time"
	if c.Kind == "stack" {
		amount, title = Bytes, "stack distance"
	}
	// Before the bars come the label, the time or the band, and the share.
	width, head := 8, "CPU time"
	switch {
	case c.Kind == "stack" && c.Profile.Observations > 0:
		width, head = 16, "95 % confidence"
	case len(c.Bars) == 0 || c.Bars[0].FromNS == nil:
		head = ""
	}
	labels := 29 + width
	fmt.Fprintf(&b, "\n%s, share of %s accesses\n\n", title, Amount(c.Total))
	greatest := 0.0
	for _, r := range append(append([]bar{}, c.Bars...), c.Masses...) {
		greatest = max(greatest, r.Share)
	}
	draw := func(label, time string, r bar) {
		room := 80 - labels - len(r.remark)
		full := 80 - labels - 22 // room for the longest remark, so that bars compare
		if c.Kind == "time" {
			full = room
		}
		if r.Low != nil {
			time = fmt.Sprintf("[%6s, %6s]", Percent(*r.Low, 1), Percent(*r.High, 1))
		}
		line := fmt.Sprintf("%-19s %*s %6s  %s%s", label, width, time, Percent(r.Share, 1), BarOf(r.Share, greatest, min(full, room), utf8), r.remark)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&b, "%19s %*s %6s\n", c.Unit+"      ", width, head, "share")
	if r := c.Masses[0]; c.Kind == "time" && r.Weight > 0 {
		ns := ""
		if c.profile.Clock.Unit == "nanoseconds" {
			ns = "<" + Nanoseconds(c.profile.Clock.Resolution)
		}
		draw("below resolution", ns, r)
	}
	for _, r := range c.Bars {
		ns := ""
		if r.FromNS != nil {
			ns = ">=" + Nanoseconds(*r.FromNS)
		}
		draw(fmt.Sprintf("%8s - %8s", amount(float64(r.From)), amount(float64(r.To))), ns, r)
	}
	draw("invalidated", "", c.Masses[1])
	draw("never seen reused", "", c.Masses[2])
	c.writeKinds(&b)
	return b.String()
}

// writeKinds tells how the observations ended, before any estimation.
func (c *Chart) writeKinds(b *strings.Builder) {
	o := c.Profile
	explain := map[model.Kind]string{
		model.Cold:        "first access, or last of its thread",
		model.Censored:    "watched to the end without a reuse",
		model.Invalidated: "another thread wrote the datum first",
		model.Pruned:      "given up on purpose without a reuse",
	}
	fmt.Fprintf(b, "\n%-17s %9s  %s\n", "as observed", "number", "of accesses")
	for k := model.Reuse; k < model.Lost; k++ {
		line := fmt.Sprintf("%-17s %9d  %6s  %s", k, o.Kinds[k.String()], Percent(c.rawShare(k), 1), explain[k])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if k == model.Reuse {
			fmt.Fprintf(b, "%-17s %9d  %6s  sooner than %s\n", "  below resolution", o.below, "", resolution(c.profile))
		}
	}
	lost := ""
	if o.Lost > 0 {
		lost = Printable(Shorten(o.topLosses(1), 43))
	}
	line := fmt.Sprintf("%-17s %9d  %6s  %s", "lost", o.Lost, "", lost)
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// BarOf draws share as a bar of at most width columns at the greatest.
func BarOf(share, greatest float64, width int, utf8 bool) string {
	if !(greatest > 0) || !(share > 0) || width <= 0 {
		return ""
	}
	const full, eighths = "█", "▏▎▍▌▋▊▉"
	n := share / greatest * float64(width)
	if !utf8 {
		return strings.Repeat("#", max(1, int(math.Round(n))))
	}
	s := strings.Repeat(full, int(n))
	if part := int((n - math.Floor(n)) * 8); part > 0 || s == "" {
		s += string([]rune(eighths)[max(part, 1)-1])
	}
	return s
}
