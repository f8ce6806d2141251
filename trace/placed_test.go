// Needs: nothing.

package trace

import (
	"errors"
	oldrand "math/rand"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// placedTouch is one touch with all that is known of it.
type placedTouch struct {
	block     uint64
	place     model.Place
	continued bool
	mask      uint64
}

func placedOf(g model.Granularity, accesses []model.Access) (all []placedTouch) {
	for i := range accesses {
		a := &accesses[i]
		first, last := g.Span(a)
		for b := first; ; b++ {
			x := placedTouch{block: b, place: model.Place{PC: a.PC, Thread: a.Thread, Op: a.Op}, continued: b != first}
			if g.Bytes() == model.LineBytes {
				x.mask = model.LineMask(b, a.Addr, a.Size)
			}
			all = append(all, x)
			if b == last {
				break
			}
		}
	}
	return all
}

// placedReader lists the touches of batches.
type placedReader struct {
	places []model.Place
	all    []placedTouch
	ops    [model.Store + 1]uint64
	runs   [2]uint64 // touches that begin none
	bad    string
}

func (r *placedReader) read(b *model.PlacedTouches) {
	r.places = append(r.places, b.New...)
	k := 0
	for i, block := range b.Blocks {
		for n := range int(b.Runs[i]>>1) + 1 {
			p := b.PlaceNumbers[k]
			x := placedTouch{block: block, place: r.places[p&^model.Continued-1], continued: p&model.Continued != 0}
			if b.Masks != nil {
				x.mask = b.Masks[k]
			}
			store := uint8(0)
			if x.place.Op == model.Store {
				store = 1
			}
			if n == 0 && b.Runs[i]&1 != store {
				r.bad = "a run begins with another direction"
			} else if n > 0 {
				r.runs[store]++
			}
			r.all = append(r.all, x)
			k++
		}
	}
	if k != len(b.PlaceNumbers) || b.Masks != nil && len(b.Masks) != k {
		r.bad = "runs have not as many touches as there are places"
	}
	for i := range r.ops {
		r.ops[i] += b.Ops[i]
	}
	for i := range r.runs {
		r.runs[i] -= b.Repeats[i]
	}
}

func (r *placedReader) check(t *testing.T, want []placedTouch) {
	t.Helper()
	if !slices.Equal(r.all, want) {
		t.Errorf("%d touches, want %d, or they are others", len(r.all), len(want))
	}
	if r.bad != "" || r.runs != [2]uint64{} {
		t.Errorf("runs: %v %s", r.runs, r.bad)
	}
}

// FuzzPlacedTouches: touches with places are those of the accesses, of any stream.
func FuzzPlacedTouches(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		data := make([]byte, r.IntN(2000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data, uint8(r.Uint32()))
		f.Add(data, uint8(6))
	}
	f.Fuzz(func(t *testing.T, data []byte, shift uint8) {
		w := fuzzedStream(data)
		g, err := model.NewGranularity(1 << (shift % 13))
		if err != nil {
			t.Fatal(err)
		}
		var got placedReader
		placer := newPlacer(g)
		end := placer.start(got.read)
		want := readBeside(w, g, placer)
		end()
		got.check(t, want)
	})
}

func TestSourcePlacedTouches(t *testing.T) {
	as := someAccesses(oldrand.New(oldrand.NewSource(rand.Int64())), 100_000, 3)
	file := write(t, as, Header{})
	for _, size := range []int{8, 64} {
		g, err := model.NewGranularity(size)
		if err != nil {
			t.Fatal(err)
		}
		var got placedReader
		checkSource(t, file, g, (*Source).PlacedTouches, got.read)
		got.check(t, placedOf(g, as))
		if n := got.ops[model.Load] + got.ops[model.Store]; n != uint64(len(as)) {
			t.Errorf("%d accesses, want %d", n, len(as))
		}
	}
}

// readBeside has a sink take a stream, and tells what its accesses are.
func readBeside(w []uint64, g model.Granularity, s sink) (want []placedTouch) {
	accesses := newBatcher(func(a []model.Access) { want = append(want, placedOf(g, a)...) })
	for _, s := range []sink{s, accesses} {
		d := decoder{}
		_, _ = d.buffer(w, false, s) // both end at the same error
	}
	accesses.flush()
	return want
}

// checkSource has a recording read, and wants the reader's error, and one of a damaged one.
func checkSource[B any](t *testing.T, file []byte, g model.Granularity, touches func(*Source, model.Granularity, func(B) error) error, read func(B)) {
	t.Helper()
	if err := touches(NewSource(open(t, file)), g, func(b B) error { read(b); return nil }); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if err := touches(NewSource(open(t, file)), g, func(B) error { return stop }); err != stop {
		t.Errorf("error %v, want that of the reader", err)
	}
	bad := slices.Clone(file)
	bad[len(bad)/2] ^= 1
	if err := touches(NewSource(open(t, bad)), g, func(B) error { return nil }); err == nil {
		t.Error("a damaged recording reads like a whole one")
	}
}
