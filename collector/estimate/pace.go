package estimate

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// What is timed is turned into accesses by a rate, and one rate is wrong for a program's phases: a
// reuse that takes 40 ms is one of 400,000 accesses where the program waits for memory, and one of a hundred
// million where it computes. Holds come at random moments of a thread's time, and of the code
// they find it in the rate is known (localfit.go): the mean of the holds around a use, and until its reuse, is the
// pace of that time. How many around are taken is what foretells each hold's rate best by the others, as a
// factor; where these tell nothing the whole's mean is taken. The use's own hold alone is taken where
// phases are shorter than holds are apart, but longer than a probe: it is off by how much the code of a moment
// differs from that of the next milliseconds, which probes tell.

// paceSpans are how many holds before and after are tried.
var paceSpans = []int{1, 2, 4, 8, 16}

// shuffles are how many random orders of the holds must all be foretold worse than the order there was, for
// the holds around to be believed (a permutation test, of 1 %).
const shuffles = 99

// heldAt is a hold of a thread.
type heldAt struct {
	number      int
	sum, weight float64 // of its observations' rates, by the mean over time
}

// course is a thread's holds in order.
type course struct {
	moments []*heldAt
	rates   []float64
	upTo    []float64 // rates added up, before each
}

// between is the mean rate of the holds from first to last, as far as there are such.
func (c *course) between(first, last int) float64 {
	first, last = max(first, 0), min(last, len(c.rates)-1)
	return (c.upTo[last+1] - c.upTo[first]) / float64(last+1-first)
}

// around is that of the holds around i, without its own.
func (c *course) around(i, span int) float64 {
	first, last := max(i-span, 0), min(i+span, len(c.rates)-1)
	return (c.upTo[last+1] - c.upTo[first] - c.rates[i]) / float64(last-first)
}

// newCourse is of the rates in order.
func newCourse(rates []float64) *course {
	c := &course{rates: rates, upTo: make([]float64, len(rates)+1)}
	for i, r := range rates {
		c.upTo[i+1] = c.upTo[i] + r
	}
	return c
}

// pacing is how many holds before and after tell best how fast the thread was; alone: its own tells of a
// moment; none: others tell nothing. left is by how much the
// logarithms of n rates are foretold wrongly by their mean, a sum of squares, and even by the mean of all.
type pacing struct {
	span, n     int
	alone, none bool
	left, even  float64
}

// foretell finds it for rates, each by those around without itself.
func foretell(courses []*course) (best pacing) {
	best.none = true
	sum := 0.0
	for _, c := range courses {
		best.n += len(c.rates)
		sum += c.upTo[len(c.rates)]
	}
	whole := math.Log(sum / float64(best.n))
	for _, c := range courses {
		for _, r := range c.rates {
			best.even += square(math.Log(r) - whole)
		}
	}
	best.left = best.even
	for _, span := range paceSpans {
		left := 0.0
		for _, c := range courses {
			for i, r := range c.rates {
				foretold := whole
				if len(c.rates) > 1 {
					foretold = math.Log(c.around(i, span))
				}
				left += square(math.Log(r) - foretold)
			}
		}
		if left < best.left {
			best.left, best.span, best.none = left, span, false
		}
	}
	return best
}

// choosePace is what foretells the rates best, where a hold's own code is off the next milliseconds' by within, a
// mean square of logarithms. None where holds in random order are foretold as well.
func choosePace(courses []*course, within float64) pacing {
	best := foretell(courses)
	var all []float64
	for _, c := range courses {
		all = append(all, c.rates...)
	}
	r := rand.New(rand.NewPCG(1, uint64(len(all)))) // the same profile for the same holds
	for range shuffles {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var shuffled []*course
		from := 0
		for _, c := range courses {
			shuffled = append(shuffled, newCourse(all[from:from+len(c.rates)]))
			from += len(c.rates)
		}
		if foretell(shuffled).left <= best.left {
			best.span, best.left, best.none = 0, best.even, true
			break
		}
	}
	// One hold's code would foretell another's in the same milliseconds so well.
	if alone := 2 * within * float64(best.n); alone < best.left {
		best.span, best.left, best.alone = 0, alone, true
	}
	return best
}

// within is by how much the code of a random moment is off that of a leg, about a millisecond: the mean
// square of the logarithms of the rates.
func (r *Rates) within() float64 {
	squares, time := 0.0, 0.0
	for i := range r.Legs {
		x := &r.Legs[i]
		ns := 0.0 // by code
		for place, n := range x.Code {
			perNS, _ := r.local.at(place)
			ns += n / perNS
		}
		for place, n := range x.Code {
			perNS, _ := r.local.at(place)
			squares += n / perNS * square(math.Log(perNS*ns/x.Accesses))
		}
		time += ns
	}
	return squares / time
}

// through is how many holds, of so many, come while something takes that long, in ns. An epoch of which no tick
// was counted does not tell: then it is all.
func through(native float64, e *record.Epoch, holds int) int {
	perHold := float64(e.CPU) / float64(max(e.Holds, 1)) // ns
	if !(native < perHold*float64(holds)) {
		return holds
	}
	return int(math.Round(native / perHold))
}

// setPaces gives the observations the pace of their time, after weighByCode.
func (s *stage) setPaces(p *model.Profile) {
	type threadKey struct {
		process *target.Process
		tid     int
	}
	byHold := make(map[int]*heldAt)
	threads := make(map[threadKey]*course)
	var courses []*course
	for _, o := range s.Seen {
		if o.Rate == 0 || o.Hold == 0 {
			continue
		}
		m := byHold[o.Hold]
		if m == nil {
			m = &heldAt{number: o.Hold}
			byHold[o.Hold] = m
			c := threads[threadKey{o.Process, o.TID}]
			if c == nil {
				c = new(course)
				threads[threadKey{o.Process, o.TID}] = c
				courses = append(courses, c)
			}
			c.moments = append(c.moments, m)
		}
		m.sum += o.Times() * o.Rate
		m.weight += o.Times()
	}
	if len(courses) == 0 {
		return // rates are not known
	}
	for _, c := range courses {
		slices.SortFunc(c.moments, func(a, b *heldAt) int { return cmp.Compare(a.number, b.number) })
		var rates []float64
		for _, m := range c.moments {
			rates = append(rates, m.sum/m.weight)
		}
		*c = course{moments: c.moments, rates: rates, upTo: newCourse(rates).upTo}
	}
	best := choosePace(courses, s.Rates.within())
	factor := func(squares float64) float64 { return math.Exp(math.Sqrt(squares / float64(best.n))) }
	by := "the mean, as the holds around a moment tell no more of its rate"
	switch {
	case best.alone && best.none:
		by = "the rate of their hold's code, but by the mean where other holds come before they end, as these tell no more"
	case best.alone:
		by = "the rates of their hold's code and of that of the holds until they end"
	case !best.none:
		by = fmt.Sprintf("the rates of the code of %d holds before and after, and of those until they end", best.span)
	}
	p.Comments = append(p.Comments, fmt.Sprintf("access rate, local: times are turned into accesses by %s; so a hold's is foretold within a factor of %.2g, by the mean within %.2g", by, factor(best.left), factor(best.even)))
	for _, o := range s.Seen {
		if o.Rate == 0 || o.Hold == 0 {
			continue
		}
		c := threads[threadKey{o.Process, o.TID}]
		at, _ := slices.BinarySearchFunc(c.moments, o.Hold, func(m *heldAt, hold int) int { return cmp.Compare(m.number, hold) })
		through := through(o.Native, o.Epoch, len(c.rates))
		if !best.none || best.alone && through == 0 {
			o.Pace = c.between(at-best.span, at+best.span+through)
		}
	}
}
