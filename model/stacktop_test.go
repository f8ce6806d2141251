package model

import (
	"hash/crc32"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// sameTag is added to a block, by exclusive or, for another one of the same tag: the
// polynomial of the checksum that tags are made of, the lowest bit first.
const sameTag = 0x105ec76f1

// tagOf is a block's tag.
func tagOf(b uint64) uint32 {
	// The instruction has neither the inversion before nor that after.
	return ^crc32.Update(^uint32(0), crc32.MakeTable(crc32.Castagnoli), []byte{
		byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24), byte(b >> 32), byte(b >> 40), byte(b >> 48), byte(b >> 56)}) | 1
}

// find is where block b is, its tag if it isn't there, and whether the top is ready for a touch.
func (t *stackTop) plainFind(b uint64) (place int, tag uint32, ready bool) {
	tag = tagOf(b)
	if !haveAVX512 { // then only 16 bits are compared, and several blocks may have one tag
		tag &= 0xffff
		for place := range t.tags {
			if t.tags[place] == tag && t.keys[place] == b {
				return place, tag, t.age < topAges
			}
		}
		return -1, tag, t.age < topAges && t.held < topBlocks
	}
	place = slices.Index(t.tags[:], tag)
	if place < 0 {
		return place, tag, t.age < topAges && t.held < topBlocks
	}
	return place, tag, t.age < topAges && t.keys[place] == b
}

// plainTouch is a touch of block b, which was found at a place or wasn't.
func (t *stackTop) plainTouch(b uint64, place int, tag uint32) (at, younger int) {
	if place < 0 {
		place = int(t.order[t.held])
		t.hashes[t.misses] = hashBlock(b)
		t.blocks[t.misses], t.above[t.misses], t.places[t.misses] = b, uint8(t.held), uint8(place)
		t.misses++
		t.held++
		t.tags[place], t.keys[place] = tag, b
	} else {
		for _, a := range t.ages {
			if a > t.ages[place] {
				younger++
			}
		}
	}
	t.ages[place] = uint8(t.age)
	t.age++
	return place, younger
}

// plainTouchTop is touchTop as it is defined.
func plainTouchTop(t *stackTop, blocks []uint64, runs []uint8, dist, time []uint64, from int) int {
	for i, b := range blocks[from:] {
		i += from
		place, tag, ready := t.plainFind(b)
		if !ready {
			return i
		}
		if place < 0 {
			time[i] = t.next
			t.missed[t.misses] = uint32(i)
			place, _ = t.plainTouch(b, place, tag)
		} else {
			_, younger := t.plainTouch(b, place, tag)
			dist[i], time[i] = uint64(younger), t.next-t.pos[place]
		}
		t.pos[place] = t.next + uint64(runs[i]>>1)
		t.next = t.pos[place] + 1
	}
	return len(blocks)
}

// plainCountTop is countTop as it is defined.
func plainCountTop(t *stackTop, blocks []uint64, found *[topBlocks]uint64, from int) int {
	for i, b := range blocks[from:] {
		place, tag, ready := t.plainFind(b)
		if !ready {
			return from + i
		}
		if place < 0 {
			t.missed[t.misses] = uint32(t.misses)
			t.plainTouch(b, place, tag)
		} else {
			_, younger := t.plainTouch(b, place, tag)
			found[younger]++
		}
	}
	return len(blocks)
}

// plainSortTop is sortTop as it is defined.
func plainSortTop(t *stackTop, keep int) {
	places := slices.Clone(t.order[:t.held])
	slices.SortFunc(places, func(a, b uint8) int { return int(t.ages[b]) - int(t.ages[a]) })
	copy(t.sorted[:], places)
	for i, p := range places {
		t.ages[p] = uint8(max(keep-i, 0))
	}
}

// The assembly does what is defined, touch by touch, while the top is filled, sorted and
// emptied. Needs AVX2 or AVX-512.
func TestStackTop(t *testing.T) { eachFront(t, testStackTop) }

func testStackTop(t *testing.T) {
	r := seededRand(t)
	var index blockIndex
	index.init()
	sorts, tags, aged := 0, 0, 0
	for round := range 300 {
		timed := round%2 == 0
		a := stackTop{index: &index}
		a.clear()
		a.next = r.Uint64N(1 << 32)
		high := r.Uint64() << 40 // blocks that differ in either half
		draw := func() uint64 {
			b := (r.Uint64N(1+r.Uint64N(100)) - 3) * (high | 1)
			if r.IntN(50) == 0 {
				b ^= sameTag << r.UintN(20)
			}
			return b
		}
		if round%5 == 0 { // nothing but those
			draw = func() uint64 { return r.Uint64N(20) }
		}
		for a.gives < len(a.given)-topBlocks && a.misses < topChunk/2 {
			n := r.IntN(topChunk - a.misses)
			blocks, runs := make([]uint64, n), make([]uint8, n)
			for i := range blocks {
				blocks[i], runs[i] = draw(), uint8(r.Uint32())&(2*maxRun-1)
			}
			from := r.IntN(n + 1)
			dist, time := make([]uint64, n), make([]uint64, n)
			wantDist, wantTime := make([]uint64, n), make([]uint64, n)
			var found, wantFound [topBlocks]uint64
			b := a
			var done, want int
			if timed {
				done, want = touchTop(&a, blocks, runs, dist, time, from), plainTouchTop(&b, blocks, runs, wantDist, wantTime, from)
			} else {
				done, want = countTop(&a, blocks, &found, from), plainCountTop(&b, blocks, &wantFound, from)
			}
			if done != want || !slices.Equal(dist, wantDist) || !slices.Equal(time, wantTime) || found != wantFound {
				t.Fatalf("timed %v: %d from %d to %d, distances %v, times %v, found %v; want to %d, %v, %v, %v", timed, n, from, done, dist, time, found, want, wantDist, wantTime, wantFound)
			}
			if a != b {
				t.Fatalf("timed %v: after %d touches %+v, want %+v", timed, done-from, a, b)
			}
			held := slices.DeleteFunc(slices.Sorted(slices.Values(a.tags[:])), func(tag uint32) bool { return tag == 0 })
			if len(slices.Compact(held)) < a.held {
				tags++
			}
			if done == n {
				if r.IntN(2) == 0 {
					continue
				}
			} else if a.age == topAges {
				aged++
			} else if a.held < topBlocks {
				tags++
			}
			keep := r.IntN(a.held + 1)
			sortTop(&a, keep)
			plainSortTop(&b, keep)
			if a != b {
				t.Fatalf("sorted, %d stay: %+v, want %+v", keep, a, b)
			}
			sorts++
			if a.held > 0 {
				for _, p := range a.sorted[keep:a.held] {
					a.tags[p] = 0
				}
				copy(a.order[:a.held], a.sorted[:a.held])
				a.held, a.age = keep, keep+1
			}
		}
	}
	if sorts < 300 || tags < 100 || aged < 20 {
		t.Errorf("%d sorts, %d times two blocks of one tag, %d times no more ages: the test does not test them", sorts, tags, aged)
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

// Needs AVX2 or AVX-512.
func TestFindNear(t *testing.T) { eachFront(t, testFindNear) }

func testFindNear(t *testing.T) {
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

// Blocks of one tag are told apart, and shards that grow while blocks are held move
// none of them. Needs AVX2 or AVX-512.
func TestOlkenSameTags(t *testing.T) { eachFront(t, testOlkenSameTags) }

func testOlkenSameTags(t *testing.T) {
	r := seededRand(t)
	if tagOf(77) != tagOf(77^sameTag) {
		t.Fatal("the blocks have different tags: the test does not test it")
	}
	tagsOf := func(kinds uint64) func() uint64 {
		return func() uint64 { return r.Uint64N(1+r.Uint64N(kinds)) ^ sameTag*r.Uint64N(2)<<r.UintN(3) }
	}
	growing := uint64(0) // new blocks between those held
	for name, draw := range map[string]func() uint64{
		"few": tagsOf(10), "more": tagsOf(100), "many": tagsOf(10_000),
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
