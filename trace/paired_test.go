// Needs: nothing.

package trace

import (
	"maps"
	oldrand "math/rand"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// pairedReader adds up what batches say.
type pairedReader struct {
	places []model.Place
	blocks []uint64      // by touch
	first  []model.Place // by touch that begins a run
	begin  []int         // and its index
	again  map[[2]model.Place]uint64
	last   map[int]model.Place // by index of a run's last touch
	ops    [model.Store + 1]uint64
	bad    string
}

func (r *pairedReader) read(b *model.PairedTouches) {
	if r.again == nil {
		r.again, r.last = map[[2]model.Place]uint64{}, map[int]model.Place{}
	}
	r.places = append(r.places, b.New...)
	if len(b.Runs) != len(b.Blocks) || len(b.Ends) != len(b.Blocks) {
		r.bad = "lists of different lengths"
		return
	}
	for i, block := range b.Blocks {
		if b.Runs[i]&1 != 0 {
			r.bad = "the lowest bit of a run is set"
		}
		r.begin, r.first = append(r.begin, len(r.blocks)), append(r.first, r.places[b.Ends[i].First-1])
		for range b.Runs[i]>>1 + 1 {
			r.blocks = append(r.blocks, block)
		}
		r.last[len(r.blocks)-1] = r.places[b.Ends[i].Last-1]
	}
	for _, a := range b.Again {
		r.again[[2]model.Place{r.places[a.From-1], r.places[a.To-1]}] += a.N
	}
	for i := range r.ops {
		r.ops[i] += b.Ops[i]
	}
}

func (r *pairedReader) check(t *testing.T, want []placedTouch) {
	t.Helper()
	if r.bad != "" {
		t.Fatal(r.bad)
	}
	if !slices.EqualFunc(want, r.blocks, func(x placedTouch, block uint64) bool { return x.block == block }) {
		t.Fatalf("%d touches, want %d, or they are of others", len(r.blocks), len(want))
	}
	again := map[[2]model.Place]uint64{}
	runs := map[int]bool{}
	for i, at := range r.begin {
		runs[at] = true
		if r.first[i] != want[at].place {
			t.Fatalf("run of touch %d begins by %v, want %v", at, r.first[i], want[at].place)
		}
	}
	for at, place := range r.last {
		if place != want[at].place {
			t.Fatalf("touch %d is a run's last, by %v, want %v", at, place, want[at].place)
		}
	}
	for i := range want {
		if !runs[i] {
			again[[2]model.Place{want[i-1].place, want[i].place}]++
		}
	}
	if len(again) == 0 {
		again = r.again // nil or empty
	}
	if !maps.Equal(r.again, again) {
		t.Errorf("pairs in runs: %v, want %v", r.again, again)
	}
}

// FuzzPairedTouches: touches with the places of their runs are those of the accesses, of any stream.
func FuzzPairedTouches(f *testing.F) {
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
		var got pairedReader
		pairer := newPairer(g)
		if len(data)%2 == 0 {
			pairer.most = 2 // as if there were many segments
		}
		end := pairer.start(got.read)
		want := readBeside(w, g, pairer)
		end()
		got.check(t, want)
	})
}

func TestSourcePairedTouches(t *testing.T) {
	as := someAccesses(oldrand.New(oldrand.NewSource(rand.Int64())), 300_000, 3)
	file := write(t, as, Header{})
	for _, size := range []int{8, 64, 4096} {
		g, err := model.NewGranularity(size)
		if err != nil {
			t.Fatal(err)
		}
		var got pairedReader
		checkSource(t, file, g, (*Source).PairedTouches, got.read)
		got.check(t, placedOf(g, as))
		if n := got.ops[model.Load] + got.ops[model.Store]; n != uint64(len(as)) {
			t.Errorf("%d accesses, want %d", n, len(as))
		}
	}
}

// What is in assembly makes the lists that are made in Go, of accesses over the end of all addresses, too.
func TestPairEntriesIsPlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const short, two, long = 5, 6, 8 // by their lowest bits of one word, of two and with a header
	makeSegments := func() []*segment {
		segments := make([]*segment, 12)
		load := func(base int32, offset uint64, size uint32) site {
			return site{pc: 100 + offset, offset: offset, base: base, size: size, flags: siteLoad}
		}
		segments[short] = newSegment([]site{load(0, 0, 8), load(0, 8, 200), load(absolute, 1<<20, 4)}, 1, true)
		segments[two] = newSegment([]site{load(0, 0, 1), load(1, 64, 16)}, 2, true)
		segments[long] = newSegment([]site{load(0, 0, 8), load(3, 0, 8), load(1, 0, 8), load(2, 24, 64)}, 4, false)
		return segments
	}
	address := func() uint64 {
		if rng.IntN(10) == 0 {
			return -uint64(rng.IntN(300)) // negative ones are those at the end
		}
		return uint64(rng.IntN(2000))
	}
	var w []uint64
	for range 2000 {
		switch rng.IntN(3) {
		case 0:
			w = append(w, address()<<shortAddress|short)
		case 1:
			w = append(w, address()<<shortAddress|two, address())
		default:
			w = append(w, 4<<32|long, address(), address(), address(), address())
		}
	}
	g, err := model.NewGranularity(64)
	if err != nil {
		t.Fatal(err)
	}
	var pairers [2]*pairer
	for k := range pairers {
		p, segments := newPairer(g), makeSegments()
		for _, id := range []int{short, two, long} {
			p.pair(segments[id], 0)
		}
		for i := 0; i < len(w); {
			before := i
			if k == 1 {
				i = pairEntries(p, segments, 0, w, i)
			}
			if i = p.plain(segments, 0, w, i, 1); i == before {
				t.Fatalf("stuck at word %d", i)
			}
		}
		p.collect()
		pairers[k] = p
	}
	a, b := pairers[0], pairers[1]
	if a.n < 1000 || !slices.Equal(a.blocks[:a.n], b.blocks[:b.n]) || !slices.Equal(a.runs[:a.n], b.runs[:b.n]) || !slices.Equal(a.ends[:a.n], b.ends[:b.n]) {
		t.Errorf("runs differ: %d and %d", a.n, b.n)
	}
	if !slices.Equal(a.again[:a.m], b.again[:b.m]) || a.ops != b.ops || a.before != b.before || a.began != b.began || a.run != b.run || a.block != b.block {
		t.Errorf("what follows differs: %d and %d", a.m, b.m)
	}
}
