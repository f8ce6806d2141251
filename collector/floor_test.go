package collector

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// A target that uses little of a CPU has the floor as its budget, one that uses much its share, and what it did not do for
// an hour pays for nothing of what it does then.
func TestFloor(t *testing.T) {
	const tick = 100 * time.Millisecond
	for _, c := range []struct {
		name       string
		uses       func(at time.Duration) float64 // of one CPU
		from, to   time.Duration
		least, top float64 // of the elapsed time
	}{
		{"5 % of a CPU", func(time.Duration) float64 { return 0.05 }, 0, 20 * time.Second, 0.0019, 0.002},
		{"busy", func(time.Duration) float64 { return 1 }, 0, 20 * time.Second, 0.0099, 0.0101},
		{"idle", func(time.Duration) float64 { return 0 }, 0, 20 * time.Second, 0, 0},
		{"half a percent", func(time.Duration) float64 { return 0.005 }, 0, 20 * time.Second, 0.00049, 0.0005},
		{"busy for a second of ten", func(at time.Duration) float64 {
			if at%(10*time.Second) < time.Second {
				return 1
			}
			return 0
		}, 20 * time.Second, 220 * time.Second, 0.0012, 0.0035},
		{"busy after an hour", func(at time.Duration) float64 {
			if at < time.Hour {
				return 0.001
			}
			return 1
		}, time.Hour, time.Hour + 10*time.Second, 0.01, 0.02},
	} {
		f := floor{share: 0.002, given: 0.01}
		var cpu uint64
		before, share := 0.0, f.given
		now := time.Hour // the clock's, not the session's
		for at := time.Duration(0); at < c.to; at += tick {
			if at == c.from {
				before = f.allows(cpu, share)
			}
			share = f.look(cpu, now+at)
			cpu += uint64(c.uses(at) * float64(tick))
		}
		f.look(cpu, now+c.to)
		of := (f.allows(cpu, share) - before) / float64(c.to-c.from)
		if of < c.least*0.999 || of > c.top*1.001+1e-12 {
			t.Errorf("%s: the budget was %.5f of the time, want %.5f to %.5f", c.name, of, c.least, c.top)
		}
		if said := f.comment(cpu); (said != "") != (c.name != "busy" && c.name != "idle") && c.name != "busy after an hour" && c.name != "busy for a second of ten" {
			t.Errorf("%s: %q", c.name, said)
		}
	}
}

// Without a floor the budget is its share of the target's CPU time; with one, that of holds is what copying leaves.
func TestPaid(t *testing.T) {
	b := newBudget(0.01, sampler.TwoTrap{}, sampler.Nanoseconds)
	if got := b.paid(1e9); math.Abs(got-1e7) > 1 {
		t.Errorf("without a floor %v ns of 1 s", got)
	}
	b.floor.share = 0.002
	for i := range 100 {
		b.target = b.floor.look(uint64(i)*5e6, time.Second+time.Duration(i)*100*time.Millisecond)
	}
	first := newBudget(0.01, sampler.TwoTrap{}, sampler.Nanoseconds)
	accept := first.accept
	if first.aim(0.04); math.Abs(first.accept-4*accept) > 1e-9 || first.target != 0.04 {
		t.Errorf("four times the budget: %v of the ticks are accepted, not %v", first.accept, accept)
	}
	if math.Abs(b.target-0.04) > 0.001 {
		t.Errorf("5 %% of a CPU: the budget is %v of its time", b.target)
	}
	b.copiedShare = 1
	all := b.floor.allows(495e6, b.target)
	if got := b.paid(495e6); math.Abs(got-(1-copyingShare)*all) > 1e-6*all {
		t.Errorf("holds get %v of %v", got, all)
	}
}

// Where the floor is the budget, it is spent in the seconds that a session lasts: by a simulation of a target at 5 % of a CPU.
func TestFloorIsSpent(t *testing.T) {
	const tick, period, hold = 100 * time.Millisecond, 10 * time.Millisecond, 700 * time.Microsecond
	b := newBudget(0.01, sampler.TwoTrap{}, sampler.Nanoseconds)
	b.floor.share, b.periodNS = 0.002, float64(period)
	r := rand.New(rand.NewPCG(1, 2))
	var stats sampler.Stats
	var cpu, next uint64
	for at := time.Duration(0); at < 20*time.Second; at += tick {
		for cpu += uint64(tick) / 20; next < cpu; next += uint64(period) {
			if stats.Ticks++; r.Float64() < b.accepted() {
				stats.Holds++
			}
		}
		b.aim(b.floor.look(cpu, time.Second+at))
		b.update(cpu, stats, time.Duration(stats.Holds)*hold, 0)
	}
	if b.spent < 0.025 || b.spent > 0.045 {
		t.Errorf("spent %.4f of the CPU time in %d holds, want 0.04", b.spent, stats.Holds)
	}
}
