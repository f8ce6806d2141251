package coverage

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/rdx-profiler/rdx/model"
)

// Tally is what became of many sessions of a stream at one size of a cache.
type Tally struct {
	Exact        float64
	Sessions     int
	Below, Above int // bands that lie below the exact ratio, and above
	Quoted       int
	errors       []float64 // of what was quoted, as a share of the ratio
	signed       float64   // of all
}

// Held is in what share of the sessions the band held the exact ratio.
func (t *Tally) Held() float64 {
	return 1 - float64(t.Below+t.Above)/float64(t.Sessions)
}

// Bias is by which share of the ratio it is off on average.
func (t *Tally) Bias() float64 { return t.signed / float64(t.Sessions) }

// medianError is that of how far off quoted ratios are, in percent; a dash where none is.
func medianError(errors []float64) string {
	if len(errors) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*quantile(errors, .5))
}

func (t *Tally) String() string {
	return fmt.Sprintf("%.3g | %.1f | %d / %d | %.0f | %s | %+.0f %%", 100*t.Exact, 100*t.Held(), t.Below, t.Above, 100*float64(t.Quoted)/float64(t.Sessions), medianError(t.errors), 100*t.Bias())
}

func (t *Tally) add(p *model.Point) {
	t.Sessions++
	switch {
	case p.High < t.Exact:
		t.Below++
	case p.Low > t.Exact:
		t.Above++
	}
	off := math.NaN()
	if t.Exact > 0 {
		off = p.MissRatio/t.Exact - 1
		t.signed += off
	}
	if p.Quote == model.Quoted {
		if t.Quoted++; t.Exact > 0 {
			t.errors = append(t.errors, math.Abs(off))
		}
	}
}

// Run draws sessions, on so many processors, and tallies what they say at each of Sizes.
func (s *Stream) Run(c Setting, sessions, jobs int, seed uint64) (out [len(Sizes)]Tally, err error) {
	for k := range out {
		out[k].Exact = s.Exact[k]
	}
	var mutex sync.Mutex
	var group sync.WaitGroup
	for job := range jobs {
		group.Go(func() {
			for i := job; i < sessions; i += jobs {
				p := s.Draw(c, rand.New(rand.NewPCG(seed, uint64(i))))
				curve, e := p.MissRatios(blocks(), model.CurveOptions{})
				mutex.Lock()
				if e != nil {
					err = fmt.Errorf("session %d of %s: %w", i, s.Name, e)
				} else {
					for k := range out {
						out[k].add(&curve.Points[k])
					}
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	return out, err
}

// Totals are over all streams, by setting and size.
type Totals struct {
	settings []Setting
	of       map[Setting]*[len(Sizes)]total
}

// total is of streams. Those that miss worthQuoting or more are counted apart.
type total struct {
	streams, sessions, held, large, quoted int
	least                                  float64 // coverage of any stream
	errors, bias                           []float64
}

// worthQuoting is the miss ratio from which on one is to be quoted.
const worthQuoting = 0.003

// NewTotals are of nothing yet.
func NewTotals() *Totals { return &Totals{of: make(map[Setting]*[len(Sizes)]total)} }

// Add takes a stream's tallies.
func (s *Totals) Add(c Setting, tallies *[len(Sizes)]Tally) {
	if s.of[c] == nil {
		s.settings, s.of[c] = append(s.settings, c), new([len(Sizes)]total)
	}
	for k := range tallies {
		t, x := &s.of[c][k], &tallies[k]
		if t.streams++; t.streams == 1 || x.Held() < t.least {
			t.least = x.Held()
		}
		t.sessions += x.Sessions
		t.held += x.Sessions - x.Below - x.Above
		if x.Exact >= worthQuoting {
			t.large += x.Sessions
			t.quoted += x.Quoted
			t.errors = append(t.errors, x.errors...)
			t.bias = append(t.bias, x.Bias())
		}
	}
}

// Print prints them.
func (s *Totals) Print(w io.Writer) {
	fmt.Fprintf(w, "\n| sessions | cache | streams | band holds, %% | least of a stream, %% | exact %g %% or more: quoted, %% | median error of these | mean bias |\n|---|---|---|---|---|---|---|---|\n", 100*worthQuoting)
	for _, c := range s.settings {
		for k, size := range Sizes {
			t := &s.of[c][k]
			bias := 0.0
			for _, b := range t.bias {
				bias += b / float64(len(t.bias))
			}
			fmt.Fprintf(w, "| %v | %d KiB | %d | %.1f | %.1f | %.0f | %s | %+.0f %% |\n", c, size>>10, t.streams, 100*float64(t.held)/float64(max(t.sessions, 1)), 100*t.least,
				100*float64(t.quoted)/float64(max(t.large, 1)), medianError(t.errors), 100*bias)
		}
	}
}
