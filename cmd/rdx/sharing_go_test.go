// Needs: root, bpf, watchpoint, go.
package main_test

import (
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// Goroutines that are locked to OS threads share as those do: what is invalidated and what is falsely shared is told
// within five points, with the functions of both ends.
func TestGoSharing(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := compile(t, "gosharing")
	for _, c := range []struct {
		kind                         string
		invalidated, false_, foreign float64
		words                        uint64 // that are falsely shared are so far apart, as addresses differ
	}{
		{"pingpong", .5, 0, .5, 0},
		{"false", 0, .5, 0, 40},
	} {
		t.Run(c.kind, func(t *testing.T) {
			functions := [2]string{"main." + c.kind + "A", "main." + c.kind + "B"}
			next := func(stack string) func() *model.Profile {
				return func() *model.Profile {
					s := rdx(t, "run", "-q", "--stack", stack, "--overhead", "30", "--", bin, c.kind, "2")
					p := s.profile()
					if said := s.line(); said != "ok" {
						t.Fatalf("the program said %q", said)
					}
					return p
				}
			}
			var private, shared [2]shares
			judgeOf(t, c.kind, next("private"), func(p *model.Profile) int64 {
				for i := range private {
					private[i].add(p, functions[i], functions[1-i], []uint64{c.words, 0}[i])
				}
				return min(private[0].observations, private[1].observations)
			}, func(sds float64) (wrong []string) {
				for i := range private {
					got := &private[i]
					wrong = append(wrong, within5(t, sds, functions[i]+" invalidated", got.invalidated/got.accesses, c.invalidated, got.worth())...)
					wrong = append(wrong, within5(t, sds, functions[i]+" false sharing", got.falsely/got.accesses, c.false_, got.worth()*3/7)...)
				}
				return wrong
			})
			for i := range private {
				if wrong := append(private[i].wrongWriters, private[i].wrongWords...); len(wrong) > 0 {
					t.Errorf("%s: by another function, or at another word: %s", functions[i], strings.Join(wrong, "; "))
				}
			}
			judgeOf(t, c.kind, next("shared"), func(p *model.Profile) int64 {
				for i := range shared {
					shared[i].add(p, functions[i], "", anyWord)
				}
				return min(shared[0].observations, shared[1].observations)
			}, func(sds float64) (wrong []string) {
				for i := range shared {
					wrong = append(wrong, within5(t, sds, functions[i]+" reused by the other", shared[i].foreign/shared[i].accesses, c.foreign, shared[i].worth())...)
				}
				return wrong
			})
		})
	}
}
