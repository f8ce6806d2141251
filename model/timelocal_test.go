package model

import (
	"math"
	"testing"
)

// epochsOf cuts a trace into epochs and gives each the reuse times of its uses
// (forward), what is not reused being cold.
func epochsOf(trace []uint64, n int, b *Bins) []Epoch {
	epochs := make([]Epoch, n)
	length := (len(trace) + n - 1) / n
	for i := range epochs {
		epochs[i] = Epoch{Length: float64(min(length, len(trace)-i*length)), Times: NewHist(b)}
	}
	next := map[uint64]int{}
	for i := len(trace) - 1; i >= 0; i-- {
		h := epochs[i/length].Times
		if j, ok := next[trace[i]]; ok {
			h.Add(uint64(j-i), 1)
		} else {
			h.AddKind(Cold, 0, 1)
		}
		next[trace[i]] = i
	}
	return epochs
}

// scoreBoth is the l2 accuracy of the stationary and the time-local
// conversion.
func scoreBoth(t *testing.T, trace []uint64, epochs int) (stationary, local float64) {
	t.Helper()
	b, l2 := LogBins(10), LogBins(1)
	times, dists := histsOf(trace, b, l2)
	var err error
	if stationary, err = Accuracy(dists, convert(t, times, l2)); err != nil {
		t.Fatal(err)
	}
	x, err := NewTimeLocal(epochsOf(trace, epochs, b))
	if err != nil {
		t.Fatal(err)
	}
	h := NewHist(l2)
	for i := range x.epochs {
		if err := x.Stacks(h, i, x.epochs[i].Times); err != nil {
			t.Fatal(err)
		}
	}
	near(t, "mass", h.Total(), float64(len(trace)), 1e-6*float64(len(trace)))
	if local, err = Accuracy(dists, h); err != nil {
		t.Fatal(err)
	}
	return 100 * stationary, 100 * local
}

// Where no stationary model can be right, and what the epochs make of it.
func TestTimeLocalRepairs(t *testing.T) {
	rng := newRand(t, 41)
	phases := make([]uint64, 120000)
	for i := range phases {
		if i/4000%2 == 0 {
			phases[i] = uint64(i % 12)
		} else {
			phases[i] = 100 + rng.Uint64N(1500)
		}
	}
	sawtooth := make([]uint64, 60000)
	for i := range sawtooth {
		if sawtooth[i] = uint64(i % 1000); i/1000%2 == 1 {
			sawtooth[i] = 999 - sawtooth[i]
		}
	}
	steady := make([]uint64, 60000)
	for i := range steady {
		steady[i] = uint64(rng.ExpFloat64()*90) % 400
	}
	for _, c := range []struct {
		name   string
		trace  []uint64
		epochs int
		least  float64
	}{{"phases", phases, 240, 94}, {"sawtooth", sawtooth, 600, 88}, {"steady", steady, 100, 96}} {
		before, after := scoreBoth(t, c.trace, c.epochs)
		t.Logf("%s: stationary %.1f, time-local %.1f", c.name, before, after)
		if after < c.least {
			t.Errorf("%s: time-local accuracy %.1f, want %.0f", c.name, after, c.least)
		}
		if c.name != "steady" && after < before+5 {
			t.Errorf("%s: epochs repair nothing: %.1f, then %.1f", c.name, before, after)
		}
	}
}

// One epoch is the stationary conversion.
func TestTimeLocalOneEpoch(t *testing.T) {
	h := timesOf300()
	h.N = 1000
	x, err := NewTimeLocal([]Epoch{{Length: math.MaxUint32, Times: h}})
	if err != nil {
		t.Fatal(err)
	}
	got := NewHist(LogBins(10))
	if err := x.Stacks(got, 0, h); err != nil {
		t.Fatal(err)
	}
	if err := x.Stacks(got, 0, NewHist(LogBins(1))); err == nil {
		t.Error("other bins accepted")
	}
	want := convert(t, h, LogBins(10))
	for i := range want.W {
		near(t, "weight", got.W[i], want.W[i], 1e-4) // half a unit at a piece's end lies in the next bin
	}
}

// Epochs that differ by chance alone are shrunk all the way; epochs that truly
// differ keep their own survival function.
func TestTimeLocalShrinkage(t *testing.T) {
	rng := newRand(t, 42)
	b := LogBins(10)
	make_ := func(mean func(i int) float64) []Epoch {
		e := make([]Epoch, 60)
		for i := range e {
			e[i] = Epoch{Length: 1000, Times: NewHist(b)}
			for range 50 {
				e[i].Times.Add(1+uint64(rng.ExpFloat64()*mean(i)), 1)
			}
		}
		return e
	}
	same, err := NewTimeLocal(make_(func(int) float64 { return 100 }))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewTimeLocal(make_(func(i int) float64 { return 10 * float64(1+i%2*30) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("k: alike %.0f, different %.1f", same.K(), other.K())
	if same.K() < 500 || other.K() > 20 {
		t.Errorf("k: alike %v, different %v", same.K(), other.K())
	}
}

func TestTimeLocalRefuses(t *testing.T) {
	ok, other, broken := NewHist(LogBins(1)), NewHist(LogBins(2)), NewHist(LogBins(1))
	ok.Add(3, 1)
	broken.W[2] = math.NaN()
	for name, e := range map[string][]Epoch{
		"none": nil, "no length": {{0, 0, ok}}, "endless": {{0, math.Inf(1), ok}}, "other bins": {{0, 1, ok}, {0, 1, other}},
		"NaN": {{0, 1, broken}}, "no observations": {{0, 1, NewHist(LogBins(1))}},
	} {
		if _, err := NewTimeLocal(e); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
