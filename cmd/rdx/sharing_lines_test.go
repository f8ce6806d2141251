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
// nothing is said. Where every round is the same, and longer than a line takes to come, so is the share: of three touches, one of
// stop and two of the counter, the first of the counter finds its line gone. Where nothing is between, a thread makes some rounds
// until the line is taken, as many as the processor lets it. At a higher overhead rdx takes processors from the threads itself.
func TestLinesTaken(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	if runtime.NumCPU() < 2 {
		t.Skip("one processor: no two threads work at the same time")
	}
	bin := compile(t, "lines", "-O1", "-g", "-fno-omit-frame-pointer")
	for _, c := range []struct {
		kind   string
		share  float64 // of the accesses, 0: not known, -1: nothing is taken
		false_ bool
	}{
		{"falsely", 1. / 3, true},
		{"truly", 1. / 3, false},
		{"false", 0, true},
		{"true", 0, false},
		{"refcount", 0, false},
		{"beside", 0, true},
		{"own", -1, false},
		{"padded", -1, false},
		{"readonly", -1, false},
	} {
		t.Run(c.kind, func(t *testing.T) {
			l := &linesTaken{pairs: map[string]float64{}}
			for end := time.Now().Add(samplesWithin); l.holds < fewestLineHolds; {
				if time.Now().After(end) {
					t.Fatalf("only %d holds", l.holds)
				}
				l.add(rdx(t, "run", "-q", "--stack", "private", "--overhead", "5", "--", bin, c.kind, "2").profile())
			}
			got := (l.true_ + l.false_) / l.all
			found := fmt.Sprintf("true %.4f, false %.4f, unknown %.4f of %d holds, foremost %s", l.true_/l.all, l.false_/l.all, l.unknown/l.all, l.holds, l.foremost())
			t.Log(found)
			if c.share < 0 {
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
			if c.share > 0 && math.Abs(got-c.share) > 0.3*c.share && got+l.unknown/l.all < c.share {
				t.Errorf("want %.4f: %s", c.share, found)
			}
		})
	}
}
