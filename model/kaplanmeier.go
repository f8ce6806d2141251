package model

import "math"

// KaplanMeier estimates how observations that were cut off would have ended.
//
// event[i] and cutoff[i] are the weights of the observations that ended in
// bin i and that were given up there; endless is the weight of those known not
// to end. It fills mass[i] with the estimated weight of all that end in bin i
// and returns the rest, the weight that outlives the last event; mass and
// rest add up to all the weight given. mass may be event itself.
//
// This is Kaplan & Meier's product limit in Efron's form, redistribution to
// the right: what is cut off in a bin is handed to those that end later, in
// proportion to their weight. Of those cut off in a bin of W values
// (W+1)/(2W) count as still observed when the bin's events happen: all of
// them in a bin of one value, where events go first, and half in a wide one
// (the actuarial rule).
//
// It is unbiased when being cut off says nothing about how long the
// observation would have gone on. Cut-offs that come with program phases
// break that.
func KaplanMeier(mass []float64, bins *Bins, event, cutoff []float64, endless float64) (rest float64) {
	return raisedKaplanMeier(mass, bins, event, cutoff, endless, nil)
}

// raisedKaplanMeier is KaplanMeier where the events seen in bin i are those of
// a part only: the hazard of the whole is raise[i] times theirs. A nil raise is
// all ones.
func raisedKaplanMeier(mass []float64, bins *Bins, event, cutoff []float64, endless float64, raise []float64) (rest float64) {
	risk := endless
	for i := range event {
		risk += event[i] + cutoff[i]
	}
	alive := risk // weight not yet ended, cut-offs redistributed
	noise := 1e-12 * risk
	for i, d := range event {
		c := cutoff[i]
		mass[i] = 0
		if d > 0 {
			exposed := risk
			if c > 0 {
				_, width := bins.span(i)
				exposed -= c * (1 - (width+1)/(2*width))
			}
			die := min(1, d/exposed)
			if raise != nil {
				die = 1 - math.Pow(1-die, raise[i])
			}
			mass[i] = alive * die
			alive -= mass[i]
		}
		risk -= d + c
	}
	if alive < noise { // what the subtractions leave where the truth is zero
		return 0
	}
	return alive
}
