// Needs: root, bpf, watchpoint, gcc, two processors. Threads that take cache lines from each other while both work.
package main_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// linesTaken is what sessions have found of one kind of the program, by reader and writer.
type linesTaken struct {
	all, true_, false_, unknown float64
	holds                       int64
	rounds, taken               float64 // as the threads count themselves
	sessions, low, high, served float64 // bands added up, and the least of
	pairs                       map[string]float64
}

func (l *linesTaken) add(p *model.Profile) {
	leaf := func(stack []*model.Location) string {
		if len(stack) == 0 || len(stack[0].Lines) == 0 {
			return "?"
		}
		return stack[0].Lines[0].Function
	}
	l.holds += p.Holds()
	whole := p.Sharing()
	l.sessions, l.low, l.high, l.served = l.sessions+1, l.low+whole.Low, l.high+whole.High, min(l.served, whole.Served)
	for i := range p.Records {
		r := &p.Records[i]
		if r.Stack != model.StackPrivate || r.Kind == model.Lost {
			continue
		}
		switch r.Kind {
		case model.TrueSharing:
			l.true_ += r.Accesses
			l.pairs[leaf(r.Reuse)+" -> "+leaf(r.Use)] += r.Accesses
		case model.FalseSharing:
			l.false_ += r.Accesses
			l.pairs[leaf(r.Reuse)+" -> "+leaf(r.Use)] += r.Accesses
		case model.UnknownSharing:
			l.unknown += r.Accesses
		default:
			l.all += r.Accesses
		}
	}
}

// foremost is the pair with most accesses.
func (l *linesTaken) foremost() (pair string) {
	for name, n := range l.pairs {
		if n > l.pairs[pair] {
			pair = name
		}
	}
	return pair
}

const fewestLineHolds = 30

// Who takes lines from whom, by which kind of sharing, is told where both do nothing else, too; of threads that share nothing
// nothing is said. Where every round is the same, and longer than a line takes to come, one of three touches finds its line gone, as
// long as both have a processor. Of truly, the threads count themselves how often. Where nothing is between, a thread makes some
// rounds until the line is taken, as many as the processor lets it. At a higher overhead rdx takes processors from the threads itself.
func TestLinesTaken(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	if runtime.NumCPU() < 2 {
		t.Skip("one processor: no two threads work at the same time")
	}
	bin := compile(t, "lines", "-O1", "-g", "-fno-omit-frame-pointer")
	for _, c := range []struct {
		kind   string
		round  float64 // accesses, of which one finds its line gone, 0: it is not known how many do, -1: nothing is taken
		false_ bool
	}{
		{"falsely", 3, true},
		{"truly", 3, false},
		{"false", 0, true},
		{"true", 0, false},
		{"refcount", 0, false},
		{"beside", 0, true},
		{"own", -1, false},
		{"padded", -1, false},
		{"readonly", -1, false},
	} {
		t.Run(c.kind, func(t *testing.T) {
			l := &linesTaken{pairs: map[string]float64{}, served: 1}
			for end := time.Now().Add(samplesWithin); l.holds < fewestLineHolds; {
				if time.Now().After(end) {
					t.Fatalf("only %d holds", l.holds)
				}
				s := rdx(t, "run", "-q", "--stack", "private", "--overhead", "5", "--", bin, c.kind, "2")
				l.add(s.profile())
				for line := range s.lines {
					var n, taken float64
					if _, err := fmt.Sscanf(line, "%g rounds, %g taken", &n, &taken); err == nil && n > 0 {
						l.rounds, l.taken = l.rounds+n, l.taken+taken
					}
				}
			}
			got := (l.true_ + l.false_) / l.all
			found := fmt.Sprintf("true %.4f, false %.4f, unknown %.4f of %d holds, foremost %s", l.true_/l.all, l.false_/l.all, l.unknown/l.all, l.holds, l.foremost())
			t.Log(found)
			if c.round < 0 {
				if got > 0.001 {
					t.Error("nothing is shared: " + found)
				}
				return
			}
			if wrong := l.true_; got == 0 || c.false_ && wrong > 0.05*l.false_ || !c.false_ && l.false_ > 0.05*l.true_ {
				t.Error("wrong kind: " + found)
			}
			if !strings.Contains(l.foremost(), c.kind+"_a") || !strings.Contains(l.foremost(), c.kind+"_b") {
				t.Error("wrong pair: " + found)
			}
			if c.round == 0 {
				return
			}
			want, by := 1/c.round, "by construction"
			if l.rounds > 0 {
				want, by = l.taken/l.rounds/c.round, "by the threads' own count"
			}
			by = fmt.Sprintf("%s %.4f of the accesses, bands %.4f to %.4f, a processor for %.0f %% of the time", by, want, l.low/l.sessions, l.high/l.sessions, 100*l.served)
			t.Log(by)
			switch alone := l.served >= 0.95; {
			case alone && math.Abs(got-want) > 0.3*want && !(got < want && got+l.unknown/l.all >= want):
				t.Error("not within 30 %: " + by)
			case !alone && l.rounds > 0 && (l.low > want*l.sessions || l.high < want*l.sessions):
				t.Error("out of the band: " + by)
			}
		})
	}
}
