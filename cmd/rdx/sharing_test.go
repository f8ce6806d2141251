// Needs: root, bpf, watchpoint, gcc. Threads whose sharing is known by construction.
package main_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// shares are how the uses in a function of the program end, and who ended them.
type shares struct {
	observations         int64
	accesses             float64
	invalidated, falsely float64
	foreign              float64  // reuses by the other thread
	squares              float64  // of the weights
	wrongWriters         []string // invalidations by another function
	wrongWords           []string // false sharing by another function or at another word
}

// anyWord of a line may be the one written.
const anyWord = ^uint64(0)

// worth is how many observations of equal weight these are worth.
func (s *shares) worth() int64 { return int64(s.accesses * s.accesses / s.squares) }

func (s *shares) add(p *model.Profile, function, writer string, offset uint64) {
	leaf := func(stack []*model.Location) string {
		if len(stack) > 0 && len(stack[0].Lines) > 0 {
			return stack[0].Lines[0].Function
		}
		return ""
	}
	// By Kaplan-Meier: those with a long way to their end are cut off more often.
	if err := p.Derive(); err != nil {
		panic(err)
	}
	for i := range p.Records {
		r := &p.Records[i]
		if leaf(r.Use) != function {
			continue
		}
		w := r.Words()
		switch r.Kind {
		case model.FalseSharing:
			s.falsely += r.Accesses
			if w.Written%64 != offset && offset != anyWord || leaf(r.Reuse) != writer {
				s.wrongWords = append(s.wrongWords, fmt.Sprintf("falsely shared: %#x, written at %#x by %s", w.Address, w.Written, leaf(r.Reuse)))
			}
			continue
		case model.Invalidated:
			s.invalidated += r.Estimated()
			if leaf(r.Reuse) != writer {
				s.wrongWriters = append(s.wrongWriters, fmt.Sprintf("invalidated: %#x, written by %s", w.Address, leaf(r.Reuse)))
			}
		case model.Reuse:
			if w.EndTID != 0 {
				s.foreign += r.Estimated()
			}
		default:
			continue
		}
		s.accesses += r.Estimated()
		s.squares += r.Estimated() * r.Estimated() / float64(max(r.Observations, 1))
		s.observations += r.Observations
	}
}

// profileOf a run of the program, with arguments behind the time it runs for. One that another process disturbs
// is made once more: what it tells is of the times in which that was away.
func profileOf(t *testing.T, stack, kind string, args ...string) *model.Profile {
	t.Helper()
	bin := compile(t, "sharing", "-O1", "-g", "-fno-omit-frame-pointer")
	for end := time.Now().Add(samplesWithin); ; {
		p := rdx(t, append([]string{"run", "-q", "--stack", stack, "--overhead", "30", "--", bin, kind, "2"}, args...)...).profile()
		if !disturbed(p) {
			return p
		}
		if time.Now().After(end) { // it is judged as it is
			t.Logf("for %v another process has had debug registers taken: %v", samplesWithin, p.Counts)
			return p
		}
	}
}

// judge collects a program's profiles until its shares are of fewestShared observations
// each, and has them checked: how many samples a run gets depends on what else the machine does.
func judge(t *testing.T, stack, kind string, add func(*model.Profile) (observations int64), check func(sds float64) (wrong []string), args ...string) {
	t.Helper()
	judgeOf(t, kind, func() *model.Profile { return profileOf(t, stack, kind, args...) }, add, check)
}

// judgements are made of more and more observations. Of the forty shares of some size that the tests judge one is three
// standard deviations off by chance in every tenth run, and then one time in twenty still is of four times as many. So
// what is wrong is judged once more, of 1600, where five deviations are less than three are of 400: nothing is off by so much by chance.
var judgements = []struct {
	fewest int64
	sds    float64
}{{fewestShared, 3}, {4 * fewestShared, 3}, {16 * fewestShared, 5}}

// judgeOf is judge of the profiles of any sessions.
func judgeOf(t *testing.T, kind string, next func() *model.Profile, add func(*model.Profile) (observations int64), check func(sds float64) (wrong []string)) {
	t.Helper()
	for i, of := range judgements {
		limit := samplesWithin << i
		for end := time.Now().Add(limit); ; {
			p := next()
			if add(p) >= of.fewest {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: too few samples in %v: %v", kind, limit, p.Counts)
			}
		}
		wrong := check(of.sds)
		if len(wrong) == 0 {
			return
		}
		if i == len(judgements)-1 {
			t.Errorf("%s: %s", kind, strings.Join(wrong, "; "))
			return
		}
		t.Logf("%s, of few: %s", kind, strings.Join(wrong, "; "))
	}
}

// within5 says of a share what is wrong if it is not within five points of what the
// program was made for, or within what that many observations can differ by chance: so many
// standard deviations.
func within5(t *testing.T, sds float64, what string, got, want float64, n int64) []string {
	t.Helper()
	chance := sds * math.Sqrt(max(want*(1-want), 0.01)/float64(n))
	t.Logf("%s: %.3f, by construction %.3f (%d observations)", what, got, want, n)
	if math.Abs(got-want) > max(0.05, chance) {
		return []string{fmt.Sprintf("%s: %.3f, want %.3f within %.3f", what, got, want, max(0.05, chance))}
	}
	return nil
}

const fewestShared = 100

// samplesWithin so long they are there, beside other work, too.
const samplesWithin = 4 * deadline

// privateCase is a kind of the program, and what is known of it by construction.
type privateCase struct {
	kind     string
	a, b     float64 // share invalidated of uses in KIND_a, KIND_b
	false_   float64 // of both
	falseB   float64 // of b, if it is another
	aAt, bAt uint64  // where they write
}

// judge judges what sessions find. A word of a line that is written was watched with a
// probability of drawn or more: each write seen stands for 1/drawn at most.
func (c *privateCase) judge(t *testing.T, drawn float64, args ...string) {
	var a, b shares
	judge(t, "private", c.kind, func(p *model.Profile) int64 {
		a.add(p, c.kind+"_a", c.kind+"_b", c.bAt)
		b.add(p, c.kind+"_b", c.kind+"_a", c.aAt)
		return min(a.observations, b.observations)
	}, func(sds float64) (wrong []string) {
		for _, f := range []struct {
			name string
			want float64
			got  *shares
		}{{"a", c.a, &a}, {"b", c.b, &b}} {
			got, falsely := f.got, c.false_
			if f.name == "b" && c.falseB > 0 {
				falsely = c.falseB
			}
			wrong = append(wrong, within5(t, sds, fmt.Sprintf("%s_%s invalidated", c.kind, f.name), got.invalidated/got.accesses, f.want, got.worth())...)
			wrong = append(wrong, within5(t, sds, fmt.Sprintf("%s_%s false sharing", c.kind, f.name), got.falsely/got.accesses, falsely, int64(float64(got.worth())*drawn))...)
		}
		return wrong
	}, args...)
	for name, got := range map[string]*shares{"a": &a, "b": &b} {
		if wrong := append(got.wrongWriters, got.wrongWords...); len(wrong) > 0 {
			t.Errorf("%s_%s: by another function, or at another word: %s", c.kind, name, strings.Join(wrong, "; "))
		}
	}
}

// Each function's share of invalidated uses and false sharing, and the writers.
func TestPrivateStack(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	for _, c := range []privateCase{
		{kind: "pingpong", a: .5, b: .5},
		{kind: "false", false_: .5, aAt: 0, bAt: 40},
		{kind: "wide", false_: .5, falseB: 1. / 14, aAt: 0, bAt: anyWord}, // b finds its line gone once for 14 stores
		{kind: "readmostly", b: 1. / 8},
		{kind: "queue", b: 1},
		{kind: "private"},
	} {
		t.Run(c.kind, func(t *testing.T) { c.judge(t, 3./7) })
	}
}

// In a shared stack the other thread's access is a reuse like any.
func TestSharedStack(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	for _, c := range []struct {
		kind string
		a, b float64 // share of uses whose reuse is the other thread's
	}{
		{"pingpong", .5, .5},
		{"readmostly", 8. / 9, 1},
		{"queue", 1, 1},
		{"private", 0, 0},
	} {
		t.Run(c.kind, func(t *testing.T) {
			var a, b shares
			judge(t, "shared", c.kind, func(p *model.Profile) int64 {
				a.add(p, c.kind+"_a", "", 0)
				b.add(p, c.kind+"_b", "", 0)
				return min(a.observations, b.observations)
			}, func(sds float64) []string {
				return append(within5(t, sds, c.kind+"_a reused by the other", a.foreign/a.accesses, c.a, a.worth()),
					within5(t, sds, c.kind+"_b reused by the other", b.foreign/b.accesses, c.b, b.worth())...)
			})
			if n := a.invalidated + b.invalidated; n > 0 {
				t.Errorf("%s: %.0f accesses invalidated in a shared stack", c.kind, n)
			}
		})
	}
}
