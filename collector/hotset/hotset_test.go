package hotset

import (
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/collector/target"
)

// A block is in a set by what others have touched at other times, the most touched ones first; whole pages come where all single
// blocks are in.
func TestLevels(t *testing.T) {
	p, other := &target.Process{PID: 1}, &target.Process{PID: 2}
	s := Sets{Block: 64}
	at := func(k int) time.Duration { return time.Duration(k) * time.Second }
	const page = 64 // blocks
	// One block in all of four parts, two in two, eight in one; of a page beside two, in two parts.
	s.Add(p, at(1), []uint64{0, 1, 2})
	s.Add(p, at(2), []uint64{0, 1, 2})
	s.Add(p, at(3), []uint64{0, 10 * page, 10*page + 1, 10*page + 2, 10*page + 3})
	s.Add(p, at(4), []uint64{0, 20 * page, 30 * page, 30*page + 1, 30*page + 2})
	l := s.Levels()
	for _, c := range []struct {
		process *target.Process
		block   uint64
		want    uint64
	}{
		{p, 0, 1},
		{p, 1, 11}, // without its own hold once, as all eleven are at least
		{p, 2, 11},
		{p, 10 * page, 0}, // only its own hold has touched it, and the page
		{p, 40 * page, 0},
		{p, 5, 90}, // with room for eleven blocks and one page: of its page another hold than its own has touched others
		{other, 0, 0},
	} {
		if got := l.Of(c.process, c.block); got != c.want {
			t.Errorf("block %d of %d: in a set of %d, want %d", c.block, c.process.PID, got, c.want)
		}
	}
}

// Holds soon one after the other count as one: they may be at the same work.
func TestParts(t *testing.T) {
	p := &target.Process{}
	for _, c := range []struct {
		later time.Duration
		want  uint64
	}{{apart - 1, 0}, {apart, 1}} {
		s := Sets{Block: 64}
		s.Add(p, time.Second, []uint64{7, 7})
		s.Add(p, time.Second+c.later, []uint64{7})
		if got := s.Levels().Of(p, 7); got != c.want {
			t.Errorf("%v later: in a set of %d, want %d", c.later, got, c.want)
		}
	}
}

// What there is no room to note is outside of all sets.
func TestRoom(t *testing.T) {
	p := &target.Process{}
	s := Sets{Block: 64}
	var blocks []uint64
	for b := range uint64(mostBlocks + 10) {
		blocks = append(blocks, b)
	}
	for k := range 3 {
		s.Add(p, time.Duration(k+1)*time.Second, blocks)
	}
	if n := s.blocks.n; n != mostBlocks {
		t.Errorf("%d blocks are noted", n)
	}
	l := s.Levels()
	if got := l.Of(p, 0); got != mostBlocks {
		t.Errorf("the first one is in a set of %d", got)
	}
	if got, pages := l.Of(p, mostBlocks+1), uint64(mostBlocks/64+1)*64; got < mostBlocks+pages {
		t.Errorf("one that was not noted is in a set of %d, want one with all %d blocks of the pages", got, pages)
	}
	var none Sets
	if got := none.Levels().Of(p, 1); got != 0 {
		t.Errorf("without a hold: in a set of %d", got)
	}
}
