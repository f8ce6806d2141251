package collector

import (
	"strings"
	"testing"
	"time"
)

func TestOwnCost(t *testing.T) {
	o := profilerCost{before: time.Second}
	for i, busy := range []bool{true, false, true, true} {
		o.look(time.Second+time.Duration(i+1)*10*time.Millisecond, busy)
	}
	if o.total != 40*time.Millisecond || o.full != 30*time.Millisecond {
		t.Errorf("%v, %v of it while all processors were busy; want 40ms and 30ms", o.total, o.full)
	}
	if c := o.comment(uint64(time.Second), .02); !strings.Contains(c, "40ms, 4.0% of the target's, 75% of it while no processor was idle, so that with the account it is 5.00% at most") {
		t.Error(c)
	}
	// A target that waits uses next to nothing, and rdx all the same some.
	for _, cpu := range []uint64{0, 1, 1000} {
		if c := o.comment(cpu, .02); strings.Contains(c, "% of the target's") || strings.Contains(c, "at most") {
			t.Errorf("of %d ns: %s", cpu, c)
		}
	}
	if c := (stopCost{n: 3, heldFor: time.Second}).comment(1); !strings.Contains(c, "1s, more than 10 times the target's CPU time") {
		t.Error(c)
	}
}
