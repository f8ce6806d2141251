//go:build amd64

// Needs: root, bpf, watchpoint.
package sampler

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
)

// watching is an event that stands in for PEBS where there is none: it samples
// every so many-th access to one word, after the access, with its address.
func watching(word *uint64) Precise {
	attr := PreciseAttr(Event{Type: unix.PERF_TYPE_BREAKPOINT, Config1: uint64(uintptr(unsafe.Pointer(word))), Config2: WordSize})
	attr.Bp_type = breakpointRW
	return Precise{Label: "a watched word", Attr: attr, Align: 1, After: true}
}

// The program finds the address of a sample, its call stack and the clock, and
// the probe judges them, on events whose every sample is known.
func TestAccessSourceOnWatchedWords(t *testing.T) {
	needs.Watchpoints(t)
	k, err := Load(NumSlots, Needs{Access: 2})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	from, to := make([]uint64, countBlock), make([]uint64, countBlock)
	const period = 50
	s := AccessSourceOf("watched words", Accesses, 2, period, []Precise{watching(&from[5]), watching(&to[7])})
	p, err := s.probe(k, from, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", p)
	// Each word is touched once every block. A write may read first.
	want := validationRounds * countLoops / countBlock / period
	if p.Loads < want-1 || p.Loads > want+1 || p.Stores < want-1 || p.Stores > want+1 || p.Right != p.Memory || p.Ticks != uint64(p.Memory) {
		t.Errorf("want %d loads and as many stores, all of them right", want)
	}
	if err := p.Usable("watched words"); err != nil {
		t.Error(err)
	}
	if stats, err := k.Stats(); err != nil || stats.Ticks != 0 {
		t.Errorf("the probe's ticks are still counted: %+v, %v", stats, err)
	}
}

// A timer has no address: its ticks are counted as of no access, and none is a
// candidate.
func TestAccessSourceWithoutAddresses(t *testing.T) {
	k, err := Load(NumSlots, Needs{Access: 2})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	timer := Precise{Label: "timer", Align: 1, Attr: PreciseAttr(Event{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK})}
	s := AccessSourceOf("timer", Accesses, 1, 100_000, []Precise{timer})
	p, err := s.Probe(k)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", p)
	if p.Ticks == 0 || p.Memory != 0 {
		t.Errorf("%d of %d ticks of a timer have an address", p.Memory, p.Ticks)
	}
	if err := p.Usable("timer"); err == nil {
		t.Error("a source without addresses is usable")
	}
}
