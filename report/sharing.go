package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// sharingFinding is what threads take from each other at one pair of places, in both directions, in plain words.
type sharingFinding struct {
	Kind    string   `json:"kind"` // true or false, of sharing
	Where   []place  `json:"places"`
	Data    []string `json:"data,omitempty"`
	Members []string `json:"members,omitempty"` // of structs
	Share   float64  `json:"share"`             // of all accesses
	Seen    int64    `json:"observations"`
	Rate    float64  `json:"per_second"` // transfers of a line
	Low     float64  `json:"per_second_low"`
	High    float64  `json:"per_second_high"`
	Most    bool     `json:"most"` // as many as the lines can make
	Text    string   `json:"text"`

	offsets map[place]map[uint64]bool
	lines   map[uint64]bool // addresses
}

// touches says whether any of the lines is one of the finding's.
func (f *sharingFinding) touches(lines map[uint64]bool) bool {
	for l := range lines {
		if f.lines[l] {
			return true
		}
	}
	return false
}

// note adds a place, and where in their lines it touches data.
func (f *sharingFinding) note(p place, at []uint64) {
	if f.offsets[p] == nil {
		f.offsets[p] = map[uint64]bool{}
		f.Where = append(f.Where, p)
	}
	for _, o := range at {
		f.offsets[p][o] = true
	}
}

const (
	mostFindings   = 5    // are told of
	leastTransfers = 1000 // a second: at 100 ns each, a ten thousandth of a processor's time
	// mostTransfers is how many a second a line can make: each takes 50 ns or more. What threads would take beyond that, were each
	// access to wait for the one before, they do while they have the line, and so seldom find it gone.
	mostTransfers = 20e6
)

// SharingFindings are what threads take from each other, the most first. The profile has its records of lines still, see OnStack.
func SharingFindings(p *model.Profile) []*sharingFinding {
	pairs, _ := invalidations(p)
	return findings(p, pairs)
}

// findings groups pairs by what is shared, whoever writes: those that have a line in common. What is taken so seldom that it costs nothing
// is none.
func findings(p *model.Profile, pairs []*invalidation) []*sharingFinding {
	var all []*sharingFinding
	for _, v := range pairs {
		i := slices.IndexFunc(all, func(f *sharingFinding) bool { return f.Kind == v.Kind && f.touches(v.lines) })
		if i < 0 {
			i = len(all)
			all = append(all, &sharingFinding{Kind: v.Kind, lines: map[uint64]bool{}, offsets: map[place]map[uint64]bool{}})
		}
		f := all[i]
		maps.Copy(f.lines, v.lines)
		f.Share += v.Share
		f.Seen += v.Observations
		f.note(v.Reader, v.ReadAt)
		f.note(v.Writer, v.WrittenAt)
		for _, d := range v.Data {
			f.Data = with(f.Data, d)
		}
		for _, m := range slices.Concat(v.Read, v.Written) {
			f.Members = with(f.Members, m)
		}
	}
	slices.SortStableFunc(all, func(a, b *sharingFinding) int { return cmp.Compare(b.Share, a.Share) })
	all = all[:min(len(all), mostFindings)]
	for _, f := range all {
		f.Rate, f.Low, f.High = p.SharedPerSecond(f.Share)
		if most := mostTransfers * float64(len(f.lines)); f.Rate > most {
			f.Most, f.Rate, f.Low, f.High = true, most, min(f.Low, most), most
		}
		f.Text = f.text()
	}
	return slices.DeleteFunc(all, func(f *sharingFinding) bool { return p.Duration > 0 && f.Rate < leastTransfers })
}

// text is the finding in words.
func (f *sharingFinding) text() string {
	slices.Sort(f.Data)
	data := "data"
	if len(f.Data) > 0 {
		data = Printable(Shorten(strings.Join(f.Data, ", "), 60))
	}
	if len(f.Members) > 0 {
		data = Members(f.Members) + " (" + data + ")"
	}
	const most = 4
	var shown []string
	for i, p := range f.Where {
		if i == most {
			shown = append(shown, fmt.Sprintf("%d more", len(f.Where)-most))
			break
		}
		shown = append(shown, p.String()+" at "+offsets(slices.Sorted(maps.Keys(f.offsets[p]))))
	}
	who := shown[0]
	if last := len(shown) - 1; last > 0 {
		who = strings.Join(shown[:last], ", ") + " and " + shown[last]
	}
	cost := fmt.Sprintf("%s of accesses, %s", Percent(f.Share, 1), transfers(f.Rate, f.Low, f.High))
	if f.Most {
		cost = fmt.Sprintf("%s of accesses would find the line gone, more than can be: it moves up to %s times a second", Percent(f.Share, 1), perSecond(f.Rate))
	}
	if f.Kind == "false" {
		return fmt.Sprintf("%s: %s of one line are used by different threads: %s; pad or split them", data, who, cost)
	}
	return fmt.Sprintf("%s: %s, the same words, are used by several threads: %s; give each thread its own, or write less often", data, who, cost)
}

// Members are names as pprofout gives them, "a of struct s", those of one struct together: "a and b of struct s".
func Members(names []string) string {
	if len(names) == 0 {
		return "data"
	}
	const most = 5
	of := map[string][]string{}
	var order []string
	for _, n := range names {
		member, in, _ := strings.Cut(n, " of ")
		if of[in] == nil {
			order = append(order, in)
		}
		of[in] = append(of[in], member)
	}
	var out []string
	for _, in := range order {
		list := slices.Sorted(slices.Values(of[in]))
		if n := len(list); n > most {
			list = append(list[:most], fmt.Sprintf("%d more", n-most))
		}
		text := list[0]
		if last := len(list) - 1; last > 0 {
			text = strings.Join(list[:last], ", ") + " and " + list[last]
		}
		if in != "" {
			text += " of " + in
		}
		out = append(out, text)
	}
	return Printable(Shorten(strings.Join(out, "; "), 100))
}

// transfers says how many lines a second go from one thread to another.
func transfers(mean, low, high float64) string {
	if low >= mean*0.999 && high <= mean*1.001 || high > 20*low {
		return fmt.Sprintf("about %s transfers a second", perSecond(mean))
	}
	return fmt.Sprintf("%s transfers a second, between %s and %s", perSecond(mean), perSecond(low), perSecond(high))
}

func perSecond(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.3g million", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.3g thousand", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}

// sharingSummary says how much is shared in all.
func sharingSummary(s model.Sharing, falseUnknown bool, share func(float64) string) string {
	if !s.ByLine {
		falsely := share(s.False)
		if falseUnknown {
			falsely = "an unknown share"
		}
		return fmt.Sprintf("%s of the accesses find their datum written by another thread, %s another word of its line", share(s.True), falsely)
	}
	text := fmt.Sprintf("%s of the accesses find their line written by another thread, 95%% band %s to %s: true sharing %s, false sharing %s",
		Percent(s.True+s.False, 1), Percent(s.Low, 1), Percent(s.High, 1), Percent(s.True, 1), Percent(s.False, 1))
	if s.True+s.False == 0 {
		text = fmt.Sprintf("less than %s of the accesses find their line written by another thread: none was seen", Percent(s.High, 1))
	}
	if s.Turns > 0.5 {
		text += ";\nmost of it is of threads that wait for each other: who of them comes next is not seen, and the band is wider for that"
	}
	if s.Swift > 0.1 && s.True+s.False > 0 {
		text += fmt.Sprintf(";\nthis is by how accesses follow each other: up to %s of it is of lines that come back sooner than a line can move, so that who has one goes on with it, and the band is wider for that", Percent(s.Swift, 1))
	}
	if s.Apart > (s.True+s.False)/4 && s.Apart > 0 {
		text += ";\nwhat each thread touches changes over time: whether they are at the same data at the same times is not known well, and the band is wider for that; a longer session tells more"
	}
	if s.Low == 0 && s.True+s.False > 0 && s.Served < 1 {
		text += fmt.Sprintf(";\nas other programs ran, the threads had a processor for %s of the time: whether at the same times is not seen, and the band is wider for that", Percent(s.Served, 1))
	}
	if s.Unknown > 0 {
		text += fmt.Sprintf(";\nof %s of the accesses it is not known: the band covers all and none of them", Percent(s.Unknown, 1))
	}
	return text
}
