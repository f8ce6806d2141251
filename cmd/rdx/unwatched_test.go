// Needs: root, bpf, gcc. Sessions that only read ahead, as where there are no watchpoints.
package main_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// A list through 8 MiB misses a small cache at each second access: reading ahead tells. Whether it misses one of 1 MiB, where what
// is open would have to be waited for, is not known, and no register is taken to find out.
func TestUnwatched(t *testing.T) {
	needRoot(t)
	p := start(t, compile(t, "rates", "-O2"), "far", "600")
	s := rdx(t, "attach", "-p", strconv.Itoa(p.pid), "-q", "--unwatched", "--overhead", "90", "--period", "200us", "-d", "10s")
	most := 0
	eventually(t, "rdx ends", func() bool {
		select {
		case <-s.exited:
			return true
		default:
		}
		for _, tid := range tids(p.pid) {
			if n := freeRegisters(t, tid); n >= 0 {
				most = max(most, 4-n)
			}
		}
		return false
	})
	profile := s.profile()
	if most > 0 {
		t.Errorf("%d debug registers were taken", most)
	}
	if !profile.Unwatched() {
		t.Errorf("it does not say that nothing was watched: %q", profile.Comments)
	}
	curve, err := profile.MissRatios([]uint64{32 << 10 / 64, 1 << 20 / 64}, model.CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", curve.Points)
	// By time a ratio is known within a quarter at best.
	if small := curve.Points[0]; small.Quote != model.Quoted || small.Low > 0.5 || small.High < 0.5 || small.Low < 0.35 || small.High > 0.64 {
		t.Errorf("at 32 KiB: %+v, want 0.5", small)
	}
	if large := curve.Points[1]; large.Quote == model.Quoted || large.Low > 0 || large.High < 0.5 || large.High > 0.64 {
		t.Errorf("at 1 MiB: %+v, want up to 0.5 or more", large)
	}
}

// Read ahead far enough, the same list is seen to miss a cache of 1 MiB, too, and the program to fit into one of 32 MiB.
func TestUnwatchedFar(t *testing.T) {
	needRoot(t)
	p := start(t, compile(t, "rates", "-O2"), "far", "600")
	s := rdx(t, "attach", "-p", strconv.Itoa(p.pid), "-q", "--unwatched", "--overhead", "90", "--burst", "100000", "--period", "200us", "-d", "20s")
	profile := s.profile()
	curve, err := profile.MissRatios([]uint64{1 << 20 / 64, 32 << 20 / 64}, model.CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d holds, %+v", curve.Holds, curve.Points)
	if far := curve.Points[0]; far.MissRatio < 0.48 || far.MissRatio > 0.52 || far.Low < 0.05 || far.Low > 0.5 || far.High < 0.5 {
		t.Errorf("at 1 MiB: %+v, want 0.5", far)
	}
	if all := curve.Points[1]; all.High > 0.02 {
		t.Errorf("at 32 MiB: %+v, want next to nothing", all)
	}
}

// What can't be had by reading ahead alone is refused.
func TestUnwatchedRefused(t *testing.T) {
	for _, flags := range []string{"--stack both", "--burst off", "--burst-engine step"} {
		s := rdx(t, append([]string{"attach", "-p", "1", "--unwatched"}, strings.Fields(flags)...)...)
		if code := s.wait(); code != 2 || !strings.Contains(s.stderr.String(), flags+" needs watchpoints (leave --unwatched out)") {
			t.Errorf("%s: exit code %d, %q", flags, code, s.stderr.String())
		}
	}
}
