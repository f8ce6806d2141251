package collector

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// What turns tell of a hold's cost does not depend on how fast the machine is from turn to turn, nor on a turn that
// something else has spoiled.
func TestTurnsCost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const cost = 60_000.0
	var s turns
	speed := 1.0
	for i := range 2*holdCostTurns + 2 {
		one := turn{holding: i%2 == 0, at: 100e6}
		speed *= 1 + .01*r.NormFloat64()
		if one.ran = 98e6; one.holding {
			one.ran, one.holds = 50e6, 50
		}
		one.progress = (one.ran - cost*one.holds) * speed
		if i == 10 {
			one.progress /= 2
		}
		s.of = append(s.of, one)
	}
	got, err, holds := s.cost()
	if math.Abs(got-cost) > 3*err || err > cost/4 || holds < 50*(holdCostTurns-2) {
		t.Errorf("%.0f ± %.0f after %d holds, want %.0f", got, err, holds, cost)
	}
	if s.busy() {
		t.Error("a program that runs for 98 % of the time is on no busy machine")
	}
	s.of = s.of[:4]
	if _, err, _ := s.cost(); !math.IsInf(err, 1) {
		t.Errorf("four turns tell it to ± %.0f", err)
	}
}

func TestMeanOfTwo(t *testing.T) {
	if mean, err := meanOfTwo([]float64{50, 60}, []float64{10, 20}); math.Abs(mean-52) > .1 || math.Abs(err-8.9) > .1 {
		t.Errorf("%.1f ± %.1f", mean, err)
	}
	if _, err := meanOfTwo([]float64{50, 150}, []float64{1, 1}); err != 50 {
		t.Errorf("two that are 100 apart are told to ± %.1f", err)
	}
}

// Of a hold that costs a constant after its end the budget pays for more than of one that costs as much again as it is long.
func TestBudgetChargesWhatWasMeasured(t *testing.T) {
	b := budget{cold: coldShare}
	if got := b.charge(3, time.Millisecond); got != 2e6 {
		t.Errorf("three holds of a millisecond altogether cost %v ns, as assumed", got)
	}
	b.holdNS = b.charge(1, firstHoldNS)
	b.target, b.periodNS = .01, 1e6
	b.measured(80_000)
	if got := b.charge(3, time.Millisecond); got != 1.24e6 {
		t.Errorf("three holds of a millisecond altogether cost %v ns, measured", got)
	}
	if b.holdNS != firstHoldNS+80_000 {
		t.Errorf("the first hold is taken to cost %v", b.holdNS)
	}
}
