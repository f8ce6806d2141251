package agent

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestProbabilities(t *testing.T) {
	for _, c := range []struct {
		sizes []float64
		m     float64
	}{{[]float64{1, 2, 3, 4}, 2}, {[]float64{1000, 1, 1, 1}, 2}, {[]float64{1000, 900, 1, 1, 0}, 2.5}, {[]float64{1, 2}, 5}, {[]float64{0, 0, 0}, 1}, {[]float64{5, 1}, .1}, {nil, 3}, {[]float64{1}, 0}} {
		p := probabilities(c.sizes, c.m)
		sum := 0.0
		for i, v := range p {
			sum += v
			if v < 0 || v > 1 || c.m > 0 && v == 0 {
				t.Errorf("%v of %v: probability %d is %v", c.m, c.sizes, i, v)
			}
		}
		if want := min(c.m, float64(len(c.sizes))); math.Abs(sum-want) > 1e-9 {
			t.Errorf("%v of %v: %v sum to %v", c.m, c.sizes, p, sum)
		}
	}
}

// Each is drawn as often as its probability says.
func TestDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := []float64{.9, .05, 1, .3, .001, .45}
	count := make([]float64, len(p))
	const rounds = 200_000
	for range rounds {
		drawn := draw(p, r)
		if n := float64(len(drawn)); math.Abs(n-2.701) >= 1 {
			t.Fatalf("%v drawn, want 2.7 on average", n)
		}
		for _, i := range drawn {
			count[i]++
		}
	}
	for i, n := range count {
		if sd := math.Sqrt(p[i] * (1 - p[i]) / rounds); math.Abs(n/rounds-p[i]) > 4.5*sd+1e-12 {
			t.Errorf("%d: drawn with %v, want %v", i, n/rounds, p[i])
		}
	}
}

// Sums over 300 made-up processes, weighted by one over the probability, are right on
// average, of all and of a part of them, though CPU time changes from period to period,
// processes come and go, and a period's budget may be less than one session.
func TestSumsAreUnbiased(t *testing.T) {
	for _, m := range []float64{4, .6} {
		const processes, windows, rounds = 300, 60, 300
		r := rand.New(rand.NewPCG(3, 4))
		var truth, part, sum, squares, partSum float64
		base := make([]float64, processes)
		for i := range base {
			base[i] = math.Exp(2 * r.NormFloat64()) // heavy tails
		}
		cpu := make([][]float64, windows+1)
		for w := range cpu {
			cpu[w] = make([]float64, processes)
			for i := range cpu[w] {
				if (w+i*7)%40 < 30 { // else not there
					cpu[w][i] = base[i] * math.Exp(.5*r.NormFloat64())
				}
			}
		}
		// What is summed goes with CPU time, with a factor of each process's own.
		value := func(w, i int) float64 { return cpu[w][i] * (1 + float64(i%5)) }
		for w := 1; w <= windows; w++ {
			for i := range processes {
				truth += value(w, i)
				if i%10 == 3 {
					part += value(w, i)
				}
			}
		}
		for range rounds {
			all, some := 0.0, 0.0
			for w := 1; w <= windows; w++ {
				p := probabilities(cpu[w-1], m)
				for _, i := range draw(p, r) {
					all += value(w, i) / p[i]
					if i%10 == 3 {
						some += value(w, i) / p[i]
					}
				}
			}
			sum += all / truth
			squares += all / truth * all / truth
			partSum += some / part
		}
		mean := sum / rounds
		sd := math.Sqrt(squares/rounds - mean*mean)
		t.Logf("%v sessions a window: bias %+.2f %%, standard deviation of %d windows %.1f %%, bias of a tenth of the processes %+.2f %%", m, 100*(mean-1), windows, 100*sd, 100*(partSum/rounds-1))
		if math.Abs(mean-1) > 4*sd/math.Sqrt(rounds) {
			t.Errorf("sums are biased by %+.2f %%, of which chance is %.2f %%", 100*(mean-1), 100*sd/math.Sqrt(rounds))
		}
		if math.Abs(partSum/rounds-1) > 16*sd/math.Sqrt(rounds) {
			t.Errorf("sums of a tenth are biased by %+.2f %%", 100*(partSum/rounds-1))
		}
	}
}

// Left alone with sessions that cost more than was thought the account comes out at the
// budget.
func TestBudgetIsKept(t *testing.T) {
	for _, cost := range []time.Duration{50 * time.Millisecond, 900 * time.Millisecond, 5 * time.Second} {
		b := Budget{Share: .01, CPUs: 2, Most: 4}
		r := rand.New(rand.NewPCG(5, 6))
		const periods = 2000
		sessions := 0
		for range periods {
			b.Allow(time.Minute)
			m := b.Sessions()
			n := int(m + r.Float64())
			sessions += n
			for range n {
				b.Session(cost)
			}
			b.Agent(100 * time.Millisecond)
		}
		share := float64(b.Spent()) / float64(2*periods*time.Minute)
		if share > .0101 || cost > 500*time.Millisecond && share < .0095 {
			t.Errorf("sessions of %v: %.3f %% spent of 1, in %d sessions", cost, 100*share, sessions)
		}
	}
}

// What is lent to the first period is paid back: from then on no more is spent than of the time that has gone by.
func TestBudgetLends(t *testing.T) {
	b := Budget{Share: .01, CPUs: 2, Most: 4}
	period, all := time.Minute, 1200*time.Millisecond
	for n := range 3 * repaidIn {
		b.Allow(period)
		begun := b.Sessions() > 0
		if n == 0 && !begun {
			t.Error("no session in the first period")
		}
		if gone := time.Duration(n) * all; n > repaidIn && b.allowed > gone {
			t.Errorf("in period %d %v are allowed, when %v have come", n, b.allowed, gone)
		}
		b.Session(b.allowed - b.spent)
	}
}
