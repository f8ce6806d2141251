// Needs: nothing; the CPUs and their registers are made up.
package collector

import (
	"errors"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// fakeRegister is one of a CPU that does as it is told.
type fakeRegister struct {
	cpu, slot     int
	writes        bool
	at            uint64 // 0: parked
	limit         int
	breaks        error // of the next move
	closed, moves int
}

func (f *fakeRegister) Move(addr uint64, traps int) error {
	if f.at != 0 {
		return errors.New("moved while it watches")
	}
	if f.breaks != nil {
		return f.breaks
	}
	f.at, f.limit = addr, traps
	f.moves++
	return nil
}

func (f *fakeRegister) Park() error  { f.at = 0; return nil }
func (f *fakeRegister) Close() error { f.closed++; return nil }

// fakeCPUs are those of a machine, of which some processes have the registers.
type fakeCPUs struct {
	online []int
	taken  map[int]int // registers of others, by CPU
	had    []*fakeRegister
}

func (c *fakeCPUs) open(cpu, slot int, writes bool) (register, error) {
	n := c.taken[cpu]
	for _, f := range c.had {
		if f.cpu == cpu && f.closed == 0 {
			n++
		}
	}
	if n >= cpuSlots {
		return nil, sampler.ErrNoSlot
	}
	f := &fakeRegister{cpu: cpu, slot: slot, writes: writes}
	c.had = append(c.had, f)
	return f, nil
}

// tend does a job.
func (c *fakeCPUs) tend(t *testing.T, r *registers) (more bool) {
	t.Helper()
	j := r.plan()
	j.run(func() ([]int, error) { return c.online, nil })
	if j.closed != nil {
		t.Fatal(j.closed)
	}
	return r.put(j)
}

// watching are the CPUs that watch addr.
func (c *fakeCPUs) watching(addr uint64) (cpus []int) {
	for _, f := range c.had {
		if f.at == addr {
			cpus = append(cpus, f.cpu)
		}
	}
	slices.Sort(cpus)
	return cpus
}

// Registers are taken once, whatever is watched, for what each stack needs, and
// given back once.
func TestRegistersKept(t *testing.T) {
	for stack, kinds := range map[string][cpuSlots]model.StackKind{
		PrivateStack: {model.StackPrivate, model.StackPrivate},
		SharedStack:  {model.StackShared, model.StackShared},
		BothStacks:   {model.StackPrivate, model.StackShared},
	} {
		c := &fakeCPUs{online: []int{0, 2, 3}}
		r := newRegisters(c.open, sampler.NumSlots, stack)
		if why := r.missing(0); why != model.RegistersAwaited {
			t.Errorf("before any was asked for: %q", why)
		}
		if c.tend(t, r) {
			t.Error("the first CPUs count as new")
		}
		for i := range 100 {
			slot := i % cpuSlots
			if why := r.missing(slot); why != "" {
				t.Fatalf("slot %d: %s", slot, why)
			}
			addr := uint64(8 * (i + 1))
			if err := r.move(slot, addr, 10); err != nil {
				t.Fatal(err)
			}
			if cpus := c.watching(addr); !slices.Equal(cpus, c.online) {
				t.Fatalf("watched on CPUs %v", cpus)
			}
			if err := r.park(slot); err != nil || len(c.watching(addr)) > 0 {
				t.Fatalf("parked: %v", err)
			}
			if i%10 == 0 {
				c.tend(t, r)
			}
		}
		if len(c.had) != cpuSlots*len(c.online) || r.taken != len(c.had) {
			t.Errorf("%d registers taken, %d by its own count", len(c.had), r.taken)
		}
		for _, f := range c.had {
			if f.writes != (kinds[f.slot] == model.StackPrivate) || r.stack(f.slot) != kinds[f.slot] {
				t.Errorf("--stack %s: slot %d watches for writes alone: %v, stack %v", stack, f.slot, f.writes, r.stack(f.slot))
			}
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
		for _, f := range c.had {
			if f.closed != 1 {
				t.Errorf("given back %d times", f.closed)
			}
		}
	}
}

// With one register of a CPU refused its slot watches nothing, and says why, until it
// can be had; the other slot is watched meanwhile.
func TestRegistersRefused(t *testing.T) {
	c := &fakeCPUs{online: []int{0, 1}, taken: map[int]int{1: 1}}
	r := newRegisters(c.open, sampler.NumSlots, BothStacks)
	for range 3 {
		c.tend(t, r)
		if a, b := r.missing(0), r.missing(1); a != "" || b != model.RegistersRefused || !errors.Is(r.refused, sampler.ErrNoSlot) {
			t.Fatalf("slots: %q, %q; %v", a, b, r.refused)
		}
	}
	c.taken = nil
	c.tend(t, r)
	if a, b := r.missing(0), r.missing(1); a != "" || b != "" || r.refused != nil || r.taken != 4 {
		t.Errorf("slots: %q, %q; %v; %d taken", a, b, r.refused, r.taken)
	}
}

// A move that fails on one CPU leaves none watching, and the register is renewed by the
// next job, not in the hold.
func TestRegisterMoveFails(t *testing.T) {
	c := &fakeCPUs{online: []int{0, 1}}
	r := newRegisters(c.open, sampler.NumSlots, PrivateStack)
	c.tend(t, r)
	broken := r.of[1][1].(*fakeRegister)
	broken.breaks = sampler.ErrSpent
	if err := r.move(1, 64, 10); !errors.Is(err, sampler.ErrSpent) {
		t.Fatalf("moved: %v", err)
	}
	if cpus := c.watching(64); len(cpus) > 0 || broken.closed > 0 || len(c.had) != 4 {
		t.Errorf("watched on CPUs %v; closed %d times in the hold; %d taken", cpus, broken.closed, len(c.had))
	}
	if why := r.missing(1); why != model.RegisterFailed {
		t.Errorf("after a move that failed: %q", why)
	}
	if r.missing(0) != "" {
		t.Error("the other slot fails with it")
	}
	c.tend(t, r)
	if why := r.missing(1); why != "" || broken.closed != 1 || r.failed != 1 {
		t.Errorf("renewed: %q, closed %d times, %d failed", why, broken.closed, r.failed)
	}
	if err := r.move(1, 64, 10); err != nil || len(c.watching(64)) != 2 {
		t.Errorf("moved: %v, on CPUs %v", err, c.watching(64))
	}
}

// A CPU that comes is watched, and what was watched without it until then is told; of one that goes
// the register is given back.
func TestCPUsComeAndGo(t *testing.T) {
	c := &fakeCPUs{online: []int{0, 1}}
	r := newRegisters(c.open, sampler.NumSlots, SharedStack)
	c.tend(t, r)
	c.online = []int{0}
	if c.tend(t, r) {
		t.Error("a CPU that goes counts as new")
	}
	if r.missing(0) != "" || len(r.of[0]) != 1 {
		t.Errorf("with CPU 1 gone: %q, %d registers", r.missing(0), len(r.of[0]))
	}
	c.online = []int{0, 1}
	if !c.tend(t, r) {
		t.Error("a CPU that comes is none that was not there before")
	}
	if r.missing(0) != "" || len(r.of[0]) != 2 {
		t.Errorf("with CPU 1 back: %q, %d registers", r.missing(0), len(r.of[0]))
	}
	closed := 0
	for _, f := range c.had {
		closed += f.closed
	}
	if closed != cpuSlots {
		t.Errorf("%d registers of the CPU that was gone given back, want %d", closed, cpuSlots)
	}
}
