package main

import (
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func TestEvenly(t *testing.T) {
	var turns [][]model.Access
	for i, thread := range []int32{1, 2, 1, 3} {
		var b []model.Access
		for k := range []int{6, 3, 3, 4}[i] {
			b = append(b, model.Access{Thread: thread, Addr: uint64(10*i + k)})
		}
		turns = append(turns, b)
	}
	e := evenly{window: 12, next: func() []model.Access {
		if len(turns) == 0 {
			return nil
		}
		b := turns[0]
		turns = turns[1:]
		return b
	}}
	var threads []int32
	last := map[int32]uint64{}
	for b := e.batch(); len(b) > 0; b = e.batch() {
		for _, a := range b {
			if a.Addr < last[a.Thread] {
				t.Errorf("thread %d at %d after %d", a.Thread, a.Addr, last[a.Thread])
			}
			last[a.Thread] = a.Addr
			threads = append(threads, a.Thread)
		}
	}
	// Nine of one and three of two, then four of three alone.
	want := []int32{1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1, 3, 3, 3, 3}
	if len(threads) != len(want) {
		t.Fatalf("%d accesses, want %d", len(threads), len(want))
	}
	ones := 0
	for i := range want {
		if (threads[i] == 3) != (want[i] == 3) {
			t.Errorf("order %v", threads)
			break
		}
		if threads[i] == 1 {
			ones++
		}
		if threads[i] == 2 && (ones < 1 || ones > 8) {
			t.Errorf("not even: %v", threads)
		}
	}
	if ones != 9 {
		t.Errorf("%d of thread 1", ones)
	}
}
