package model

import (
	"fmt"
	"math"
)

// Epoch is a stretch of one thread's run: its length in accesses and the
// histogram of the reuse times of the uses in it.
type Epoch struct {
	Thread int // any number; epochs of one thread are in order and adjoin
	Length float64
	Times  *Hist
}

// TimeLocal converts reuse times to stack distances for a program that changes
// with time: each access in a reuse window counts by the survival function of
// its own epoch,
//
//	d(s, D) = sum_{t=1}^{D-1} q_{e(s+D-t)}(t)
//
// for a use at position s. It repairs what no stationary model gets right,
// phases with different working sets and sawtooth orders, and what no single
// survival function gets right, threads that differ.
//
// An epoch of about 50 observations has a survival function too noisy to use,
// so each is shrunk towards the whole run's: (n_e S_e + k S)/(n_e + k), with k
// by empirical Bayes from how much more the epochs differ than chance would
// make them.
type TimeLocal struct {
	epochs []Epoch
	start  []float64 // position of each epoch's first access in its thread
	local  []SSX
	k      float64
}

// NewTimeLocal prepares the conversion, O(epochs x bins). All histograms must
// have equal bins. It errs on an epoch without length, on broken weights and
// if there are no observations at all. The histograms are kept, not copied.
func NewTimeLocal(epochs []Epoch) (*TimeLocal, error) {
	if len(epochs) == 0 {
		return nil, fmt.Errorf("time-local conversion: no epochs")
	}
	all := NewHist(epochs[0].Times.Bins)
	x := &TimeLocal{epochs: epochs, local: make([]SSX, len(epochs)), start: make([]float64, len(epochs))}
	for i, e := range epochs {
		if !(e.Length > 0) || math.IsInf(e.Length, 0) {
			return nil, fmt.Errorf("time-local conversion: epoch %d has a length of %v accesses", i, e.Length)
		}
		if err := e.Times.Check(); err != nil {
			return nil, fmt.Errorf("time-local conversion: epoch %d: %w", i, err)
		}
		if err := all.Merge(e.Times); err != nil {
			return nil, fmt.Errorf("time-local conversion: epoch %d: %w", i, err)
		}
		if x.follows(i) {
			x.start[i] = x.start[i-1] + epochs[i-1].Length
		}
	}
	total, err := all.checkTimes()
	if err != nil {
		return nil, fmt.Errorf("time-local conversion: %w", err)
	}
	x.k = shrinkage(epochs, all)
	shrunk := NewHist(all.Bins)
	for i, e := range epochs {
		// Weights in units of observations: the epoch's n and k of the run's.
		n, sum := float64(e.Times.N), e.Times.Total()
		mine := 0.0
		if sum > 0 {
			mine = n / sum
		}
		for j := range shrunk.W {
			shrunk.W[j] = mine*e.Times.W[j] + x.k/total*all.W[j]
		}
		shrunk.Cold = mine*e.Times.Endless() + x.k/total*all.Endless()
		if err := x.local[i].Reset(shrunk); err != nil {
			return nil, fmt.Errorf("time-local conversion: epoch %d: %w", i, err)
		}
	}
	return x, nil
}

// follows says whether epoch i goes on where the one before it ended.
func (x *TimeLocal) follows(i int) bool {
	return i > 0 && i < len(x.epochs) && x.epochs[i].Thread == x.epochs[i-1].Thread
}

// K is the weight of the whole run in each epoch's estimate, in observations.
func (x *TimeLocal) K() float64 { return x.k }

// shrinkage is k = sum S(1-S) / sum [(S_e - S)^2 - S(1-S)/n_e] over epochs
// and bins, clipped to 1..10^4.
func shrinkage(epochs []Epoch, all *Hist) float64 {
	const least, most = 1, 1e4
	total := all.Total()
	var noise, extra float64
	for _, e := range epochs {
		n, sum := float64(e.Times.N), e.Times.Total()
		if n == 0 || !(sum > 0) {
			continue
		}
		s, se := 1.0, 1.0
		for j := range all.W {
			s -= all.W[j] / total
			se -= e.Times.W[j] / sum
			v := max(0, s*(1-s))
			noise += v
			extra += (se-s)*(se-s) - v/n
		}
	}
	if !(extra > 0) {
		return most
	}
	return min(most, max(least, noise/extra))
}

// mean is the mean stack distance, and its variance, of a reuse after time d
// of a use at position s in epoch e.
func (x *TimeLocal) mean(e int, s, d float64) (mean, variance float64) {
	for f := e; f == e || x.follows(f); f++ {
		// Epoch f holds the offsets before the window's end from..to; a
		// thread's last one all that come after it, too.
		to := d
		if f > e {
			to = s + d - x.start[f]
		}
		if to <= 1 {
			break
		}
		from := 1.0
		if x.follows(f + 1) {
			from = max(1, s+d-x.start[f+1])
		}
		c1, v1 := x.local[f].moments(to)
		c0, v0 := x.local[f].moments(from)
		mean += c1 - c0
		variance += v1 - v0
	}
	return mean, max(0, variance)
}

// beginning is what is known of a window from its use on: the blocks other than
// the used one touched in so many accesses, the use among them. The zero value
// is nothing.
type beginning struct{ time, blocks uint64 }

// spreads calls f with the distributions of stack distances that together, by
// their shares, are that of a reuse in time bin i of a use in epoch e.
//
// Counted from the use on, an access of a window is the first to its block in it with the
// same probability as counted from the end it is the last. So what the model
// has for the beginning can be taken out, mean and variance, and what was counted put
// in its place.
func (x *TimeLocal) spreads(e, i int, begin beginning, f func(p *spread, share float64)) {
	const positions = 2 // positions in an epoch at which its uses are taken to be
	b := &x.local[e].bin[i]
	n := x.local[e].pieces(i)
	step := b.width / float64(n)
	for place := range positions {
		s := x.start[e] + x.epochs[e].Length*(float64(place)+0.5)/positions
		inside := !x.follows(e+1) || s+b.lo+b.width <= x.start[e+1]
		for k := range n {
			p := x.local[e].piece(i, k, n)
			d := b.lo + step*float64(k)
			if inside {
				// p is right as it is.
			} else if b.width <= exactWidth {
				p.c0, p.v = x.mean(e, s, d)
				p.c1 = p.c0
			} else {
				p.c0, _ = x.mean(e, s, max(1, d-0.5))
				p.c1, _ = x.mean(e, s, d+step-0.5)
				_, p.v = x.mean(e, s, d+step/2)
				if p.c1 < p.c0 { // a longer window may hold fewer blocks
					p.c0, p.c1 = p.c1, p.c0
				}
			}
			if begin.time > 0 {
				c, v := x.local[e].moments(float64(begin.time))
				p.begin(float64(begin.blocks), c, v)
			}
			f(&p, 1/float64(n*positions))
		}
	}
}

// Stacks adds to dst the stack distances of reuse times of uses in epoch e,
// which must have the bins given to NewTimeLocal. Endless masses are copied as
// they are. The cost is in the order of bins x epochs that a reuse spans.
func (x *TimeLocal) Stacks(dst *Hist, e int, times *Hist) error {
	if !times.Bins.Equal(x.epochs[e].Times.Bins) {
		return fmt.Errorf("time-local conversion: the bins of the reuse times are not those of the epochs")
	}
	for i, w := range times.W {
		if w > 0 {
			x.spreads(e, i, beginning{}, func(p *spread, share float64) { p.add(dst, w*share) })
		}
	}
	dst.addEndless(times)
	return nil
}

// moments is C and V for a reuse time that need not be an integer.
func (x *SSX) moments(time float64) (mean, variance float64) {
	b := &x.bin[x.bins.Index(toUint(time))]
	return b.at(math.Min(max(0, time-b.lo), b.width))
}
