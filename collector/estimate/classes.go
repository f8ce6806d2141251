package estimate

import (
	"cmp"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
)

// Where lines come from is not the same in all windows: what a copy or a clearing leaves open is far away, and what a compare leaves
// open is touched again soon. So windows are put into classes by what part of them is open, and each class's lines come from where
// those go that were watched in it.

const (
	// mostClasses there are, of classHolds each at least. The logarithms of what part is open differ by classApart on average; less than
	// leastOpen counts as that.
	mostClasses, classHolds = 3, 4
	classApart, leastOpen   = math.Ln2, 0.001
	// presumed is how many of what was watched in all classes count beside that in one.
	presumed = 4
)

// class is of windows that are alike in what part of their accesses has no reuse in what was read ahead.
type class struct {
	least   float64 // that part, from which on they are of it
	open    float64 // the same on average
	origins origins
}

// classify puts windows into classes. The lines of each come from where they came from so far.
func (f *foretold) classify() {
	type hold struct {
		number int
		foretoldWindow
		rate float64
	}
	var all []hold
	for n, w := range f.windows {
		all = append(all, hold{n, w, 1 / f.perAccess(w, 1)})
	}
	slices.SortFunc(all, func(a, b hold) int { return cmp.Or(cmp.Compare(a.open, b.open), a.number-b.number) })
	logs, mass := make([]float64, len(all)), make([]float64, len(all))
	for i, h := range all {
		open := max(h.open, leastOpen)
		logs[i], mass[i] = math.Log(open), h.rate*open
	}
	before := f.classes
	f.classes = nil
	begin := 0
	for _, end := range append(splits(logs, mass), len(all)) {
		k, accesses := len(f.classes), 0.0
		f.classes = append(f.classes, class{})
		c := &f.classes[k]
		if k > 0 {
			c.least = all[begin].open
		}
		for _, h := range all[begin:end] {
			accesses += h.rate
			c.open += (h.open - c.open) * h.rate / accesses
			from := before[h.class].origins
			if open := before[h.class].open; open > 0 {
				from.scale(h.open / open)
			}
			c.origins.towards(&from, h.rate/accesses)
			h.class = k
			f.windows[h.number] = h.foretoldWindow
			if x := f.heads[h.number]; x != nil {
				x.class = k
			}
		}
		begin = end
	}
}

// splits is where numbers in order fall into classes: where the squares about the classes' means become least, by so much weight, one
// split after the other (Otsu 1979).
func splits(in, weights []float64) (at []int) {
	sums, weight := make([]float64, len(in)+1), make([]float64, len(in)+1)
	for i, x := range in {
		sums[i+1], weight[i+1] = sums[i]+weights[i]*x, weight[i]+weights[i]
	}
	between := func(of []float64, from, to int) float64 { return of[to] - of[from] }
	for len(at) < mostClasses-1 {
		best, most := 0, 0.0
		for k, from := range append([]int{0}, at...) {
			to := len(in)
			if k < len(at) {
				to = at[k]
			}
			for i := from + classHolds; i <= to-classHolds; i++ {
				low, high := between(weight, from, i), between(weight, i, to)
				apart := between(sums, i, to)/high - between(sums, from, i)/low
				if less := apart * apart * low * high / (low + high); apart > classApart && less > most && in[i] > in[i-1] {
					best, most = i, less
				}
			}
		}
		if best == 0 {
			break
		}
		at = append(at, best)
		slices.Sort(at)
	}
	return at
}

// parts says of which class a record is; none where there is but one.
func (f *foretold) parts() (in []func(*model.Record) bool) {
	if len(f.classes) == 1 {
		return nil
	}
	for k, c := range f.classes {
		most := math.Inf(1)
		if k+1 < len(f.classes) {
			most = f.classes[k+1].least
		}
		in = append(in, func(r *model.Record) bool { return c.least <= r.Open && r.Open < most })
	}
	return in
}

// pool is where the lines of each class come from: the fewer were watched in it until they were reused, or for longer than any
// cache keeps them, the more as those of all. ranges are of all, and then of each class as parts has them.
func (f *foretold) pool(ranges []model.MissRange, seen []*record.Observation) (out []model.MissRange) {
	if len(ranges) == 1 { // there is but one
		return ranges
	}
	watched := make([]float64, len(f.classes))
	for _, o := range seen {
		if w, ok := f.windows[o.Hold]; ok && o.Soon == 0 && o.State == record.Done && (o.Kind == model.Reuse || o.Kind == model.Pruned) {
			watched[w.class]++
		}
	}
	open, accesses := f.byClass()
	var allOpen, all float64
	for k := range open {
		allOpen, all = allOpen+open[k], all+accesses[k]
	}
	for k := range f.classes {
		part := watched[k] / (watched[k] + presumed)
		usual := open[k] / accesses[k] / (allOpen / all) // as many times as many, if they are as those of all
		if !(usual >= 0) {
			usual = 1
		}
		r := model.MissRange{Low: slices.Clone(ranges[0].Low), High: slices.Clone(ranges[0].High)}
		for i := range r.Low {
			r.Low[i], r.High[i] = min(r.Low[i]*usual, 1), min(r.High[i]*usual, 1)
			if of := ranges[1+k]; of.Low != nil {
				r.Low[i] += part * (of.Low[i] - r.Low[i])
				r.High[i] += part * (of.High[i] - r.High[i])
			}
		}
		out = append(out, r)
	}
	return out
}

// byClass is, in the unit of rates, how many accesses of each class are open, and how many there are.
func (f *foretold) byClass() (open, accesses []float64) {
	open, accesses = make([]float64, len(f.classes)), make([]float64, len(f.classes))
	for _, w := range f.windows {
		rate := 1 / f.perAccess(w, 1)
		open[w.class], accesses[w.class] = open[w.class]+rate*w.open, accesses[w.class]+rate
	}
	return open, accesses
}
