package sharing

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// memory of a made program, by word; a thread that is read ahead of has what it writes beside it.
type memory struct {
	words, under map[uint64]int64
}

func (m *memory) get(w uint64) int64 {
	if v, ok := m.words[w]; ok || m.under == nil {
		return v
	}
	return m.under[w]
}

// stepper is a thread of a made program: which of its operations comes next, and what it knows.
type stepper struct {
	ops   []operation
	at, n int
	inst  int32
	known int64
	table uint64
	seed  uint64
}

// operation takes a step, an instruction, and says whether it is over.
type operation func(s *stepper, m *memory, touch func(word uint64, store bool)) (over bool)

func (s *stepper) step(m *memory, touch func(word uint64, pc uint64, inst int32, store bool)) {
	at := s.at
	over := s.ops[at](s, m, func(word uint64, store bool) { touch(word, 0x1000+16*uint64(at), s.inst, store) })
	s.n++
	s.inst++
	if over {
		s.at, s.n = (at+1)%len(s.ops), 0
	}
}

// works touches so many words of the thread's own.
func works(n int) operation {
	return func(s *stepper, _ *memory, touch func(uint64, bool)) bool {
		s.seed = s.seed*6364136223846793005 + 1442695040888963407
		touch(s.table+s.seed>>40&1023, s.n%2 == 1)
		return s.n+1 >= n
	}
}

// counts increments so many words from one on, at most eight, by turns.
func counts(w uint64, n int) operation {
	return func(s *stepper, m *memory, touch func(uint64, bool)) bool {
		at := w + uint64(s.n/2%8)
		touch(at, s.n%2 == 1)
		return s.n+1 >= 2*n
	}
}

// touches words a line apart.
func eachLine(w uint64, n int, store bool) operation {
	return func(s *stepper, m *memory, touch func(uint64, bool)) bool {
		touch(w+8*uint64(s.n), store)
		return s.n+1 >= n
	}
}

func awaits(w uint64, good func(s *stepper, v int64) bool) operation {
	return func(s *stepper, m *memory, touch func(uint64, bool)) bool {
		if s.n%3 != 0 {
			return false // compares, and jumps
		}
		touch(w, false)
		v := m.get(w)
		return good(s, v)
	}
}

func puts(w uint64, value func(s *stepper, m *memory) int64) operation {
	return func(s *stepper, m *memory, touch func(uint64, bool)) bool {
		touch(w, true)
		m.words[w] = value(s, m)
		return true
	}
}

func locks(w uint64) operation {
	return func(s *stepper, m *memory, touch func(uint64, bool)) bool {
		if s.n%3 != 0 {
			return false
		}
		touch(w, false)
		if m.get(w) != 0 {
			return false
		}
		touch(w, true)
		m.words[w] = 1
		return true
	}
}

func takesTicket(w uint64) operation {
	return func(s *stepper, m *memory, touch func(uint64, bool)) bool {
		touch(w, false)
		touch(w, true)
		s.known = m.get(w)
		m.words[w] = s.known + 1
		return true
	}
}

const (
	lockWord  = 8 << 10
	guardWord = lockWord + 64
	headWord  = lockWord + 128
	tailWord  = lockWord + 192
	ringWord  = lockWord + 1024
	ringLines = 32
)

func unlocks(w uint64) operation {
	return puts(w, func(*stepper, *memory) int64 { return 0 })
}

// inTurn has the thread do its work when a word says that it is its turn, of so many threads.
func inTurn(mine, of int64, work ...operation) []operation {
	ops := []operation{awaits(lockWord, func(_ *stepper, v int64) bool { return v%of == mine })}
	ops = append(ops, work...)
	return append(ops, puts(lockWord, func(_ *stepper, m *memory) int64 { return m.get(lockWord) + 1 }))
}

func ringSlot(store bool, next func(s *stepper)) operation {
	return func(s *stepper, _ *memory, touch func(uint64, bool)) bool {
		touch(ringWord+8*uint64(s.known%ringLines), store)
		next(s)
		return true
	}
}

func twice(ops ...operation) [][]operation { return [][]operation{ops, ops} }

var madeTurns = []struct {
	name    string
	threads [][]operation
}{
	{"a lock and what it guards, in two lines", twice(works(80), locks(lockWord), counts(guardWord, 12), unlocks(lockWord))},
	{"a lock and what it guards, in one line", twice(works(120), locks(lockWord), counts(lockWord+1, 3), unlocks(lockWord))},
	{"a lock that is hardly free", twice(works(8), locks(lockWord), counts(guardWord, 20), unlocks(lockWord))},
	{"a lock that serves in order", twice(works(40), takesTicket(tailWord), awaits(headWord, func(s *stepper, v int64) bool { return v == s.known }),
		counts(guardWord, 6), puts(headWord, func(s *stepper, _ *memory) int64 { return s.known + 1 }))},
	{"turns", [][]operation{inTurn(0, 2, counts(guardWord, 8), works(40)), inTurn(1, 2, counts(guardWord, 8), works(40))}},
	{"long turns", [][]operation{inTurn(0, 2, counts(guardWord, 32), works(1000)), inTurn(1, 2, counts(guardWord, 32), works(1000))}},
	{"uneven turns", [][]operation{inTurn(0, 2, counts(guardWord, 8), works(20)), inTurn(1, 2, counts(guardWord, 8), works(200))}},
	{"three take turns", [][]operation{inTurn(0, 3, counts(guardWord, 8), works(40)), inTurn(1, 3, counts(guardWord, 8), works(40)), inTurn(2, 3, counts(guardWord, 8), works(40))}},
	{"one fills a buffer that the other reads", [][]operation{inTurn(0, 2, eachLine(ringWord, 64, true), works(20)), inTurn(1, 2, eachLine(ringWord, 64, false), works(20))}},
	{"a queue", [][]operation{
		{works(20), awaits(headWord, func(s *stepper, v int64) bool { return s.known-v < ringLines }), ringSlot(true, func(s *stepper) { s.known++ }), puts(tailWord, func(s *stepper, _ *memory) int64 { return s.known })},
		{works(20), awaits(tailWord, func(s *stepper, v int64) bool { return s.known < v }), ringSlot(false, func(s *stepper) { s.known++ }), puts(headWord, func(s *stepper, _ *memory) int64 { return s.known })},
	}},
	{"references counted", twice(takesTicket(lockWord), works(30))},
}

// slice is for how many steps a thread has a processor, on average, on a busy machine.
const slice = 4_000

// lead is how many steps the others go on in while a thread is held, before it is read ahead of.
const lead = 20_000

// runTurns has threads go on at one speed in random order, and returns the share of touches that find their line written by
// another, and windows from random moments on. On a busy machine each has a processor for four slices in ten.
func runTurns(r *rand.Rand, p *target.Process, programs [][]operation, each int, busy bool) (want float64, windows []*record.Stretch) {
	m := &memory{words: map[uint64]int64{}}
	threads := make([]stepper, len(programs))
	for i := range threads {
		threads[i] = stepper{ops: programs[i], table: 1 << 20 * uint64(i+1), seed: uint64(i)}
	}
	gone := map[uint64]*[8]int8{}
	touches, taken := 0, 0
	goOn := func(i int, count bool) {
		threads[i].step(m, func(word, _ uint64, _ int32, store bool) {
			l := gone[word/8]
			if l == nil {
				l = &[8]int8{}
				gone[word/8] = l
			}
			if count {
				touches++
				if l[i] == 2 {
					taken++
				}
			}
			l[i] = 1
			if store {
				for k := range l {
					if k != i && l[k] > 0 {
						l[k] = 2
					}
				}
			}
		})
	}
	var run []int // who has a processor
	left := 0
	advance := func(steps int, count bool) {
		for steps > 0 {
			for left == 0 || len(run) == 0 {
				run, left = run[:0], 1+r.IntN(2*slice)
				for i := range threads {
					if !busy || r.Float64() < 0.4 {
						run = append(run, i)
					}
				}
			}
			n := min(steps, left)
			steps, left = steps-n, left-n
			for range n * len(run) {
				goOn(run[r.IntN(len(run))], count)
			}
		}
	}
	share := 1.0
	if busy {
		share = 0.4
	}
	advance(500_000, true)
	want = float64(taken) / float64(touches)
	for range each * len(threads) {
		advance(500+r.IntN(2*slice), false)
		held := run[r.IntN(len(run))]
		for range lead {
			if k := r.IntN(len(threads)); k != held {
				goOn(k, false)
			}
		}
		s := threads[held]
		s.inst = 0
		over := &memory{words: map[uint64]int64{}, under: maps.Clone(m.words)}
		const length, first = 3000, 1000
		var read []ahead.Touch
		for len(read) < length {
			s.step(over, func(word, pc uint64, inst int32, store bool) {
				read = append(read, ahead.Touch{Block: word, PC: pc + uint64(held)<<20, Inst: inst, Store: store, Bytes: 0xff})
			})
		}
		var others []int
		for k := range threads {
			if k != held {
				others = append(others, k+1)
			}
		}
		h := Hold{Stretch: record.Stretch{Process: p, TID: held + 1, Hold: len(windows) + 1, Others: others, Share: share}, touches: read, classified: first}
		windows = append(windows, h.window())
	}
	return want, windows
}

// mostOff is by how much of what threads take that wait for each other may be told otherwise: the band has as much.
const mostOff = 0.5

// What threads take that wait for each other is told, and that they do.
func TestTurns(t *testing.T) {
	for _, c := range madeTurns {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, busy %v", c.name, busy), func(t *testing.T) { testTurns(t, c.threads, busy) })
		}
	}
}

func testTurns(t *testing.T, threads [][]operation, busy bool) {
	want, windows := runTurns(rand.New(rand.NewPCG(1, 2)), &target.Process{}, threads, 40, busy)
	j := New(windows)
	var all, turns, falsely, unknown, touches float64
	for _, w := range windows {
		touches += j.Pace(w.Hold)
	}
	for _, w := range windows {
		for _, x := range j.Of(w, nobody) {
			share := x.Share * j.Pace(w.Hold) / touches
			switch {
			case x.Unknown:
				unknown += share
				continue
			case !x.True:
				falsely += share
			}
			all += share
			if x.Turns {
				turns += share
			}
		}
	}
	held := 0.0
	for _, h := range j.threads {
		held += float64(h.turns)
	}
	t.Logf("%.4f, %d of %d windows wait, %.0f holds in turns; want %.4f: x %.2f", all, len(j.waits), len(windows), held, want, all/want)
	if math.Abs(all-want) > (mostOff+2/math.Sqrt(max(held, 1)))*want {
		t.Errorf("%.4f, want %.4f", all, want)
	}
	if turns < all || falsely > 0 || unknown > 0 && len(j.idle) == 0 {
		t.Errorf("%.4f of %.4f by turns, %.4f false, %.4f unknown", turns, all, falsely, unknown)
	}
}

// Threads that wait for a lock for a while, and then have it for a while, are told by their turns, not as if their work changed over time.
func TestWaitsAreNoPhases(t *testing.T) {
	p := &target.Process{}
	const holds, run = 240, 10
	var windows []*record.Stretch
	for hold := range holds {
		thread := hold % 2
		var touches []ahead.Touch
		inst := int32(0)
		touch := func(block uint64, store bool) {
			touches = append(touches, ahead.Touch{Block: block, PC: 0x1000 + block%64, Inst: inst, Store: store, Bytes: 0xff})
			inst++
		}
		for len(touches) < 3000 {
			touch(lockWord, false)
			if (hold/run+thread)%2 == 0 {
				touch(lockWord, true)
				for k := range uint64(12) {
					touch(guardWord+k%8, k%2 == 1)
				}
				touch(lockWord, true)
			}
		}
		h := Hold{Stretch: record.Stretch{Process: p, TID: thread + 1, Hold: hold + 1, Others: []int{2 - thread}, Share: 1}, touches: touches, classified: 1000}
		windows = append(windows, h.window())
	}
	if j := New(windows); len(j.phased) > 0 || len(j.idle) == 0 {
		t.Errorf("taken to change over time: %v, %d windows only wait", j.phased, len(j.idle))
	}
}
