package collector

import (
	"fmt"
	"math"

	"github.com/rdx-profiler/rdx/model"
)

// addLegs takes the legs between the stamps of a replay that were reached
// after a while; of those after the stamp warm caches are as warm as they get.
func (s *Session) addLegs(r *replayed, warm int) {
	from := -1
	for i, n := range r.Accesses {
		switch {
		case n < 0 || r.stamps[i].Clock < uint64(warmAfter):
			continue
		case from < 0:
		case r.stamps[i].Clock-r.stamps[from].Clock < shortestLeg:
			continue
		default:
			made := n - r.Accesses[from]
			if ns, why := s.betweenStamps(&r.stamps[from], &r.stamps[i], i-from); why == "" && made > 0 {
				s.rates.legs = append(s.rates.legs, leg{
					probe: len(s.rates.values), warm: from >= warm, ns: ns, accesses: float64(made),
					code: r.codeBetween(r.Accesses[from], n),
				})
			}
		}
		from = i
	}
}

// codeBetween are the accesses by block of code.
func (r *replayed) codeBetween(from, to int) map[codePlace]float64 {
	code, before := make(map[codePlace]float64), 0
	for _, c := range r.Code {
		if n := float64(min(c.Until, to) - max(before, from)); n > 0 {
			code[placeOf(r.process, c.PC)] += n
		}
		before = c.Until
	}
	return code
}

// fitLocal finds the local rates, and by them the mean over time: that over the
// observations, for they are many, and of the probes, which are few, only
// by how much they are faster than their code lets expect, the ratio estimator of two-phase
// sampling (Cochran, Sampling Techniques, 12.8). Its error is that of three: of the holds' shares, of the ratio, and of
// the blocks' rates.
func (s *Session) fitLocal() {
	r := &s.rates
	if len(r.values) < fewestProbes || len(r.legs) == 0 {
		return
	}
	held := make([]map[codePlace]float64, min(len(r.values), mostFolds))
	for i := range held {
		held[i] = make(map[codePlace]float64)
	}
	for _, o := range s.seen {
		if o.placed() {
			held[o.hold*len(held)/(s.holdsUsed+1)][o.place] += o.times() / float64(s.perHoldWanted())
		}
	}
	r.local = fitLocal(r.legs, held)
	met := make(map[int]bool) // holds, by a probe anywhere in their code
	for _, o := range s.seen {
		if _, ok := r.local.index[o.place]; ok && o.placed() {
			met[o.hold] = true
		}
	}
	offs := make(map[codePlace]float64)
	var time, sum, squares, off, unmet float64
	for _, o := range s.seen {
		if o.placed() {
			w := o.epoch.perObservation() * o.times()
			perNS, wrong := r.local.at(o.place)
			time += w
			if !met[o.hold] {
				unmet += w
			}
			sum += w * perNS
			squares += w * perNS * perNS
			off += w * perNS * wrong
			offs[o.place] += w * perNS * wrong
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
	variance := max(squares/time-explained*explained, 0) / float64(max(s.holdsUsed, 1))
	r.explained, r.whole = explained, explained*ratio
	r.localError = off / sum
	blocksError := 0.0
	for _, by := range offs {
		blocksError = math.Hypot(blocksError, by/sum)
	}
	r.wholeError = math.Hypot(math.Hypot(math.Sqrt(variance)/explained, ratioError), blocksError)
}

// byCode says whether the access rates of the code are known.
func (r *rates) byCode() bool { return r.source == "measured" && r.whole > 0 }

// weighByCode has each observation stand for as many accesses as its code makes in
// the time.
func (s *Session) weighByCode() {
	if !s.rates.byCode() {
		return
	}
	for _, o := range s.seen {
		if o.placed() {
			perNS, _ := s.rates.local.at(o.place)
			o.rate = perNS / s.rates.explained
		}
	}
}

// placed says whether it is known in which code a random moment of CPU time found the
// access.
func (o *observation) placed() bool { return o.state == done && o.place.process != nil }

// unexplained is the ratio of the probes' rates to what their code lets expect, and its
// standard error as a share of it.
func (r *rates) unexplained() (ratio, off float64) {
	var found, expected []float64
	last := -1
	var ns, accesses, code float64
	for _, x := range r.legs {
		if !x.warm {
			continue
		}
		if x.probe != last {
			found, expected, ns, accesses, code = append(found, 0), append(expected, 0), 0, 0, 0
		}
		last = x.probe
		ns += x.ns
		accesses += x.accesses
		for place, n := range x.code {
			perNS, _ := r.local.at(place)
			code += n / perNS
		}
		found[len(found)-1], expected[len(found)-1] = accesses/ns, accesses/code
	}
	ratio = mean(found) / mean(expected)
	for i := range found {
		found[i] -= ratio * expected[i]
	}
	return ratio, deviation(found) / math.Sqrt(float64(len(found))) / (ratio * mean(expected))
}

// deviation is the standard deviation of a sample, 0 of a single one.
func deviation(values []float64) float64 {
	m, squares := mean(values), 0.0
	for _, v := range values {
		squares += square(v - m)
	}
	return math.Sqrt(squares / float64(max(len(values)-1, 1)))
}

// localComments says which rates were taken where.
func (s *Session) localComments(p *model.Profile) {
	l := s.rates.local
	if l == nil {
		return
	}
	told := fmt.Sprintf("access rate, local: the times of %d legs of probes are foretold within %.0f%% by their code's blocks of %d bytes, within %.0f%% by the mean",
		len(s.rates.legs), 100*l.timesOff, codeBlock, 100*l.timesOffMean)
	if l.firm == 0 {
		p.Comments = append(p.Comments, told+", which is taken")
		return
	}
	p.Comments = append(p.Comments, told, fmt.Sprintf("access rate, local: samples are weighted by the rates of their code, known to %.0f%% on average; the mean over time is then %.3g per ns",
		100*s.rates.localError, s.rates.whole))
	all, at := 0.0, make(map[codePlace]float64)
	for _, o := range s.seen {
		if o.rate > 0 {
			w := o.epoch.perObservation() * o.times()
			at[o.place] += w
			all += w
		}
	}
	for _, place := range sortedPlaces(at)[:min(len(at), 5)] {
		perNS, off := l.at(place)
		name := fmt.Sprintf("%#x", place.block*codeBlock)
		if m := place.process.find(place.block*codeBlock + codeBlock - 1); m != nil {
			name = fmt.Sprintf("%s+%#x", m.File, place.block*codeBlock-m.Start+m.Offset)
		}
		p.Comments = append(p.Comments, fmt.Sprintf("access rate, local: %.3g per ns, standard error %.0f%%, at %s, %.0f%% of the time", perNS, 100*off, name, 100*at[place]/all))
	}
}
