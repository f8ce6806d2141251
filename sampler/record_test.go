// Needs: nothing; the records are made up.
package sampler

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/bpf"
)

// asBytes is how the programs write v.
func asBytes[T any](v *T) []byte {
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)))
}

// decoding is a Kernel that reads records and nothing else.
func decoding(stamped ...uint32) *Kernel {
	k := &Kernel{stacks: make(map[slotOf]sentStack), stamps: make(map[uint32][]Stamp)}
	for _, index := range stamped {
		k.stamps[index] = nil
	}
	return k
}

// Each kind of record, whole, is what was written, and cut short anywhere, an error.
func TestRecords(t *testing.T) {
	stack := []byte("the stack's bytes")
	head := bpf.RDXStackHead{Kind: bpf.RDXTrapKindTRAP_STACK, Index: 3, Slot: 2, Seq: 7}
	trap := bpf.RDXTrap{Kind: TrapReuse, Index: 3, From: 3, Slot: 2, Seq: 7, Clock: 1 << 60, StackBytes: int32(len(stack))}
	stamp := bpf.RDXStamp{Kind: bpf.RDXTrapKindSTAMP, Index: 9, Clock: 1234}
	k := decoding(9)
	var got Trap
	for _, raw := range [][]byte{append(asBytes(&head), stack...), asBytes(&stamp)} {
		if ok, err := k.decode(raw, &got); ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
	}
	if ok, err := k.decode(asBytes(&trap), &got); !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	if got.RDXTrap != trap || got.Stack == nil || !bytes.Equal(got.Stack.Stack.Data, stack) {
		t.Errorf("%+v, want %+v with %q", got, trap, stack)
	}
	if kept := k.stamps[9]; len(kept) != 1 || kept[0].RDXStamp != stamp {
		t.Errorf("stamps %+v, want %+v", kept, stamp)
	}
	// The same slot's, of a watchpoint that is gone.
	if _, err := k.decode(append(asBytes(&head), stack...), &got); err != nil {
		t.Fatal(err)
	}
	trap.Seq++
	if _, err := k.decode(asBytes(&trap), &got); err != nil || got.Stack != nil {
		t.Errorf("another watchpoint's stack: %v, %v", got.Stack, err)
	}
	for _, whole := range [][]byte{asBytes(&head), asBytes(&trap), asBytes(&stamp)} {
		for n := range whole {
			if ok, err := k.decode(slices.Clip(whole[:n]), &got); ok || err == nil || !strings.Contains(err.Error(), "read ring") {
				t.Errorf("%d of %d bytes: %v, %v", n, len(whole), ok, err)
			}
		}
	}
}

// Records of any bytes are read as what they hold, to their end and no further, or
// refused.
func FuzzRecords(f *testing.F) {
	head := bpf.RDXStackHead{Kind: bpf.RDXTrapKindTRAP_STACK, Index: 1, Slot: 1, Seq: 1}
	trap := bpf.RDXTrap{Kind: TrapReuse, Index: 1, From: 1, Slot: 1, Seq: 1, StackBytes: 8}
	stamp := bpf.RDXStamp{Kind: bpf.RDXTrapKindSTAMP, Index: 1}
	f.Add(append(asBytes(&head), 1, 2, 3), asBytes(&trap), asBytes(&stamp))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		k := decoding(0, 1, 2)
		var got Trap
		stacks := 0
		for _, raw := range [][]byte{a, b, c} {
			raw = slices.Clip(raw)
			ok, err := k.decode(raw, &got)
			if ok && (err != nil || !bytes.Equal(asBytes(&got.RDXTrap), raw[:unsafe.Sizeof(got.RDXTrap)])) {
				t.Errorf("%x is read as %+v, %v", raw, got.RDXTrap, err)
			}
			if ok && got.Stack != nil {
				stacks++
			}
			if !ok && err == nil && len(raw) < int(min(unsafe.Sizeof(head), unsafe.Sizeof(stamp))) {
				t.Errorf("%d bytes are taken for a record", len(raw))
			}
		}
		for _, sent := range k.stacks {
			stacks++
			if n := len(sent.stack.Stack.Data); n > max(len(a), len(b), len(c))-int(unsafe.Sizeof(head)) {
				t.Errorf("a stack of %d bytes", n)
			}
		}
		stamps := 0
		for _, kept := range k.stamps {
			stamps += len(kept)
		}
		if stacks+stamps > 3 {
			t.Errorf("%d stacks and %d stamps of three records", stacks, stamps)
		}
	})
}

// What a ring says of throttling, whatever it holds: no stop is longer than the
// longest, none is of a record that is not there, and records lost are no longer
// than those that are.
func FuzzThrottling(f *testing.F) {
	f.Add(uint64(1), []byte{0, 1, 0, 1, 2, 3, 1})
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		random := rand.New(rand.NewPCG(seed, 1))
		script = script[:min(len(script), 400)] // more is more of the same
		r := newFakeRing(4096, 64)
		th := throttling{ring: r.eventRing}
		var times, lost uint64
		check := func() {
			if err := th.read(); err != nil {
				t.Fatal(err)
			}
			n, ns := th.sum()
			if n != times+lost/2 || ns > n*longestStop {
				t.Fatalf("%d stops of %d ns, want %d", n, ns, times+lost/2)
			}
		}
		for i, op := range script {
			at := random.Uint64() >> (random.IntN(64))
			switch op % 4 {
			case 0:
				r.record(unix.PERF_RECORD_THROTTLE, at, 1, 2)
				times++
			case 1:
				r.record(unix.PERF_RECORD_UNTHROTTLE, at, 1, 2)
			case 2:
				n := at % 1000
				r.record(unix.PERF_RECORD_LOST, 1, n)
				lost += n
			case 3: // of another kind, of any length, and a record without its fields
				r.record(uint32(at%30)+20, make([]uint64, at%5)...)
				r.record(unix.PERF_RECORD_UNTHROTTLE)
			}
			if i%20 == 19 || op&0x80 != 0 {
				check()
			}
		}
		check()
		// And whatever bytes.
		put(r.data, r.word(pageDataHead).Load(), script)
		r.word(pageDataHead).Add(uint64(len(script)))
		_ = th.read()
		th.sum()
	})
}
