package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// fartherStage has observations of holds, most of which read near accesses, at one access a nanosecond.
func fartherStage(near int, seen []*record.Observation, made []record.Hold) *stage {
	s := newStage(Input{Seen: seen, Holds: made, Near: near, Block: 64, Unit: sampler.Nanoseconds, Clock: sampler.Clock{Unit: sampler.Nanoseconds}, AccessRate: 1, Held: uint64(len(made))}, nil)
	s.Rates.Settle(1, s.Clock)
	return s
}

// weighFarther is what the observations stand for, and of that those whose reuse was read ahead.
func weighFarther(t *testing.T, s *stage) (upTo, all float64) {
	t.Helper()
	s.farther = s.newFarther((*record.Observation).Weight)
	if s.farther == nil {
		t.Fatal("those that read farther tell nothing")
	}
	for _, o := range s.Seen {
		w := o.Weight() * s.farther.standsFor(o)
		if all += w; o.Soon > 0 {
			upTo += w
		}
	}
	return upTo, all
}

// Of what is not reused within the 100 accesses that all holds read, three of four are by 300, the others after 100,000. Eight holds
// in nine time them, in caches that are cold, so that what takes 300 ns seems to take 900: all of it would be beyond 400. The others
// read 600. So what the profile has up to 400 is what these say, and what is beyond is the rest.
func TestFarther(t *testing.T) {
	const near, holds = 100, 90
	epoch := &record.Epoch{CPU: 360, Accepted: 360}
	var seen []*record.Observation
	var made []record.Hold
	for hold := 1; hold <= holds; hold++ {
		made = append(made, record.Hold{Accesses: near, Touches: near, Instructions: 3 * near})
		for i := range 4 {
			o := &record.Observation{Epoch: epoch, Hold: hold, Stands: .25, State: record.Done, Kind: model.Reuse, After: near}
			soon := i > 0
			if hold%9 == 0 {
				o.Reach = near
			}
			switch {
			case hold%9 == 0 && soon:
				o.After, o.Soon, o.Counted, o.Distinct = 0, 300, 300, 10
			case hold%9 == 0:
				o.After, o.Native = 600, 100_900
			case soon:
				o.Native = 900
			default:
				o.Native = 100_900
			}
			seen = append(seen, o)
		}
	}
	s := fartherStage(near, seen, made)
	// Where all that was timed seems to come later only the share is put right: that is left to what a block costs that is fetched again.
	// Of the ten holds that read farther it is 3/4, of the others it is taken to be as if one more hold were split.
	upTo, all := weighFarther(t, s)
	if want := (10*.75 + 80*(.75+.05)/1.1) / 90; math.Abs(upTo/all-want) > 1e-9 {
		t.Errorf("%.3f of what is open come by 400, want %.3f", upTo/all, want)
	}
	whole := 0.0
	for _, o := range seen {
		whole += o.Weight()
	}
	if math.Abs(all-whole) > 1e-9*whole {
		t.Errorf("all stand for %v, want %v", all, whole)
	}
	for _, o := range seen {
		var r model.Record
		if o.Hold%9 != 0 && o.Native > 1000 {
			if s.SetTime(&r, o, PerWall{}); r.After != fartherBy*near {
				t.Errorf("one that was timed to more than 400 is known to have none by %d", r.After)
			}
		}
	}
	// Too few.
	s.Input.Seen = seen[:4*26]
	if f := s.newFarther((*record.Observation).Weight); f != nil {
		t.Error("two holds that read farther stand for all others")
	}
}

// A hold that reads farther sees fewer accesses open at its end. By what others read it has as many.
func TestFartherWindowsOpen(t *testing.T) {
	in := Input{Near: 100, Holds: []record.Hold{{Accesses: 100, Instructions: 300}, {Accesses: 800, Instructions: 2400}}}
	add := func(hold, soon, reach int) {
		in.Seen = append(in.Seen, &record.Observation{Hold: hold, Stands: 1, State: record.Done, Soon: soon, OfHold: record.OfHold{Reach: reach}})
	}
	add(1, 10, 0)
	add(1, 0, 0)
	add(2, 10, 100)
	add(2, 300, 100)
	if w := newStage(in, nil).windowTimes(); w[1].open != 0.5 || w[2].open != 0.5 {
		t.Errorf("open are %v and %v, want half of each", w[1].open, w[2].open)
	}
}

// Half of the holds end after 20 accesses, as they touch many pages, and all that these leave is reused after 60. Of what the others
// leave, after 100, nothing is by 400. One hold in nine reads on in both. In cold caches all is timed to more than 400. So
// half of all that is left is reused by 400, at 60.
func TestFartherEarlyEnds(t *testing.T) {
	const near, early, holds = 100, 20, 180
	epoch := &record.Epoch{CPU: holds, Accepted: holds}
	var seen []*record.Observation
	var made []record.Hold
	for hold := 1; hold <= holds; hold++ {
		accesses, farther := near, hold%9 == 0
		if hold%2 == 0 {
			accesses = early
		}
		o := &record.Observation{Epoch: epoch, Hold: hold, Stands: 1, State: record.Done, Kind: model.Reuse, After: accesses, Native: 900}
		if hold%2 != 0 {
			o.Native = 100_900
		}
		if farther {
			o.Reach = accesses
			switch accesses {
			case early:
				o.After, o.Soon, o.Counted, o.Native = 0, 60, 60, 0
			default:
				o.After, accesses = 600, 600
			}
		}
		made = append(made, record.Hold{Accesses: accesses, Touches: accesses, Instructions: 3 * accesses})
		seen = append(seen, o)
	}
	if upTo, all := weighFarther(t, fartherStage(near, seen, made)); math.Abs(upTo/all-.5) > 1e-9 {
		t.Errorf("%.3f of what is left come by 400, want 0.5", upTo/all)
	}
}

// Where all that would be left is reused by far, what seems to come later is next to nothing.
func TestFartherAllReused(t *testing.T) {
	const near, holds = 100, 180
	epoch := &record.Epoch{CPU: holds, Accepted: holds}
	var seen []*record.Observation
	var made []record.Hold
	for hold := 1; hold <= holds; hold++ {
		o := &record.Observation{Epoch: epoch, Hold: hold, Stands: 1, State: record.Done, Kind: model.Reuse, After: near, Native: 900}
		if hold%9 == 0 {
			o.After, o.Soon, o.Counted, o.Native, o.Reach = 0, 300, 300, 0, near
		}
		made = append(made, record.Hold{Accesses: near, Touches: near, Instructions: 3 * near})
		seen = append(seen, o)
	}
	if upTo, all := weighFarther(t, fartherStage(near, seen, made)); 1-upTo/all > .5/20 {
		t.Errorf("%.3f of what is left seem to come later, want half a hold in twenty at most", 1-upTo/all)
	}
}
