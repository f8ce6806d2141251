package exact

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// bruteStack is the definition: a list of blocks, the last used first.
type bruteStack struct {
	stack []uint64
	last  map[uint64]uint64
	now   uint64
}

func (s *bruteStack) touch(b uint64) (dist, time uint64) {
	if s.last == nil {
		s.last = map[uint64]uint64{}
	}
	dist, time = model.Infinite, model.Infinite
	if i := slices.Index(s.stack, b); i >= 0 {
		dist, time = uint64(i), s.now-s.last[b]
		s.stack = slices.Delete(s.stack, i, i+1)
	}
	s.stack = slices.Insert(s.stack, 0, b)
	s.last[b] = s.now
	s.now++
	return dist, time
}

// testStreams are block streams of several shapes over about n blocks.
func testStreams(r *rand.Rand, length int, n uint64) map[string][]uint64 {
	s := map[string][]uint64{}
	add := func(name string, f func(i uint64) uint64) {
		b := make([]uint64, length)
		for i := range b {
			b[i] = f(uint64(i))
		}
		s[name] = b
	}
	add("loop", func(i uint64) uint64 { return i % n })
	add("random", func(uint64) uint64 { return r.Uint64N(n) })
	add("sawtooth", func(i uint64) uint64 { i %= 2 * n; return min(i, 2*n-1-i) })
	add("all new", func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 })
	add("one", func(uint64) uint64 { return 7 })
	add("skewed", func(uint64) uint64 { return uint64(float64(n) * r.Float64() * r.Float64() * r.Float64()) })
	add("phases", func(i uint64) uint64 { return i/1000*n/2 + r.Uint64N(n) })
	var run, left uint64
	add("runs", func(uint64) uint64 {
		if left == 0 {
			run, left = r.Uint64N(n), 1+r.Uint64N(1+r.Uint64N(300))
		}
		left--
		return run
	})
	add("ends of the address space", func(uint64) uint64 { return r.Uint64N(n) - n/2 })
	return s
}

func seededRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func TestOlkenAgainstBrute(t *testing.T) { eachOlken(t, testOlkenAgainstBrute) }

func testOlkenAgainstBrute(t *testing.T, newOlken func() *Olken) {
	r := seededRand(t)
	for name, blocks := range testStreams(r, 30000, 600) {
		o := newOlken()
		var brute bruteStack
		dist := make([]uint64, len(blocks))
		time := make([]uint64, len(blocks))
		for at := 0; at < len(blocks); {
			n := min(1+r.IntN(300), len(blocks)-at)
			if err := o.Touch(blocks[at:at+n], dist[at:at+n], time[at:at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if name == "all new" {
			blocks = blocks[:3000] // the brute force is quadratic here
		}
		for i, b := range blocks {
			d, tm := brute.touch(b)
			if dist[i] != d || time[i] != tm {
				t.Fatalf("%s: access %d (block %d): distance %d time %d, want %d %d", name, i, b, dist[i], time[i], d, tm)
			}
		}
		if o.Accesses() != uint64(len(dist)) {
			t.Errorf("%s: %d accesses, want %d", name, o.Accesses(), len(dist))
		}
	}
}

// Streams long enough for several compactions and sizes, whose answer is
// known without a walk.
func TestOlkenClosedForm(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	eachOlken(t, testOlkenClosedForm)
}

func testOlkenClosedForm(t *testing.T, newOlken func() *Olken) {
	const length = 1 << 20
	for _, m := range []uint64{1, 2, 511, 512, 513, 8191, 8192, 50000, 200000} {
		o := newOlken()
		blocks := make([]uint64, length)
		for i := range blocks {
			blocks[i] = uint64(i) % m * model.LineBytes
		}
		dist, time := make([]uint64, length), make([]uint64, length)
		if err := o.Touch(blocks, dist, time); err != nil {
			t.Fatal(err)
		}
		for i := range blocks {
			d, tm := m-1, m
			if uint64(i) < m {
				d, tm = model.Infinite, model.Infinite
			}
			if dist[i] != d || time[i] != tm {
				t.Fatalf("loop of %d: access %d: %d %d, want %d %d", m, i, dist[i], time[i], d, tm)
			}
		}
		if o.Blocks() != m {
			t.Errorf("loop of %d: %d blocks", m, o.Blocks())
		}
	}
}

func TestOlkenTimesOptional(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	r := seededRand(t)
	for name, blocks := range testStreams(r, 100000, 20000) {
		a, b := make([]uint64, len(blocks)), make([]uint64, len(blocks))
		if err := NewOlken().Touch(blocks, a, nil); err != nil {
			t.Fatal(err)
		}
		if err := NewOlken().Touch(blocks, b, make([]uint64, len(blocks))); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a, b) {
			t.Errorf("%s: distances differ when times are not asked for", name)
		}
	}
}

func TestOlkenTooManyBlocks(t *testing.T) {
	o := NewOlken()
	o.order.live, o.order.now = maxLive+1, o.order.end // as if that many had been touched
	o.compact()
	if err := o.Touch([]uint64{1}, make([]uint64, 1), nil); err != ErrTooManyBlocks {
		t.Fatalf("got %v", err)
	}
}

func TestOlkenMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	eachOlken(t, testOlkenMemory)
}

func testOlkenMemory(t *testing.T, newOlken func() *Olken) {
	const n = 3_000_000
	o := newOlken()
	blocks, dist := make([]uint64, 1000), make([]uint64, 1000)
	worst := 0.0
	for at := range n / len(blocks) {
		for i := range blocks {
			blocks[i] = uint64(at*len(blocks)+i) * 0xbf58476d1ce4e5b9
		}
		if err := o.Touch(blocks, dist, dist); err != nil {
			t.Fatal(err)
		}
		if o.Blocks() > 100_000 {
			worst = max(worst, float64(o.Bytes())/float64(o.Blocks()))
		}
	}
	t.Logf("worst %.1f bytes a block, %.1f at the end", worst, float64(o.Bytes())/n)
	if worst >= 24 {
		t.Errorf("%.1f bytes a distinct block, want under 24", worst)
	}
}

func TestTimeList(t *testing.T) {
	r := seededRand(t)
	var l timeList
	var want []uint64
	now := uint64(0)
	wraps := 0 // put from within a word
	for range 60 {
		// Keep a random part, append new times with large gaps, as a compaction does: by words of a bitmap
		// whose first bit is no time.
		var keep []uint64
		w := l.rewriter(len(want) + 64*30)
		for first := -1; first < len(want); first += 64 {
			var word uint64
			for i := max(first, 0); i < min(first+64, len(want)); i++ {
				if r.IntN(3) > 0 {
					word |= 1 << (i - first)
					keep = append(keep, want[i])
				}
			}
			w.keepWord(first, word)
		}
		for range r.IntN(30) {
			now += r.Uint64N(1 << r.UintN(33))
			if r.IntN(4) == 0 { // just before the high half goes up
				now = max(now, now>>32<<32+1<<32-r.Uint64N(64))
			}
			word := r.Uint64() & r.Uint64()
			w.putWord(now, word)
			for i := range uint64(64) {
				if word>>i&1 == 1 {
					keep = append(keep, now+i)
				}
			}
			if (now+63)>>32 > now>>32 {
				wraps++
			}
			now += 64
		}
		l, want = w.done(), keep
		if len(l.low) != len(want) {
			t.Fatalf("%d times, want %d", len(l.low), len(want))
		}
		for i, x := range want {
			if got := l.at(uint32(i)); got != x {
				t.Fatalf("at(%d) = %d, want %d", i, got, x)
			}
		}
	}
	if len(l.wraps) < 10 || wraps < 10 {
		t.Errorf("only %d wraps, %d within a word: the test does not test them", len(l.wraps), wraps)
	}
}

// Runs of touches of one block, as AddTouches has them, give the first touch
// of each what it has touch by touch.
func TestOlkenRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	eachOlken(t, testOlkenRuns)
}

func testOlkenRuns(t *testing.T, newOlken func() *Olken) {
	r := seededRand(t)
	for name, blocks := range testStreams(r, 200_000, 6000) {
		dist, time := make([]uint64, len(blocks)), make([]uint64, len(blocks))
		if err := newOlken().Touch(blocks, dist, time); err != nil {
			t.Fatal(err)
		}
		var heads, wantDist, wantTime []uint64
		var runs []uint8
		for i, b := range blocks {
			if n := len(heads); n > 0 && heads[n-1] == b && runs[n-1] < (maxRun-1)<<1 && r.IntN(50) > 0 {
				runs[n-1] += 2
				if dist[i] != 0 || time[i] != 1 {
					t.Fatalf("%s: touch %d: distance %d, time %d", name, i, dist[i], time[i])
				}
				continue
			}
			heads, runs = append(heads, b), append(runs, uint8(r.IntN(2)))
			wantDist, wantTime = append(wantDist, dist[i]), append(wantTime, time[i])
		}
		o := newOlken()
		for at := 0; at < len(heads); {
			n := min(1+r.IntN(300), len(heads)-at)
			if err := o.touch(heads[at:at+n], runs[at:at+n], dist[at:at+n], time[at:at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		for i := range heads {
			if dist[i] != wantDist[i] || time[i] != wantTime[i] {
				t.Fatalf("%s: run %d of %d: distance %d, time %d, want %d and %d", name, i, len(heads), dist[i], time[i], wantDist[i], wantTime[i])
			}
		}
		if o.Accesses() != uint64(len(blocks)) {
			t.Errorf("%s: %d touches, want %d", name, o.Accesses(), len(blocks))
		}
	}
}

func FuzzOlken(f *testing.F) {
	f.Add([]byte("abbca"), uint8(3))
	f.Add([]byte{0, 255, 0, 255}, uint8(1))
	f.Fuzz(func(t *testing.T, trace []byte, step uint8) {
		o := NewOlken()
		if step >= 100 {
			o.vectors = nil
		}
		var brute bruteStack
		for len(trace) > 0 {
			n := min(int(step)%100+1, len(trace))
			blocks := make([]uint64, n)
			for i := range blocks {
				blocks[i] = uint64(int8(trace[i])) // both ends of the address space
				if step%2 == 1 && trace[i] >= 128 {
					blocks[i] = uint64(trace[i]-128) + sameHash
				}
			}
			dist, time := make([]uint64, n), make([]uint64, n)
			if err := o.Touch(blocks, dist, time); err != nil {
				t.Fatal(err)
			}
			for i, b := range blocks {
				if d, tm := brute.touch(b); d != dist[i] || tm != time[i] {
					t.Fatalf("block %#x: %d %d, want %d %d", b, dist[i], time[i], d, tm)
				}
			}
			trace = trace[n:]
		}
	})
}

func benchmarkOlken(b *testing.B, blocks []uint64) {
	const chunk = 4096
	dist, time := make([]uint64, chunk), make([]uint64, chunk)
	o := NewOlken()
	touch := func(blocks []uint64) {
		if err := o.Touch(blocks, dist[:len(blocks)], time[:len(blocks)]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	done := 0
	for b.Loop() {
		at := done % len(blocks)
		n := min(chunk, len(blocks)-at)
		touch(blocks[at : at+n])
		done += n
	}
	b.ReportMetric(float64(done)/b.Elapsed().Seconds()/1e6, "Macc/s")
	b.ReportMetric(float64(o.Bytes())/float64(o.Blocks()), "B/block")
}

func BenchmarkOlkenUniform4M(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	blocks := make([]uint64, 1<<24)
	for i := range blocks {
		blocks[i] = r.Uint64N(4_000_000)
	}
	benchmarkOlken(b, blocks)
}

func TestOlkenLastAccesses(t *testing.T) { eachOlken(t, testOlkenLastAccesses) }

func testOlkenLastAccesses(t *testing.T, newOlken func() *Olken) {
	r := seededRand(t)
	for name, blocks := range testStreams(r, 200000, 9000) {
		o := newOlken()
		if err := o.Touch(blocks, make([]uint64, len(blocks)), make([]uint64, len(blocks))); err != nil {
			t.Fatal(err)
		}
		last := map[uint64]uint64{}
		for i, b := range blocks {
			last[b] = uint64(i)
		}
		var got []uint64
		o.LastAccesses(func(before uint64) { got = append(got, before) })
		want := slices.Sorted(maps.Values(last))
		if !slices.Equal(got, want) {
			t.Errorf("%s: last accesses differ (%d, want %d of them)", name, len(got), len(want))
		}
	}
}

// putAll is put of one after the other, over ends of words and runs.
func TestRecencyPutAll(t *testing.T) {
	r := seededRand(t)
	var one, all recency
	for _, step := range []uint32{1, 3, 64, 700} {
		one.reset(r.Uint32N(2000), 8)
		all.reset(one.live, 8)
		for one.end-one.now > 64*step {
			from := one.now - r.Uint32N(2)*one.now - r.Uint32N(2)<<31 // below 0, too
			offsets := make([]uint32, r.IntN(40))
			p := one.now - 1
			for i := range offsets {
				p += 1 + r.Uint32N(step)
				offsets[i] = p - from
				one.put(p)
			}
			all.putAll(offsets, from)
			if one.now != all.now || one.openLive != all.openLive {
				t.Fatalf("gap %d: now %d, open %d, want %d, %d", step, all.now, all.openLive, one.now, one.openLive)
			}
		}
		if !slices.Equal(one.bitmap, all.bitmap) || !slices.Equal(one.later, all.later) || !slices.Equal(one.closed.nodes, all.closed.nodes) {
			t.Errorf("gap %d: bits or their sums differ", step)
		}
	}
}

func TestRecencyNth(t *testing.T) {
	r := seededRand(t)
	var o recency
	o.reset(0, 2)
	var stack []uint32
	for range 300_000 {
		if o.full() {
			ranks := o.ranks()
			if n := ranks.of(0); n != 0 {
				t.Fatalf("no position is of rank %d", n)
			}
			for i := range stack {
				stack[i] = ranks.of(stack[i])
			}
			o.reset(o.live, 2)
		}
		if len(stack) < 3 || len(stack) < 1500 && r.IntN(20) == 0 {
			o.push()
		} else {
			k := uint32(r.IntN(len(stack)))
			p := o.nth(k)
			if n := o.above(p); n != k {
				t.Fatalf("%d above the one %d from the top", n, k)
			}
			if p != stack[k] {
				t.Fatalf("nth(%d) of %d is %d, want %d", k, len(stack), p, stack[k])
			}
			if got := o.move(p); got != k {
				t.Fatalf("move of the one %d from the top says %d", k, got)
			}
			stack = slices.Delete(stack, int(k), int(k)+1)
		}
		stack = slices.Insert(stack, 0, o.now-1)
	}
}

// generated is a stream with the distances of a law, for benchmarks.
func generated(b *testing.B, law *DistanceLaw, err error, n uint64) []uint64 {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	return mustGenerate(b, law, n, 1, 1<<24)
}

// Most accesses are to the last few lines, as in programs.
func BenchmarkOlkenLines110k(b *testing.B) {
	law, err := ZipfLaw(1.5, 110_000)
	benchmarkOlken(b, generated(b, law, err, 110_000))
}

func BenchmarkOlkenWords870k(b *testing.B) {
	law, err := ZipfLaw(1.2, 870_000)
	benchmarkOlken(b, generated(b, law, err, 870_000))
}
