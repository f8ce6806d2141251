// Needs: nothing.
package main

import (
	"math/rand/v2"
	"testing"
)

func TestSampled(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	// Every word is touched again after exactly 100 accesses.
	s := newStream(each(100_000, func(i int) int32 { return int32(i % 100) }))
	truth := s.all()
	if truth[bin(100)] != 100_000-100 || truth[notReused] != 100 {
		t.Fatalf("%v", truth)
	}
	if got := accuracy(truth, s.sampled(r, 1000, 0)); got < .99 {
		t.Errorf("at once: accuracy %.3f", got)
	}
	// So late that the first reuse is always missed, the times are too long.
	late := s.sampled(r, 1000, 100_000)
	if late[bin(100)] > 20 {
		t.Errorf("late: %v of 1000 samples still find the first reuse", late[bin(100)])
	}
	if got := accuracy(truth, truth); got != 1 {
		t.Errorf("accuracy of the truth is %v", got)
	}
	if got := accuracy(histogram{1: 1}, histogram{2: 1}); got != 0 {
		t.Errorf("accuracy of all in another bin is %v", got)
	}
}

// What a profile says of its holds is read as it is written.
func TestAccount(t *testing.T) {
	s, err := account([]string{
		"thread held per sample: p50 120.5µs, p99 1.5ms, longest 2ms",
		"overhead by the profiler's own account: 2.00% of the target's CPU time; more",
		"of a hold, µs at the median/p99: stop and wake-up 1.0/2.0, arming 3.0/4.0; 5 pages at once",
	}, 300, 30e9)
	if err != nil || s.held != 120500 || s.held99 != 1500000 || s.longest != 2000000 || s.perMinute != 300 || len(s.stages) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := account(nil, 1, 1); err == nil {
		t.Error("an account without holds is taken")
	}
}
