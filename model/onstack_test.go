package model

import "testing"

// Each stack of a profile of several is estimated by itself, and stands for all
// accesses when it is taken alone.
func TestOnStack(t *testing.T) {
	p := testProfile()
	add := func(stack StackKind, kind Kind, time uint64, accesses float64) {
		r := rec(kind, time, accesses)
		r.Stack = stack
		p.Records = append(p.Records, r)
	}
	add(StackPrivate, Reuse, 10, 100)
	add(StackPrivate, Invalidated, 20, 100)
	add(StackPrivate, FalseSharing, 5, 70)
	add(StackShared, Reuse, 30, 300)
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	near(t, "misses of the invalidated", p.Records[1].Misses[0], 100, 1e-9)
	near(t, "reuses in the shared stack", p.Records[3].Reuses, 300, 1e-9)
	private := p.OnStack(StackPrivate)
	if len(private.Records) != 2 {
		t.Fatalf("%d records, want 2", len(private.Records))
	}
	h, err := private.Times()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "an access for", p.StackScale(StackPrivate), 2.5, 1e-12)
	near(t, "private accesses", h.Total(), 500, 1e-9)
	near(t, "invalidated", h.Invalidated, 250, 1e-9)
	h, err = p.OnStack(StackShared).Times()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "shared, invalidated", h.Invalidated, 0, 0)
	near(t, "shared accesses", h.Finite(), 500, 1e-9)
}
