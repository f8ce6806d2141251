package model

import (
	"fmt"
	"math"
)

// ShenForm is which text of the model of Shen, Shaw, Meeker & Ding is used.
type ShenForm uint8

const (
	// ShenRepaired: P2 exact for bins of any width, blocks never reused
	// counted, K ~ Binomial(N-1, p(D-1)) (a reuse at D has D-1 accesses
	// between, to N-1 other blocks), every time of a wide bin considered, the
	// binomial itself below variance 100 and Normal above. O(bins).
	ShenRepaired ShenForm = iota
	// ShenBasic: section 2.2 as printed, P(b) = p of the bin's middle and
	// K ~ Binomial(N, P(b)).
	ShenBasic
	// ShenPrinted: section 2.3 as printed, equations 4, 5 and 6 and the Normal
	// distribution. Equation 5 averages 1/(delta-1) evenly over a
	// bin although longer intervals cover more time, so P is up to 5 % off
	// where a bin's ends are a factor 2 apart.
	ShenPrinted
	// ShenSimplified: the same with the logarithms that replace the sums of
	// equation 5, in the printed form, whose "-2" makes it useless on narrow
	// bins.
	ShenSimplified
	// ShenSimplified1 has the "-1" that follows from equation 5 instead.
	ShenSimplified1
)

// Shen converts reuse times to stack distances by the model of Shen & Shaw
// (LCPC 2008): the distance of a reuse is the number of successes in N trials,
// one for each other block, with the probability that a block is accessed in
// a window of that length.
//
// Known bias: all blocks are taken as alike, so the binomial spreads thin
// peaks far too much; prefer SSX.
type Shen struct {
	Form ShenForm
	// N is the number of distinct blocks. 0 means to estimate it from the
	// reuse times up to the longest one (Kac), which is poor for sampled ones:
	// 0.3 to 1.7 times the truth.
	N float64

	s    survival
	last int       // last bin with weight
	n    float64   // N in use
	p    []float64 // per bin, the printed forms' P(b)
	p2   []float64 // per bin: P2(b)
}

// Reset takes the distribution of reuse times to convert with.
func (x *Shen) Reset(times *Hist) error {
	if err := x.s.reset(times); err != nil {
		return fmt.Errorf("shen: %w", err)
	}
	if math.IsNaN(x.N) || x.N < 0 {
		return fmt.Errorf("shen: %v distinct blocks", x.N)
	}
	x.last = 0
	for i, w := range times.W {
		if w > 0 {
			x.last = i
		}
	}
	x.n = x.N
	if x.n == 0 {
		b := &x.s.bin[x.last]
		x.n = b.at(b.width)
	}
	x.n = math.Round(max(x.n, 2))
	if x.Form != ShenRepaired {
		x.printed()
	}
	return nil
}

// printed fills p. The mass of never reused blocks has no place in the
// paper's sums.
func (x *Shen) printed() {
	n := x.last + 1
	if cap(x.p) < len(x.s.bin) {
		x.p, x.p2 = make([]float64, len(x.s.bin)), make([]float64, len(x.s.bin))
	}
	x.p, x.p2 = x.p[:n], x.p2[:n]
	if x.Form == ShenBasic {
		for i := range x.p {
			b := &x.s.bin[i]
			// p(D) = (A(D+1) - 1)/(N-1), without the endless mass.
			d := b.lo + b.width/2
			x.p[i] = min(1, max(0, x.s.area(d+1)-1-x.s.endless*d)/(x.n-1))
		}
		return
	}
	// Equation 5 sums over all later bins for each bin, but its terms depend on
	// the bin only by the factor W_i: one sum from the top does, O(bins).
	var later float64
	for i := n - 1; i >= 0; i-- {
		b := &x.s.bin[i]
		if b.lo == 0 {
			x.p2[i] = 0
			continue
		}
		p1 := (2*b.lo + b.width - 3) / (2 * (x.n - 1)) * b.p // equation 6, per value
		x.p2[i] = b.width*later + p1*x.inBin(b)
		if p1 > 0 {
			later += p1 * x.harmonic(b.lo-1, b.lo+b.width-2)
		}
	}
	var before float64
	for i, p2 := range x.p2 { // equation 4
		x.p[i] = min(1, p2/2+before)
		before += p2
	}
}

// inBin is the sum over tau in l+1..r-1 of (tau-l)/(tau-1) for bin [l, r).
func (x *Shen) inBin(b *survivalBin) float64 {
	if b.width == 1 && x.Form == ShenPrinted {
		return 0
	}
	minus := 1.0
	if x.Form == ShenSimplified {
		minus = 2
	}
	return b.width - minus - (b.lo-1)*x.harmonic(b.lo, b.lo+b.width-2)
}

// harmonic is the sum of 1/k for k in from..to, the paper's logarithm in the
// simplified forms. The term 1/0 of a bin that starts at time 1 is left out:
// such an interval covers no time.
func (x *Shen) harmonic(from, to float64) float64 {
	from = max(from, 1)
	if to < from {
		if x.Form == ShenPrinted || to < from-0.5 {
			return 0
		}
	}
	if x.Form == ShenPrinted && to-from < 50 {
		var s float64
		for k := from; k <= to; k++ {
			s += 1 / k
		}
		return s
	}
	if x.Form == ShenPrinted && from < 20 {
		return x.harmonic(from, 39) + math.Log((to+0.5)/39.5)
	}
	return math.Log((to + 0.5) / (from - 0.5))
}

// P is the probability that a block is accessed in a window of bin i's times.
func (x *Shen) P(i int) float64 {
	if x.Form == ShenRepaired {
		b := &x.s.bin[i]
		return min(1, max(0, b.at((b.width-1)/2)-1)/(x.n-1))
	}
	if i >= len(x.p) {
		return 1
	}
	return x.p[i]
}

// pieces and piece cut a time bin as SSX does.
func (x *Shen) pieces(i int) int {
	b := &x.s.bin[i]
	if x.Form != ShenRepaired {
		return 1
	}
	if b.width <= exactWidth {
		return int(b.width)
	}
	sag := b.p * b.width * b.width / 8
	return min(max(int(math.Ceil(math.Sqrt(sag/(0.1+0.01*b.area)))), 1), 8)
}

// law is the distribution of distances of one piece: binomial, or Normal.
type law struct {
	spread
	trials, p float64
	binomial  bool
}

// binomialBelow is the variance below which the binomial is not replaced: at
// it the Normal is off by 1 to 4 % in total variation.
const binomialBelow = 100

func (x *Shen) law(i, k, n int) (l law) {
	b := &x.s.bin[i]
	if x.Form != ShenRepaired {
		l.p, l.trials = x.P(i), x.n
		l.binomial = x.Form == ShenBasic
		l.c0 = l.p * l.trials
		l.c1 = l.c0
	} else {
		step := b.width / float64(n)
		m := step * float64(k)
		l.trials = x.n - 1
		if b.width <= exactWidth {
			l.c0 = b.at(m) - 1
			l.c1 = l.c0
		} else {
			l.c0, l.c1 = b.at(m-0.5)-1, b.at(m+step-0.5)-1
		}
		l.c0, l.c1 = min(max(l.c0, 0), l.trials), min(max(l.c1, 0), l.trials)
		l.p = (l.c0 + l.c1) / 2 / l.trials
	}
	l.v = l.trials * l.p * (1 - l.p)
	l.most = l.trials
	if x.Form == ShenRepaired {
		l.binomial = l.v < binomialBelow && l.c1-l.c0 < 1
	}
	return l
}

// Stacks adds to dst the stack distances of the given reuse times.
func (x *Shen) Stacks(dst, times *Hist) error {
	if !times.Bins.Equal(x.s.bins) {
		return fmt.Errorf("shen: the bins of the reuse times are not those given to Reset")
	}
	for i, w := range times.W {
		if w == 0 {
			continue
		}
		n := x.pieces(i)
		for k := range n {
			if l := x.law(i, k, n); l.binomial {
				binomial(l.trials, l.p, func(d, p float64) { dst.W[dst.Bins.Index(uint64(d))] += w / float64(n) * p })
			} else {
				l.add(dst, w/float64(n))
			}
		}
	}
	dst.addEndless(times)
	return nil
}

// MissRatio is the fraction of the given accesses that miss in a cache of the
// given number of blocks.
func (x *Shen) MissRatio(times *Hist, blocks uint64) float64 {
	miss, total := times.Endless(), times.Total()
	if !(total > 0) {
		return 0
	}
	c := float64(blocks)
	for i, w := range times.W {
		if w == 0 {
			continue
		}
		n := x.pieces(i)
		for k := range n {
			l := x.law(i, k, n)
			below := 0.0
			if l.binomial {
				binomial(l.trials, l.p, func(d, p float64) {
					if d < c {
						below += p
					}
				})
			} else {
				below = l.below(c)
			}
			miss += w / float64(n) * (1 - min(below, 1))
		}
	}
	return miss / total
}

// binomial calls f with every value that has weight worth a look and its
// probability; they add up to 1.
func binomial(n, p float64, f func(k, prob float64)) {
	if p <= 0 || n <= 0 {
		f(0, 1)
		return
	}
	if p >= 1 {
		f(n, 1)
		return
	}
	// Relative to the mode by recurrence, first for their sum, then for f.
	mode, odds := min(n, math.Floor((n+1)*p)), p/(1-p)
	walk := func(top float64, f func(k, prob float64)) {
		f(mode, top)
		q := top
		for k := mode; k < n && q > 1e-12*top; k++ {
			q *= (n - k) / (k + 1) * odds
			f(k+1, q)
		}
		q = top
		for k := mode; k > 0 && q > 1e-12*top; k-- {
			q *= k / (n - k + 1) / odds
			f(k-1, q)
		}
	}
	sum := 0.0
	walk(1, func(_, q float64) { sum += q })
	walk(1/sum, f)
}
