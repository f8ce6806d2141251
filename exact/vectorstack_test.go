package exact

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// sameHash is added to a block for another one of the same hash in the top: the inverse of vectorFactor, so that
// the product goes up by one.
var sameHash = func() uint64 {
	x := uint64(vectorFactor)
	for range 6 { // of correct low bits there are twice as many each time
		x *= 2 - vectorFactor*x
	}
	return x
}()

// plainTouch is a touch of block b, which may be held, in a vectorStack that is ready for it.
func (t *vectorStack) plainTouch(b uint64, i int) (lane, younger int) {
	lane = -1
	for p, a := range t.ages {
		if a != freeAge && t.keys[p] == b {
			lane = p
		}
	}
	if lane < 0 {
		lane = int(t.order[t.held])
		t.hashes[t.misses] = hashBlock(b)
		t.blocks[t.misses], t.above[t.misses], t.lanes[t.misses] = b, uint8(t.held), uint8(lane)
		t.missed[t.misses] = uint32(i)
		t.misses++
		t.held++
		t.keys[lane] = b
	}
	for _, a := range t.ages {
		if a > t.ages[lane] {
			younger++
		}
	}
	t.byHash[b*vectorFactor>>vectorShift] = uint8(lane)
	t.ages[lane] = int8(t.age - 128)
	t.age++
	return lane, younger
}

func (t *vectorStack) ready() bool { return t.held < vectorBlocks && t.age < vectorAges }

// plainTouchVector is touchVector as it is defined.
func plainTouchVector(t *vectorStack, blocks []uint64, runs []uint8, dist, time []uint64, from int) int {
	for i, b := range blocks[from:] {
		i += from
		if !t.ready() {
			return i
		}
		lane, younger := t.plainTouch(b, i)
		dist[i], time[i] = uint64(younger), t.next-t.pos[lane]
		t.pos[lane] = t.next + uint64(runs[i]>>1)
		t.next = t.pos[lane] + 1
	}
	return len(blocks)
}

// plainCountVector is countVector as it is defined.
func plainCountVector(t *vectorStack, blocks []uint64, dist []uint8, from int) int {
	for i, b := range blocks[from:] {
		i += from
		if !t.ready() {
			return i
		}
		_, younger := t.plainTouch(b, t.misses)
		dist[i] = uint8(younger)
	}
	return len(blocks)
}

// plainSortVector is sortVector as it is defined.
func plainSortVector(t *vectorStack, keep int) {
	lanes := slices.Clone(t.order[:t.held])
	slices.SortFunc(lanes, func(a, b uint8) int { return int(t.ages[b]) - int(t.ages[a]) })
	copy(t.sorted[:], lanes)
	for i, p := range lanes {
		t.ages[p] = int8(max(keep-i, 0) - 128)
	}
}

// defined is t without what has no meaning.
func (t vectorStack) defined() vectorStack {
	clear(t.missed[t.misses:])
	for p, a := range t.ages {
		if a == freeAge {
			t.keys[p] = 0
		}
	}
	return t
}

// checkByHash checks byHash, and that what is not held is as a free lane is.
func (t *vectorStack) checkByHash(tt *testing.T) {
	tt.Helper()
	var want [vectorHashes]uint8
	for i := range want {
		want[i] = vectorBlocks
	}
	held := 0
	for p, a := range t.ages {
		if a == freeAge {
			if t.pos[p] != 0 {
				tt.Fatalf("free lane %d has position %d", p, t.pos[p])
			}
			continue
		}
		held++
		h := t.keys[p] * vectorFactor >> vectorShift
		if q := want[h]; q == vectorBlocks || t.ages[q] < a {
			want[h] = uint8(p)
		}
	}
	if held != t.held || want != t.byHash {
		tt.Fatalf("%d are held, by their hashes at %v; want %d, %v", held, t.byHash, t.held, want)
	}
}

// The assembly does what is defined, touch by touch, while the top is filled, sorted and
// emptied. Needs AVX2.
func TestVectorStack(t *testing.T) {
	needAVX2(t)
	r := seededRand(t)
	var index blockIndex
	index.init()
	sorts, hashes, aged := 0, 0, 0
	for round := range 300 {
		timed := round%2 == 0
		a := vectorStack{index: &index}
		a.clear()
		a.next = r.Uint64N(1 << 32)
		high := r.Uint64() << 40 // blocks that differ in either half
		draw := func() uint64 {
			b := (r.Uint64N(1+r.Uint64N(100)) - 3) * (high | 1)
			if r.IntN(50) == 0 {
				b += sameHash << r.UintN(10)
			}
			return b
		}
		if round%5 == 0 { // nothing but those
			draw = func() uint64 { return r.Uint64N(20) }
		}
		for a.evictions < len(a.evicted)-vectorBlocks && a.misses < vectorChunk/2 {
			n := r.IntN(vectorChunk - a.misses)
			blocks, runs := make([]uint64, n), make([]uint8, n)
			for i := range blocks {
				blocks[i], runs[i] = draw(), uint8(r.Uint32())&(2*maxRun-1)
			}
			from := r.IntN(n + 1)
			dist, time, top := make([]uint64, n), make([]uint64, n), make([]uint8, n)
			wantDist, wantTime, wantTop := make([]uint64, n), make([]uint64, n), make([]uint8, n)
			b := a
			var done, want int
			if timed {
				done, want = touchVector(&a, blocks, runs, dist, time, from), plainTouchVector(&b, blocks, runs, wantDist, wantTime, from)
			} else {
				done, want = countVector(&a, blocks, top, from), plainCountVector(&b, blocks, wantTop, from)
			}
			if done != want || !slices.Equal(dist, wantDist) || !slices.Equal(time, wantTime) || !slices.Equal(top, wantTop) {
				t.Fatalf("timed %v: %d from %d to %d, distances %v %v, times %v; want to %d, %v %v, %v", timed, n, from, done, dist, top, time, want, wantDist, wantTop, wantTime)
			}
			if a.defined() != b.defined() {
				t.Fatalf("timed %v: after %d touches %+v, want %+v", timed, done-from, a, b)
			}
			a.checkByHash(t)
			held := map[uint64]bool{}
			for _, p := range a.order[:a.held] {
				held[a.keys[p]*vectorFactor>>vectorShift] = true
			}
			if len(held) < a.held {
				hashes++
			}
			if done == n {
				if r.IntN(2) == 0 {
					continue
				}
			} else if a.age == vectorAges {
				aged++
			}
			keep := r.IntN(a.held + 1)
			b, c := a, a
			sortVector(&b, keep)
			plainSortVector(&c, keep)
			clear(b.sorted[b.held:]) // has no meaning
			clear(c.sorted[c.held:])
			if b != c {
				t.Fatalf("sorted, %d stay: %+v, want %+v", keep, b, c)
			}
			sorts++
			a.evict(keep)
			if a.held != keep {
				t.Fatalf("%d are held, want %d", a.held, keep)
			}
			a.checkByHash(t)
		}
	}
	if sorts < 300 || hashes < 100 || aged < 20 {
		t.Errorf("%d sorts, %d times two blocks of one hash, %d times no more ages: the test does not test them", sorts, hashes, aged)
	}
}

// Needs AVX2.
func TestAddOctaves(t *testing.T) {
	needAVX2(t)
	r := seededRand(t)
	for range 100 {
		var dist [vectorChunk]uint8
		var got, want [vectorOctaves]uint64
		kinds := 1 + r.IntN(vectorBlocks)
		for i := range dist {
			dist[i] = uint8(r.IntN(kinds))
			want[bits.Len8(dist[i])]++
		}
		got[0] = vectorChunk
		addOctaves(&dist, &got)
		if got != want {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// plainFindNear is findNear as it is defined.
func plainFindNear(x *blockIndex, blocks, hashes []uint64, slots *[batch]*uint32, left *[batch]uint32) (n int) {
	for i, b := range blocks {
		p := x.shards[hashes[i]>>(64-shardShift)].first(hashes[i])
		if k := p.match(b); k < p.n {
			slots[i] = &p.pos[k]
			continue
		}
		left[n] = uint32(i)
		n++
	}
	return n
}

// Needs AVX2.
func TestFindNear(t *testing.T) {
	needAVX2(t)
	r := seededRand(t)
	var x blockIndex
	x.init()
	near, further := 0, 0
	for range 300 {
		kinds := 1 + r.Uint64N(20_000)
		blocks, hashes := make([]uint64, r.IntN(batch+1)), make([]uint64, batch)
		for i := range blocks {
			blocks[i] = r.Uint64N(kinds)
			hashes[i] = hashBlock(blocks[i])
			if r.IntN(4) == 0 { // another one of its bucket, or what lies behind
				blocks[i] = x.shards[hashes[i]>>(64-shardShift)].first(hashes[i]).blocks[r.IntN(bucketBlocks)]
			}
			if r.IntN(2) == 0 {
				*x.slot(blocks[i]) = r.Uint32()
			}
		}
		for i := range x.shards { // where positions could be taken for blocks
			for k := range x.shards[i].buckets {
				p := &x.shards[i].buckets[k]
				p.pos[0], p.pos[1] = uint32(p.blocks[0]), 0
			}
		}
		var slots, want [batch]*uint32
		var left, wantLeft [batch]uint32
		n, wantN := findNear(&x, blocks, hashes[:len(blocks)], &slots, &left), plainFindNear(&x, blocks, hashes, &want, &wantLeft)
		if n != wantN || !slices.Equal(left[:n], wantLeft[:n]) {
			t.Fatalf("%d are left, %v; want %d, %v", n, left[:n], wantN, wantLeft[:wantN])
		}
		for i := range blocks {
			if want[i] != nil && slots[i] != want[i] {
				t.Fatalf("block %d: slot %p, want %p", i, slots[i], want[i])
			}
		}
		near, further = near+len(blocks)-n, further+n
	}
	if near < 1000 || further < 1000 {
		t.Errorf("%d are near, %d are not: the test does not test it", near, further)
	}
}

// Blocks of one hash are told apart, and shards that grow while blocks are held move
// none of them. Needs AVX2.
func TestOlkenSameHashes(t *testing.T) {
	needAVX2(t)
	r := seededRand(t)
	if b := uint64(77); b*vectorFactor>>vectorShift != (b+sameHash)*vectorFactor>>vectorShift {
		t.Fatal("the blocks have different hashes: the test does not test it")
	}
	hashesOf := func(kinds uint64) func() uint64 {
		return func() uint64 { return r.Uint64N(1+r.Uint64N(kinds)) + sameHash*r.Uint64N(2)<<r.UintN(3) }
	}
	growing := uint64(0) // new blocks between those held
	for name, draw := range map[string]func() uint64{
		"few": hashesOf(10), "more": hashesOf(100), "many": hashesOf(10_000),
		"growing": func() uint64 { growing += r.Uint64N(2); return growing - r.Uint64N(min(growing+1, 60)) },
	} {
		compareOlkens(t, name, r, 100_000, draw)
	}
}

// compareOlkens compares an Olken with a top and one without on n drawn blocks.
func compareOlkens(t *testing.T, name string, r *rand.Rand, n int, draw func() uint64) {
	t.Helper()
	for _, untimed := range []bool{false, true} {
		with, without := NewOlken(), plainOlken()
		with.order.untimed, without.order.untimed = untimed, untimed
		bins := NewLog2Stack()
		var wantBins [65]float64
		for left := n; left > 0; {
			blocks := make([]uint64, min(1+r.IntN(3000), left))
			for i := range blocks {
				blocks[i] = draw()
			}
			dist, time, wantDist, wantTime := make([]uint64, len(blocks)), make([]uint64, len(blocks)), make([]uint64, len(blocks)), make([]uint64, len(blocks))
			if err := with.Touch(blocks, dist, time); err != nil {
				t.Fatal(err)
			}
			if err := without.Touch(blocks, wantDist, wantTime); err != nil {
				t.Fatal(err)
			}
			if err := bins.Touch(blocks); err != nil {
				t.Fatal(err)
			}
			for _, d := range wantDist {
				wantBins[bits.Len64(d)]++
			}
			if !slices.Equal(dist, wantDist) || !untimed && !slices.Equal(time, wantTime) {
				t.Fatalf("%s, untimed %v: distances or times differ", name, untimed)
			}
			left -= len(blocks)
		}
		h := bins.Distances()
		if !slices.Equal(h.W[:64], wantBins[:64]) || h.Cold != wantBins[64] {
			t.Fatalf("%s: bins of an octave are %v and %v, want %v", name, h.W, h.Cold, wantBins)
		}
	}
}
