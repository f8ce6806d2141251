// Needs: root, bpf, watchpoint, gcc with OpenMP.
package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// stacks is below all stacks, and above the data of a program.
const stacks = 0x7000_0000_0000

// OpenMP's threads work at the same time, and both run the same code: what it shares is
// told, and what it does not, too.
func TestOpenMPSharing(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	t.Setenv("OMP_NUM_THREADS", "2")
	t.Setenv("OMP_WAIT_POLICY", "passive")
	bin := compile(t, "omp", "-O1", "-g", "-fno-omit-frame-pointer", "-fopenmp")
	for _, c := range []struct {
		kind, function               string
		invalidated, false_, foreign float64
	}{
		{"counters", "counters", 0, .5, 0},
		{"padded", "padded", 0, 0, 0},
		{"turns", "turns", .5, 0, .5},
		{"fixed", "fixed._omp_fn.0", 0, 0, 0},
		{"sum", "sum._omp_fn.0", 0, 0, 0},
	} {
		t.Run(c.kind, func(t *testing.T) {
			var private, shared shares
			next := func(stack string) func() *model.Profile {
				return func() *model.Profile {
					p := rdx(t, "run", "-q", "--stack", stack, "--overhead", "30", "--", bin, c.kind, "2").profile()
					// The master hands its arguments over on its stack, and is given the result there: those are shared.
					p.Records = slices.DeleteFunc(p.Records, func(r model.Record) bool { return r.Words().Address >= stacks })
					return p
				}
			}
			judgeOf(t, c.kind, next("private"), func(p *model.Profile) int64 {
				private.add(p, c.function, c.function, anyWord)
				for _, r := range p.Records {
					// At +0 and +40 by turns; the other cases have no words that may be falsely shared.
					if r.Kind == model.FalseSharing && outer(r.Use)[0] == c.function && (r.Words().Address^r.Words().Written)%64 != 40 {
						t.Errorf("false sharing of %#x and %#x", r.Words().Address, r.Words().Written)
					}
				}
				return private.observations
			}, func(sds float64) []string {
				return append(within5(t, sds, c.kind+" invalidated", private.invalidated/private.accesses, c.invalidated, private.worth()),
					within5(t, sds, c.kind+" false sharing", private.falsely/private.accesses, c.false_, private.worth()*3/7)...)
			})
			if wrong := append(private.wrongWriters, private.wrongWords...); len(wrong) > 0 {
				t.Errorf("by another function, or at another word: %s", strings.Join(wrong, "; "))
			}
			judgeOf(t, c.kind, next("shared"), func(p *model.Profile) int64 {
				shared.add(p, c.function, "", 0)
				return shared.observations
			}, func(sds float64) []string {
				return within5(t, sds, c.kind+" reused by the other", shared.foreign/shared.accesses, c.foreign, shared.worth())
			})
			if shared.invalidated > 0 {
				t.Errorf("%.0f accesses invalidated in a shared stack", shared.invalidated)
			}
		})
	}
}
