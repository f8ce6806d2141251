package main

import (
	"math/rand/v2"
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

// Mixed, each of the orders in which two accesses of each of two threads can come is as likely,
// and each thread keeps its own.
func TestMixed(t *testing.T) {
	seen := map[string]int{}
	const rounds = 6000
	e := evenly{window: 4, mixed: rand.New(rand.NewPCG(1, 2))}
	for range rounds {
		given := []model.Access{{Thread: 1, Addr: 1}, {Thread: 1, Addr: 2}, {Thread: 2, Addr: 3}, {Thread: 2, Addr: 4}}
		e.rest, e.next = given, func() []model.Access { return nil }
		order := ""
		last := map[int32]uint64{}
		for _, a := range e.batch() {
			if a.Addr < last[a.Thread] {
				t.Fatalf("thread %d at %d after %d", a.Thread, a.Addr, last[a.Thread])
			}
			last[a.Thread] = a.Addr
			order += string(rune('0' + a.Thread))
		}
		seen[order]++
	}
	if len(seen) != 6 {
		t.Errorf("%d orders, want 6: %v", len(seen), seen)
	}
	for order, n := range seen {
		if n < rounds/6-150 || n > rounds/6+150 { // five standard deviations
			t.Errorf("order %s %d times of %d", order, n, rounds)
		}
	}
}
