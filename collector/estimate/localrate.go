package estimate

import (
	"fmt"
	"math"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
)

// fitLocal finds the local rates, and by them the mean over time: that over the
// observations, for they are many, and of the probes, which are few, only
// by how much they are faster than their code lets expect, the ratio estimator of two-phase
// sampling (Cochran, Sampling Techniques, 12.8). Its error is that of three: of the holds' shares, of the ratio, and of
// the blocks' rates.
func (s *stage) fitLocal() {
	r := &s.Rates
	if len(r.Values) < FewestProbes || len(r.Legs) == 0 || r.local != nil {
		return
	}
	held := make([]map[record.CodeBlock]float64, min(len(r.Values), mostFolds))
	for i := range held {
		held[i] = make(map[record.CodeBlock]float64)
	}
	for _, o := range s.Seen {
		if o.Placed() {
			held[o.Hold*len(held)/(len(s.Holds)+1)][o.Code] += o.Times() / float64(s.PerHold)
		}
	}
	r.local = fitLocal(r.Legs, held)
	met := make(map[int]bool) // holds, by a probe anywhere in their code
	for _, o := range s.Seen {
		if _, ok := r.local.index[o.Code]; ok && o.Placed() {
			met[o.Hold] = true
		}
	}
	offs := make(map[record.CodeBlock]float64)
	var time, sum, squares, off, unmet float64
	for _, o := range s.Seen {
		if o.Placed() {
			w := o.Epoch.PerObservation() * o.Times()
			perNS, wrong := r.local.at(o.Code)
			time += w
			if !met[o.Hold] {
				unmet += w
			}
			sum += w * perNS
			squares += w * perNS * perNS
			off += w * perNS * wrong
			offs[o.Code] += w * perNS * wrong
		}
	}
	if time == 0 {
		return
	}
	if r.unmet = unmet / time; r.local.firm == 0 {
		return
	}
	explained := sum / time
	ratio, ratioError := r.unexplained()
	variance := max(squares/time-explained*explained, 0) / float64(max(len(s.Holds), 1))
	r.explained, r.whole = explained, explained*ratio
	r.localError = off / sum
	blocksError := 0.0
	for _, by := range offs {
		blocksError = math.Hypot(blocksError, by/sum)
	}
	r.wholeError = math.Hypot(math.Hypot(math.Sqrt(variance)/explained, ratioError), blocksError)
}

// byCode says whether the access rates of the code are known, and better than the model of the processor knows a window's.
func (r *Rates) byCode() bool {
	return r.Source == measuredRate && r.knowsCode(r.modelled)
}

// knowsCode says that as far as the code goes: of a rate that is measured, where there is a model or not.
func (r *Rates) knowsCode(modelled bool) bool {
	return r.whole > 0 && !(modelled && r.localError > modelError)
}

// mostProbed is the share of a hold's accesses that must be of code that probes came by for them to tell of it.
const mostProbed = 0.8

// coldProbes is the standard error, as a logarithm, of what probes tell of code that waits: behind a hold more of its lines come from
// memory, for longer than a probe lasts. Lists, trees and tables of 8 MiB took 1.3 to 1.5 times as long.
const coldProbes = 0.3

// probedHolds is how long accesses take in holds whose code probes came by, by hold. There are none where observations are weighed by
// the rates of their code, nor of a few probes.
func (s *stage) probedHolds() map[int]probed {
	r := &s.Rates
	l := r.local
	if l == nil || r.knowsCode(true) {
		return nil
	}
	type sum struct{ all, known, ns, off float64 }
	sums := make(map[int]sum)
	for _, o := range s.Seen {
		if o.Hold == 0 || !o.Placed() {
			continue
		}
		x, n := sums[o.Hold], o.Times()
		x.all += n
		if b, ok := l.index[o.Code]; ok {
			x.known, x.ns, x.off = x.known+n, x.ns+n*l.ns[b], x.off+n*l.ns[b]*l.off[b]
		}
		sums[o.Hold] = x
	}
	out := make(map[int]probed)
	for hold, x := range sums {
		if x.known < mostProbed*x.all {
			continue
		}
		ns, off, legs := x.ns/x.known, x.off/x.ns, l.timesOff
		if l.firm == 0 {
			ns, off, legs = l.mean, r.RelativeError(), l.timesOffMean
		}
		out[hold] = probed{ns * math.Exp(-ProbesSlow), math.Hypot(math.Hypot(off, legs), math.Hypot(coldProbes, r.selectiveError()))}
	}
	return out
}

// weighByCode has each observation stand for as many accesses as its code makes in
// the time.
func (s *stage) weighByCode() {
	if !s.Rates.byCode() {
		return
	}
	for _, o := range s.Seen {
		if o.Placed() {
			perNS, _ := s.Rates.local.at(o.Code)
			o.Rate = perNS / s.Rates.explained
		}
	}
}

// unexplained is the ratio of the probes' rates to what their code lets expect, and its
// standard error as a share of it.
func (r *Rates) unexplained() (ratio, off float64) {
	var found, expected []float64
	last := -1
	var ns, accesses, code float64
	for _, x := range r.Legs {
		if !x.Warm {
			continue
		}
		if x.Probe != last {
			found, expected, ns, accesses, code = append(found, 0), append(expected, 0), 0, 0, 0
		}
		last = x.Probe
		ns += x.Ns
		accesses += x.Accesses
		for place, n := range x.Code {
			perNS, _ := r.local.at(place)
			code += n / perNS
		}
		found[len(found)-1], expected[len(found)-1] = accesses/ns, accesses/code
	}
	ratio = Mean(found) / Mean(expected)
	for i := range found {
		found[i] -= ratio * expected[i]
	}
	return ratio, deviation(found) / math.Sqrt(float64(len(found))) / (ratio * Mean(expected))
}

// deviation is the standard deviation of a sample, 0 of a single one.
func deviation(values []float64) float64 {
	m, squares := Mean(values), 0.0
	for _, v := range values {
		squares += square(v - m)
	}
	return math.Sqrt(squares / float64(max(len(values)-1, 1)))
}

// misplacedByCode is the factor within which miss ratios are known, with 95 %, as probes tell of code that waits behind holds, where it waits
// longer: where code is all as fast it makes no difference.
func (s *stage) misplacedByCode() float64 {
	var sum, squares, all float64
	for _, o := range s.Seen {
		if o.Rate > 0 && o.Placed() {
			w, log := o.Epoch.PerObservation()*o.Times(), math.Log(o.Rate)
			sum, squares, all = sum+w*log, squares+w*log*log, all+w
		}
	}
	if all == 0 {
		return 1
	}
	varies := math.Sqrt(max(squares/all-square(sum/all), 0))
	return math.Exp(1.96 * coldProbes * min(varies, 1))
}

// localComments says which rates were taken where.
func (s *stage) localComments(p *model.Profile) {
	l := s.Rates.local
	if l == nil {
		return
	}
	told := fmt.Sprintf("access rate, local: the times of %d legs of probes are foretold within %.0f%% by their code's blocks of %d bytes, within %.0f%% by the mean",
		len(s.Rates.Legs), 100*l.timesOff, record.CodeBlockSize, 100*l.timesOffMean)
	if l.firm == 0 {
		p.Comments = append(p.Comments, told+", which is taken")
		return
	}
	p.Comments = append(p.Comments, told, fmt.Sprintf("access rate, local: samples are weighted by the rates of their code, known to %.0f%% on average; the mean over time is then %.3g per ns",
		100*s.Rates.localError, s.Rates.found()))
	all, at := 0.0, make(map[record.CodeBlock]float64)
	for _, o := range s.Seen {
		if o.Rate > 0 {
			w := o.Epoch.PerObservation() * o.Times()
			at[o.Code] += w
			all += w
		}
	}
	for _, place := range sortedCode(at)[:min(len(at), 5)] {
		perNS, off := l.at(place)
		name := fmt.Sprintf("%#x", place.Number*record.CodeBlockSize)
		if m := place.Process.Find(place.Number*record.CodeBlockSize + record.CodeBlockSize - 1); m != nil {
			name = fmt.Sprintf("%s+%#x", m.File, place.Number*record.CodeBlockSize-m.Start+m.Offset)
		}
		p.Comments = append(p.Comments, fmt.Sprintf("access rate, local: %.3g per ns, standard error %.0f%%, at %s, %.0f%% of the time", perNS, 100*off, name, 100*at[place]/all))
	}
}
