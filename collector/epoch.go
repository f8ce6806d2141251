package collector

import (
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler"
)

// marks reads them for the thread, up to now.
func (t *thread) marks(k *sampler.Kernel) record.Marks {
	var m record.Marks
	var err error
	if t.counter != nil {
		m.Clock, m.Lag, err = t.counter.Read(k)
	} else if t.tally != nil {
		m.Clock, m.Lag, err = t.tally.Read()
	}
	m.Unread = err != nil || t.counter == nil && t.tally == nil
	if t.ticker != nil {
		// What can't be read is counted where the totals are.
		_, m.Ran, _, _ = t.ticker.Count()
		m.Throttles, m.Stopped, _, _ = t.ticker.Throttled()
	}
	return m
}

// turnEpoch counts one more hold in the thread's epoch, or in a new one.
func (t *thread) turnEpoch(k *sampler.Kernel) {
	if t.epoch == nil {
		t.nextEpoch(record.Marks{})
	} else if t.epoch.Holds >= record.EpochHolds {
		throttles, _, _, _ := t.ticker.Throttled()
		if t.epoch.Full(throttles) {
			t.account() // up to the reading
			t.epoch.To = t.marks(k)
			t.nextEpoch(t.epoch.To)
		}
	}
	t.epoch.Holds++
}

// enterEpoch counts the observation in the thread's epoch.
func (t *thread) enterEpoch(o *record.Observation) {
	if t.epoch == nil {
		t.nextEpoch(record.Marks{})
	}
	t.epoch.Enter(o)
}

// nextEpoch begins one at now.
func (t *thread) nextEpoch(now record.Marks) { t.epoch = t.epoch.Next(now) }
