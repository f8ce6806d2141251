package estimate

import (
	"cmp"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
)

// One rate for a whole program is wrong for its parts, and what is sampled at random
// moments of CPU time is slow code too often: a moment in code of r accesses a
// nanosecond stands for r of them. Two things tell how long an access takes in each block b
// of the code, c_b. Between two stamps of a probe the thread took T_i for accesses of
// which it is known how many were in which block, A_ib:
//
//	T_i = sum_b A_ib c_b
//
// which tells code apart that runs at different times. And of H holds, which come at
// random moments of CPU time, N_b find the thread in the block, in which the probes
// find a_b accesses a nanosecond:
//
//	N_b = H a_b c_b
//
// which tells code apart that takes turns. Times in units of their noise and holds are taken
// as Poisson, and c_b has a log-normal distribution before anything is known of it, around
// the mean and as firm as so many counts: then it is found by the EM algorithm
// (Dempster, Laird & Rubin 1977; for T alone Shepp & Vardi 1982), and never negative. How firm
// is found by cross-validation: by what probes and holds that were left out are foretold best.
// Where the whole's mean does as well, it is taken. The fits without them
// also give the standard errors (jackknife), to which comes what is not known of a block but for
// the mean.

const (
	// A leg shorter than this is joined to the next: what stamps and ticks
	// take of it is not known well enough.
	ShortestLeg = 100_000 // ns
	// legNoise is the unit of times: 0.3 ms come out 14 % off.
	legNoise = 6_000 // ns
	// Of so many legs at most the local rates are found, the latest ones.
	mostLegs = 1000
	// mostFolds are how many parts are left out, one after the other.
	mostFolds = 10
	// fitSteps of the EM algorithm.
	fitSteps = 200
)

// firmness that is tried, the inverse of the variance of c_b's logarithm: 0.5 lets code differ by a
// factor of four, 300 by 6 %.
var firmness = []float64{300, 100, 30, 10, 3, 1, .5}

// asLikely: a firmer fit is taken that foretells as well but for so much of the logarithm of
// the likelihood.
const asLikely = 1

// Leg is the way of a probe between two stamps.
type Leg struct {
	Probe    int     // its number
	Warm     bool    // of the part by which the probe's own rate was found
	Ns       float64 // of the thread's own
	Accesses float64
	Code     map[record.CodeBlock]float64 // accesses
}

// localRates are how long an access takes in each block of code.
type localRates struct {
	index map[record.CodeBlock]int
	ns    []float64 // by block
	off   []float64 // standard error of its logarithm
	mean  float64   // ns, of the legs
	firm  float64   // 0: the mean does as well
	// timesOff is how far off the logarithms of left-out legs' times are foretold, root mean square, by
	// code and by the mean.
	timesOff, timesOffMean float64
}

// codeFit is what the blocks' times are found from.
type codeFit struct {
	legs    [][]blockCount  // accesses
	times   []float64       // of each leg, ns
	probes  []int           // of each leg
	probeNS map[int]float64 // by each probe's legs, ns
	held    [][]float64     // holds, by fold and block
}

type blockCount struct {
	block int
	n     float64
}

// fitted is what an access takes in each block, in ns, what the mean is, and how many accesses a
// nanosecond has in each block.
type fitted struct {
	ns, perNS []float64
	mean      float64
}

// fit is of all but one part, -1: of all.
func (f *codeFit) fit(without int, firm float64) (r fitted) {
	blocks, folds := len(f.held[0]), len(f.held)
	perNS, squares := make([]float64, blocks), make([]float64, blocks) // of accesses, by block: mean and mean square
	made, time, probes, last := 0.0, 0.0, 0.0, -1
	var used []int
	for i, probe := range f.probes {
		if probe%folds == without {
			continue
		}
		if probe != last {
			probes, last = probes+1, probe
		}
		used = append(used, i)
		time += f.times[i]
		for _, c := range f.legs[i] {
			made += c.n
			// A probe is one moment, however long it was followed.
			perNS[c.block] += c.n / f.probeNS[probe]
			squares[c.block] += square(c.n/f.times[i]) * f.times[i] / f.probeNS[probe]
		}
	}
	mean := time / made
	ns, known, held := make([]float64, blocks), make([]float64, blocks), make([]float64, blocks)
	holds := 0.0
	for fold, by := range f.held {
		for b, v := range by {
			if fold != without {
				held[b] += v
				holds += v
			}
		}
	}
	for b := range ns {
		ns[b] = mean
		perNS[b] /= probes
		if perNS[b] == 0 {
			held[b] = 0 // no probe came by
			continue
		}
		// The number of holds is less sure than a count of its own by what a_b is.
		varies := max(squares[b]/probes/square(perNS[b])-1, 0) / probes
		sure := 1 / (1 + held[b]*varies)
		held[b] *= sure
		known[b] = sure * holds * perNS[b]
	}
	for _, i := range used {
		for _, c := range f.legs[i] {
			known[c.block] += c.n / legNoise
		}
	}
	next := make([]float64, blocks)
	for range fitSteps {
		for b := range next {
			next[b] = held[b]
		}
		for _, i := range used {
			units := f.times[i] / f.foretold(i, ns) / legNoise
			for _, c := range f.legs[i] {
				next[c.block] += units * c.n * ns[c.block]
			}
		}
		for b := range ns {
			ns[b] = mean * likeliest(next[b], known[b]*mean, firm)
		}
	}
	return fitted{ns, perNS, mean}
}

// likeliest is the mean of n Poisson counts by an exposure, if its logarithm is normal
// around 0 with a variance of 1/firm.
func likeliest(n, exposure, firm float64) float64 {
	x := 0.0
	for range 20 { // Newton's steps; the logarithm of the likelihood is concave
		e := exposure * math.Exp(x)
		step := (n - e - firm*x) / (e + firm)
		if x += min(max(step, -1), 1); math.Abs(step) < 1e-6 {
			break
		}
	}
	return math.Exp(x)
}

// even is the fit by which all code takes the mean.
func (r fitted) even() fitted {
	r.ns = slices.Repeat([]float64{r.mean}, len(r.ns))
	return r
}

// miss is how unlikely a part of the data is by a fit without it: half the squares of
// what times are off, in their noise, less the logarithm of the likelihood that
// holds are where they are. squares are those of the times' logarithms.
func (f *codeFit) miss(part int, r fitted) (unlikely, squares float64) {
	for i, probe := range f.probes {
		if probe%len(f.held) == part {
			d := square(math.Log(f.times[i] / f.foretold(i, r.ns)))
			squares += d
			unlikely += d * f.times[i] / legNoise / 2
		}
	}
	all := 0.0
	for b := range r.ns {
		all += r.perNS[b] * r.ns[b]
	}
	for b, n := range f.held[part] {
		if n > 0 && r.perNS[b] > 0 {
			unlikely -= n * math.Log(r.perNS[b]*r.ns[b]/all)
		}
	}
	return unlikely, squares
}

// foretold is the time of a leg.
func (f *codeFit) foretold(i int, ns []float64) (t float64) {
	for _, c := range f.legs[i] {
		t += c.n * ns[c.block]
	}
	return t
}

// fitLocal finds the local rates, from legs and from the holds in each block of code in as many
// parts as there are; nil of too few probes.
func fitLocal(legs []Leg, held []map[record.CodeBlock]float64) *localRates {
	legs = legs[max(len(legs)-mostLegs, 0):]
	folds := len(held)
	f := codeFit{held: make([][]float64, folds), probeNS: make(map[int]float64)}
	l := &localRates{index: make(map[record.CodeBlock]int)}
	for i := range legs {
		f.probeNS[legs[i].Probe] += legs[i].Ns
		var made []blockCount
		for _, place := range sortedCode(legs[i].Code) {
			b, ok := l.index[place]
			if !ok {
				b = len(l.index)
				l.index[place] = b
			}
			made = append(made, blockCount{b, legs[i].Code[place]})
		}
		f.legs, f.times, f.probes = append(f.legs, made), append(f.times, legs[i].Ns), append(f.probes, legs[i].Probe)
	}
	for i := range f.held {
		f.held[i] = make([]float64, len(l.index))
		for place, n := range held[i] {
			if b, ok := l.index[place]; ok {
				f.held[i][b] = n
			}
		}
	}
	best, even := math.Inf(1), 0.0
	var parts []fitted
	for _, firm := range firmness {
		unlikely, squares, squaresEven := 0.0, 0.0, 0.0
		even = 0
		var fits []fitted
		for without := range folds {
			r := f.fit(without, firm)
			fits = append(fits, r)
			u, sq := f.miss(without, r)
			unlikely, squares = unlikely+u, squares+sq
			u, sq = f.miss(without, r.even())
			even, squaresEven = even+u, squaresEven+sq
		}
		if unlikely < best-asLikely {
			best, l.firm, parts = unlikely, firm, fits
			l.timesOff, l.timesOffMean = math.Sqrt(squares/float64(len(legs))), math.Sqrt(squaresEven/float64(len(legs)))
		}
	}
	all := f.fit(-1, l.firm)
	l.ns, l.mean, l.off = all.ns, all.mean, make([]float64, len(all.ns))
	for b := range l.off {
		known := l.firm
		var logs []float64
		for i, r := range parts {
			logs = append(logs, math.Log(r.ns[b]))
			known += f.held[i][b]
		}
		l.off[b] = math.Hypot(deviation(logs)*float64(folds-1)/math.Sqrt(float64(folds)), 1/math.Sqrt(known))
	}
	if best >= even-asLikely {
		l.firm = 0
	}
	return l
}

// at is the rate of a block of code, in accesses per ns, and its standard error as a share of it;
// where no probe came by it is the mean's.
func (l *localRates) at(place record.CodeBlock) (perNS, off float64) {
	if b, ok := l.index[place]; ok {
		return 1 / l.ns[b], l.off[b]
	}
	return 1 / l.mean, 1 / math.Sqrt(max(l.firm, 1))
}

func sortedCode(code map[record.CodeBlock]float64) []record.CodeBlock {
	var out []record.CodeBlock
	for p := range code {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b record.CodeBlock) int {
		return cmp.Or(cmp.Compare(code[b], code[a]), cmp.Compare(a.Number, b.Number))
	})
	return out
}

func square(x float64) float64 { return x * x }
