package model

import (
	"fmt"
	"math"
)

// StatStack is Eklov & Hagersten's estimate (ISPASS 2010): a reuse of time D
// has the stack distance of its expectation, S(1) + ... + S(D-1), and no
// spread. It is rounded to the nearest integer, which serves it best: rounded
// down it loses 4 to 8 points of l2 on real programs. O(bins) per Reset and
// per miss ratio.
type StatStack struct{ s survival }

// Reset takes the distribution of reuse times to convert with.
func (x *StatStack) Reset(times *Hist) error {
	if err := x.s.reset(times); err != nil {
		return fmt.Errorf("statstack: %w", err)
	}
	return nil
}

// MissRatio is the fraction of the given accesses that miss in a cache of the
// given number of blocks.
func (x *StatStack) MissRatio(times *Hist, blocks uint64) float64 {
	return missesBeyond(times, x.longest(blocks))
}

// longest is the longest reuse time that hits: A(t)-1 < blocks-1/2.
func (x *StatStack) longest(blocks uint64) float64 {
	return math.Ceil(x.s.fill(float64(blocks)+0.5)) - 1
}

// Stacks adds to dst the stack distances of the given reuse times.
func (x *StatStack) Stacks(dst, times *Hist) error { return stacksBelow(dst, times, x.longest) }

// AET is Hu et al.'s average eviction time (USENIX ATC 2016): the access that
// evicts comes when S(0) + S(1) + ... has reached the cache size; reuses no
// later than that hit. It differs from StatStack in that it rounds up.
type AET struct{ s survival }

// Reset takes the distribution of reuse times to convert with.
func (x *AET) Reset(times *Hist) error {
	if err := x.s.reset(times); err != nil {
		return fmt.Errorf("aet: %w", err)
	}
	return nil
}

// EvictionTime is AET(c), in accesses; +Inf for a cache that never fills.
func (x *AET) EvictionTime(blocks uint64) float64 { return x.s.fill(float64(blocks)) }

// MissRatio is the fraction of the given accesses that miss in a cache of the
// given number of blocks.
func (x *AET) MissRatio(times *Hist, blocks uint64) float64 {
	return missesBeyond(times, x.longest(blocks))
}

func (x *AET) longest(blocks uint64) float64 { return math.Floor(x.EvictionTime(blocks)) }

// Stacks adds to dst the stack distances of the given reuse times.
func (x *AET) Stacks(dst, times *Hist) error { return stacksBelow(dst, times, x.longest) }

// missesBeyond is the miss ratio when times up to longest hit.
func missesBeyond(times *Hist, longest float64) float64 {
	total := times.Total()
	if !(total > 0) {
		return 0
	}
	if math.IsInf(longest, 1) {
		return times.Endless() / total
	}
	return 1 - times.upTo(longest)/total
}

// stacksBelow adds the stack distances of a model in which the reuse times up
// to longest(d) have a stack distance below d.
func stacksBelow(dst, times *Hist, longest func(blocks uint64) float64) error {
	finite, done := times.Finite(), 0.0
	last := 0
	at, before := 0, 0.0 // thresholds rise: the bins below at weigh before
	for j := 0; j < len(dst.W)-1 && done < finite; j++ {
		t := longest(dst.Bins.Hi(j))
		if math.IsInf(t, 1) {
			break
		}
		for i := times.Bins.Index(toUint(t)); at < i; at++ {
			before += times.W[at]
		}
		lo, width := times.Bins.span(at)
		upTo := max(done, before+times.W[at]*min(1, max(0, (t-lo+1)/width)))
		dst.W[j] += upTo - done
		done = upTo
		last = j + 1
	}
	if done < finite {
		dst.W[last] += finite - done
	}
	dst.addEndless(times)
	return nil
}
