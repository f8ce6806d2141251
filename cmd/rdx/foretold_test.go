// Needs: root, bpf, watchpoint, gcc. Access rates by the model of the processor alone.
package main_test

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"
)

// Three loops whose rates differ by a factor of some hundred, as what they wait for is known: what the model foretells
// without any probe is right within a factor of two in the middle one of three sessions, and its interval holds the rate.
func TestForetoldRate(t *testing.T) {
	needRoot(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("there is no model of other processors")
	}
	bin := compile(t, "rates", "-O2")
	for _, loop := range []string{"chain", "chase", "loads"} {
		t.Run(loop, func(t *testing.T) {
			var off []float64
			for len(off) < 3 && (len(off) < 2 || max(off[0], off[1]) > math.Ln2) { // two that are right decide
				s := rdx(t, "run", "-q", "--measure-rate=false", "--overhead", "5", "--", bin, loop, "3")
				p := s.profile()
				want, err := strconv.ParseFloat(s.line(), 64)
				if err != nil {
					t.Fatal(err)
				}
				got := p.Clock
				t.Logf("%.4g [%.4g, %.4g] by %s, want %.4g", got.Rate, got.RateLow, got.RateHigh, got.RateSource, want)
				if got.RateSource != "estimated" || want < got.RateLow || want > got.RateHigh {
					t.Errorf("the rate is %s, %.4g [%.4g, %.4g], want %.4g", got.RateSource, got.Rate, got.RateLow, got.RateHigh, want)
				}
				off = append(off, math.Abs(math.Log(got.Rate/want)))
			}
			slices.Sort(off)
			if middle := off[1]; middle > math.Ln2 { // of two that are right the other is, too
				t.Errorf("off by a factor of %.2f", math.Exp(middle))
			}
		})
	}
}
