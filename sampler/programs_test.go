// Needs: nothing; TestNeedsLoaded alone needs root, bpf.
package sampler

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/bpf"
)

// Every program of the object file is one that some session needs, and none is
// needed that is not there.
func TestNeeds(t *testing.T) {
	spec, err := bpf.LoadRDX()
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Sorted(slices.Values(Needs{Access: MaxAccessEvents, Others: true, Stamps: true, Steps: true}.programs()))
	if have := slices.Sorted(maps.Keys(spec.Programs)); !slices.Equal(all, have) {
		t.Errorf("needed at most: %v, there are %v", all, have)
	}
}

// What is not needed is not loaded, and asking for it is an error, not a crash.
func TestNeedsLoaded(t *testing.T) {
	for _, tc := range []struct {
		needs Needs
		want  int
	}{
		{Needs{}, 1 + NumSlots},
		{Needs{Access: 2}, 1 + NumSlots + 2},
		{Needs{Others: true}, 1 + 2*NumSlots + MaxCPUSlots},
		{Needs{Steps: true}, 1 + NumSlots + 1},
		{Needs{MaxAccessEvents, true, true, true}, 1 + 2*NumSlots + MaxCPUSlots + MaxAccessEvents + 2},
	} {
		k, err := Load(1, tc.needs)
		if err != nil {
			t.Skip("needs root and bpf:", err)
		}
		if n := len(k.obj.programs); n != tc.want {
			t.Errorf("%+v: %d programs, want %d", tc.needs, n, tc.want)
		}
		if _, err := k.ArmOther(1, 0, 0x1001, true); err == nil || strings.Contains(err.Error(), "not loaded") == tc.needs.Others {
			t.Errorf("%+v: watching other threads: %v", tc.needs, err)
		}
		if stamps, err := k.Stamps(0, unix.Gettid(), []time.Duration{time.Second}); (err == nil) != tc.needs.Stamps {
			t.Errorf("%+v: stamping a thread: %v", tc.needs, err)
		} else if err == nil {
			stamps.Close()
		}
		timer := Precise{Label: "timer", Align: 1, Attr: PreciseAttr(Event{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK})}
		for _, events := range []int{tc.needs.Access, tc.needs.Access + 1} {
			ticker, err := AccessSourceOf("timers", Accesses, 1, 1, slices.Repeat([]Precise{timer}, events)).Open(k, unix.Gettid(), 1e9)
			if (err == nil) != (events == tc.needs.Access) || err != nil && !strings.Contains(err.Error(), "not loaded") {
				t.Errorf("%+v: opening %d events: %v", tc.needs, events, err)
			}
			if err == nil {
				ticker.Close()
			}
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What not loading the others saves at the start of a session.
func BenchmarkLoad(b *testing.B) {
	for name, needs := range map[string]Needs{"least": {}, "all": {MaxAccessEvents, true, true, true}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				k, err := Load(NumSlots, needs)
				if err != nil {
					b.Skip("needs root and bpf:", err)
				}
				if err := k.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
