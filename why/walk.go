package why

import (
	"cmp"
	"slices"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Walk is how one instruction, or several of a line of the source, touch memory.
type Walk struct {
	Place    string  `json:"place"`
	Function string  `json:"function"`
	File     string  `json:"file,omitempty"`
	Line     int     `json:"line,omitempty"`
	Op       string  `json:"access"`
	Data     string  `json:"data"` // that most of it touches
	Accesses float64 `json:"accesses"`
	Fetches  float64 `json:"fetches"`
	// Stride is the class of docs/explanation/patterns.md, Step the most frequent step in bytes and Kept the share
	// of accesses that keep to the class.
	Stride string  `json:"stride"`
	Step   int64   `json:"step_bytes"`
	Kept   float64 `json:"kept"`
	// Waits: no prefetcher follows most of its fetches.
	Waits bool `json:"waits"`
	// Used is how many bytes of a fetched line are touched, as far as was read ahead, and Written the share of fetched lines
	// that are written to.
	Used    float64 `json:"line_use_bytes"`
	Written float64 `json:"written_share"`
	Windows int64   `json:"windows"` // holds that saw it, the most of its instructions
	// Members are those of structs that it fetches, where the debug information tells.
	Members []string `json:"members,omitempty"`

	touches []*model.Touch
}

// walks are all places that touch memory, those that fetch most first.
func walks(p *model.Profile) (out []*Walk) {
	type key struct {
		place string
		op    model.Op
	}
	by := map[key]*Walk{}
	for i := range p.Touches {
		t := &p.Touches[i]
		at := report.PlaceOf(t.Use)
		k := key{at.String(), t.Op}
		w := by[k]
		if w == nil {
			w = &Walk{Place: k.place, Function: at.Function, File: at.File, Line: at.Line, Op: t.Op.String()}
			by[k] = w
			out = append(out, w)
		}
		w.touches = append(w.touches, t)
	}
	for _, w := range out {
		w.settle()
	}
	slices.SortFunc(out, func(a, b *Walk) int {
		return cmp.Or(cmp.Compare(b.Fetches, a.Fetches), cmp.Compare(b.Accesses, a.Accesses), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Op, b.Op))
	})
	return out
}

// settle sums up.
func (w *Walk) settle() {
	s := model.SumTouches(w.touches, nameOf)
	w.Accesses, w.Fetches, w.Windows = s.Accesses, s.Fetches, s.Windows
	w.Used, w.Written, w.Waits = s.Used, s.Written, s.Waits
	w.Stride, w.Step, w.Kept = s.Stride.String(), s.Step, s.Kept
	w.Data, w.Members = s.Data, s.Members
}
