package estimate

import "github.com/rdx-profiler/rdx/collector/record"

// WeighEpochs weighs all epochs of what was seen that are not yet, where so much of the
// source's unit goes with a count of the clock or the tally; timed says that the unit is ns. It says
// for how many ns throttling is not made up for.
func WeighEpochs(seen []*record.Observation, perCount float64, timed bool) (unweighed uint64) {
	for _, o := range seen {
		if e := o.Epoch; e != nil && !e.Weighed {
			unweighed += e.Weigh(perCount, timed)
		}
	}
	return unweighed
}
