package device

import (
	"errors"
	"fmt"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu/opencl"
)

// stack is the blocks touched before a segment, in the order of their numbers.
type stack struct {
	blocks uint64
	known  *opencl.Buffer // their numbers
	rank   *opencl.Buffer // how many were touched last before each
	last   *opencl.Buffer // touches up to and including the last of each
	next   [3]*opencl.Buffer
	// touched has, by rank, which of them the segment touches, and then how many below it.
	touched *opencl.Buffer
}

func (s *stack) init(ctx *opencl.Context) (err error) {
	for _, b := range []**opencl.Buffer{&s.known, &s.rank, &s.last, &s.next[0], &s.next[1], &s.next[2], &s.touched} {
		if *b, err = ctx.Alloc(8); err != nil {
			return err
		}
	}
	return nil
}

// update makes a segment part of the stack, of which so many blocks are new and so many were known.
func (s *stack) update(a *Analysis, n, fresh, touched uint32) error {
	m, all := uint32(s.blocks), s.blocks+uint64(fresh)
	if all > maxBlocks {
		return exact.ErrTooManyBlocks
	}
	if err := s.grow(a, all); err != nil {
		return err
	}
	key, order, newAt := a.key[a.sorted], a.order[a.sorted], a.primitives.value[0]
	if err := a.each("list_new", uint64(n), a.before, a.isNew, n, newAt); err != nil {
		return err
	}
	ranked, below := uint32(1), m-touched
	if a.config.PieceTouches > 0 {
		ranked, below = 0, a.piece.before
	}
	if m > 0 {
		if err := a.each("keep", uint64(m), m, fresh, newAt, s.touched, ranked, s.known, s.rank, s.last, s.next[0], s.next[1], s.next[2]); err != nil {
			return err
		}
	}
	if err := a.each("add_new", uint64(n), key, a.before, a.isNew, n, s.next[0]); err != nil {
		return err
	}
	lasts := a.again
	if a.config.PieceTouches > 0 {
		lasts = a.piece.lasts
	}
	if err := a.each("touch", uint64(n), key, order, n, lasts, ranked, a.offset, a.now, below, s.next[0], uint32(all), s.next[1], s.next[2]); err != nil {
		return err
	}
	s.known, s.next[0] = s.next[0], s.known
	s.rank, s.next[1] = s.next[1], s.rank
	s.last, s.next[2] = s.next[2], s.last
	s.blocks = all
	return nil
}

// grow makes room for so many blocks in what is next.
func (s *stack) grow(a *Analysis, blocks uint64) error {
	return s.fit(a, blocks, map[**opencl.Buffer]uint64{&s.next[0]: 8, &s.next[1]: 4, &s.next[2]: 8})
}

func (s *stack) clearTouched(a *Analysis) error {
	if err := s.fit(a, s.blocks+1, map[**opencl.Buffer]uint64{&s.touched: 4}); err != nil {
		return err
	}
	return a.fill(s.touched, s.blocks+1, 0)
}

// fit makes buffers hold so many elements of the given sizes, half as many again if there is room for them. What was
// in them is lost where they were too small.
func (s *stack) fit(a *Analysis, n uint64, sizes map[**opencl.Buffer]uint64) error {
	for _, room := range []uint64{n + n/2 + 1024, n} {
		err := s.refit(a, n, room, sizes)
		if err == nil {
			return nil
		}
		var refused *opencl.Error
		if !errors.As(err, &refused) || !refused.OutOfMemory() {
			return err
		}
	}
	return a.tooLarge(fmt.Sprintf("%d distinct blocks beside segments of %d touches", n, a.config.Segment), n*blockBytes+uint64(a.config.Segment)*runBytes)
}

func (s *stack) refit(a *Analysis, n, room uint64, sizes map[**opencl.Buffer]uint64) error {
	for b, size := range sizes {
		if (*b).Size >= n*size {
			continue
		}
		a.Free(*b)
		*b = &opencl.Buffer{}
		if a.Memory > 0 && a.Held()+room*size > a.Memory {
			return opencl.NoRoom
		}
		fresh, err := a.Alloc(room * size)
		if err != nil {
			return err
		}
		*b = fresh
	}
	return nil
}
