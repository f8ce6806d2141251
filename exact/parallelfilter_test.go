package exact

import (
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// needAVX2 skips a test where there is none.
func needAVX2(t *testing.T) {
	t.Helper()
	if !haveAVX2 {
		t.Skip("the processor has no AVX2")
	}
}

// withoutFilter runs a test as on a processor without AVX2.
func withoutFilter(t *testing.T, test func(t *testing.T)) {
	defer func(filter bool) { haveAVX2 = filter }(haveAVX2)
	haveAVX2 = false
	t.Run("without a filter", test)
}

// plainOlken is an Olken without a vector stack.
func plainOlken() *Olken {
	o := NewOlken()
	o.vectors = nil
	return o
}

// eachOlken runs a test without and with a vector stack, of what the processor has.
func eachOlken(t *testing.T, test func(t *testing.T, newOlken func() *Olken)) {
	withoutFilter(t, func(t *testing.T) { test(t, NewOlken) })
	t.Run("with a filter", func(t *testing.T) {
		needAVX2(t)
		test(t, NewOlken)
	})
}

// Needs AVX2.
func TestFindFirst(t *testing.T) {
	needAVX2(t)
	r := seededRand(t)
	for range 2000 {
		buckets := make([]indexBucket, 6)
		draw := func() uint64 { return r.Uint64N(40) << (8 * r.UintN(8)) }
		for i := range buckets {
			p := &buckets[i]
			for k := range p.blocks { // those from n on, too, and where they could be taken for positions
				p.blocks[k], p.pos[k] = draw(), uint32(r.Uint64N(40))
			}
			p.n = r.Uint32N(bucketBlocks + 1)
		}
		blocks := make([]uint64, batch)
		for i := range blocks {
			blocks[i] = draw()
		}
		var missed [batch]missedBlock
		var slots, want [batch]*uint32
		var recent, wantRecent [numRecent]recentSlot
		n := 0
		for i := range blocks {
			if r.IntN(5) > 0 { // the others are recent
				missed[n] = missedBlock{i, r.Uint64(), &buckets[r.IntN(len(buckets))]}
				n++
			}
		}
		left := missed
		lefts := plainFindFirst(&left, n, blocks, &want, &wantRecent)
		got := findFirst(&missed, n, blocks, &slots, &recent)
		if got != lefts || !slices.Equal(missed[:lefts], left[:lefts]) {
			t.Fatalf("of %d, %d are left, %v; want %d, %v", n, got, missed[:got], lefts, left[:lefts])
		}
		if recent != wantRecent {
			t.Fatal("what is recent differs")
		}
		for i, slot := range want {
			if slot != nil && slots[i] != slot {
				t.Fatalf("block %d: slot %p, want %p", i, slots[i], slot)
			}
		}
	}
}

// The vector stack goes where it finds nothing, and comes back; results stay those
// without it. Needs AVX2.
func TestFilterComesAndGoes(t *testing.T) {
	needAVX2(t)
	r := seededRand(t)
	for _, untimed := range []bool{false, true} {
		with, without := NewOlken(), plainOlken()
		with.order.untimed, without.order.untimed = untimed, untimed
		phase := func(n int, draw func() uint64) {
			t.Helper()
			blocks, runs := make([]uint64, n), make([]uint8, n)
			for i := range blocks {
				blocks[i] = draw()
				if r.IntN(4) == 0 {
					runs[i] = uint8(r.IntN(2 * maxRun))
				}
			}
			dist, time, wantDist, wantTime := make([]uint64, n), make([]uint64, n), make([]uint64, n), make([]uint64, n)
			for at := 0; at < n; {
				end := min(at+1+r.IntN(1000), n)
				if err := with.touch(blocks[at:end], runs[at:end], dist[at:end], time[at:end]); err != nil {
					t.Fatal(err)
				}
				at = end
			}
			if err := without.touch(blocks, runs, wantDist, wantTime); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(dist, wantDist) || !untimed && !slices.Equal(time, wantTime) {
				t.Fatalf("untimed %v: distances or times differ", untimed)
			}
			if with.Blocks() != without.Blocks() || !untimed && with.Accesses() != without.Accesses() {
				t.Fatalf("untimed %v: %d blocks, %d touches; want %d, %d", untimed, with.Blocks(), with.Accesses(), without.Blocks(), without.Accesses())
			}
		}
		for range 3 {
			phase(2*trialTouches, func() uint64 { return r.Uint64N(50_000) })
			if with.vectors.off == 0 {
				t.Errorf("untimed %v: the filter is there where it is of no use", untimed)
			}
			phase(trialPause+trialTouches, func() uint64 { return r.Uint64N(1 + r.Uint64N(60)) })
			if with.vectors.off > 0 { // it may be empty, after a compaction
				t.Errorf("untimed %v: the filter is not back", untimed)
			}
		}
		if !untimed {
			var got, want []uint64
			with.LastAccesses(func(before uint64) { got = append(got, before) })
			without.LastAccesses(func(before uint64) { want = append(want, before) })
			if !slices.Equal(got, want) {
				t.Error("last accesses differ")
			}
		}
	}
}

// The filter before the merge goes and comes back, and is emptied when positions are
// compacted. What it did not find is nowhere in its counts, with bins of one small value
// or of many. Needs AVX2.
func TestParallelFilter(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	needAVX2(t)
	r := seededRand(t)
	var blocks []uint64
	for range 3 {
		for range 4 * trialTouches {
			blocks = append(blocks, r.Uint64N(50_000))
		}
		for range 2 * trialPause {
			blocks = append(blocks, r.Uint64N(1+r.Uint64N(60)), 7) // runs, too, of which a piece has any number
		}
	}
	accesses := asAccesses(r, blocks)
	for _, bins := range []*model.Bins{model.LogBins(10), model.LinearBins(1000, 100)} {
		want, err := New(model.LineBytes, bins)
		if err != nil {
			t.Fatal(err)
		}
		if err := want.Add(accesses); err != nil {
			t.Fatal(err)
		}
		for _, c := range []ParallelConfig{{Jobs: 1, PieceTouches: 300}, {Jobs: 2, PieceTouches: 1000}, {Jobs: 3, PieceTouches: 9999}} {
			p, err := NewParallel(model.LineBytes, bins, c)
			if err != nil {
				t.Fatal(err)
			}
			if p.relay == nil {
				t.Fatalf("%+v: no filter", c)
			}
			for rest := accesses; len(rest) > 0; {
				n := min(1+r.IntN(5000), len(rest))
				if err := p.Add(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := p.Finish(); err != nil {
				t.Fatal(err)
			}
			sameExact(t, "with a filter", want, p)
			if p.merge.order.baseTime == 0 || p.relay.pauses < 3 || p.relay.off > 0 {
				t.Errorf("%+v: positions were moved together last at touch %d, the filter went %d times: the test does not test it", c, p.merge.order.baseTime, p.relay.pauses)
			}
		}
	}
}

// Of the stages that are ready the one is taken for which most pieces wait, of equals the furthest.
func TestRelayNext(t *testing.T) {
	for _, c := range []struct {
		handed, begun int
		unready       int // -1: none
		done          [relayStages]int
		busy          int // -1: none
		want          int
	}{
		{0, 0, -1, [relayStages]int{}, -1, -1},
		{1, 0, 0, [relayStages]int{}, -1, stageFilter},
		{1, 1, 0, [relayStages]int{}, -1, -1},
		{1, 1, -1, [relayStages]int{}, -1, stageLocate},
		{6, 4, -1, [relayStages]int{1, 0, 0}, -1, stageLocate},
		{6, 4, 1, [relayStages]int{1, 0, 0}, -1, stageFilter},
		{6, 4, -1, [relayStages]int{1, 0, 0}, stageLocate, stageFilter},
		{6, 6, -1, [relayStages]int{6, 1, 0}, stageCount, stageTally},
		{4, 3, -1, [relayStages]int{2, 1, 0}, -1, stageTally},
		{4, 4, -1, [relayStages]int{4, 4, 4}, -1, -1},
	} {
		r := &relay{merge: &merger{}, handed: c.handed, begun: c.begun, done: c.done}
		r.merge.order.end = 1
		for k := range 6 {
			r.pieces, r.ready = append(r.pieces, &piece{}), append(r.ready, k != c.unready)
		}
		if c.busy >= 0 {
			r.busy[c.busy] = true
		}
		if got := r.next(); got != c.want {
			t.Errorf("%+v: stage %d", c, got)
		}
	}
}
