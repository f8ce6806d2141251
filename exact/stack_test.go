package exact

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// brutePrivate really moves entries: each thread's stack is a list, the top
// first, in which hole stands for a block another thread has written.
type brutePrivate struct {
	stacks map[int32][]int64
	had    map[int32]map[int64]bool // blocks the thread has ever touched
	last   map[int32]map[int64]uint64
	clock  map[int32]uint64
}

const hole = int64(-1)

func newBrutePrivate() *brutePrivate {
	return &brutePrivate{map[int32][]int64{}, map[int32]map[int64]bool{}, map[int32]map[int64]uint64{}, map[int32]uint64{}}
}

func (p *brutePrivate) touch(thread int32, block int64, write bool) (kind model.Kind, dist, time uint64) {
	if p.had[thread] == nil {
		p.had[thread], p.last[thread] = map[int64]bool{}, map[int64]uint64{}
	}
	s := p.stacks[thread]
	kind, dist, time = model.Cold, model.Infinite, model.Infinite
	top := slices.Index(s, hole)
	if i := slices.Index(s, block); i >= 0 {
		kind, dist, time = model.Reuse, uint64(i), p.clock[thread]-p.last[thread][block]
		if top >= 0 && top < i {
			s[i] = hole
			s = slices.Delete(s, top, top+1)
		} else {
			s = slices.Delete(s, i, i+1)
		}
	} else {
		if p.had[thread][block] {
			kind = model.Invalidated
		}
		if top >= 0 {
			s = slices.Delete(s, top, top+1)
		}
	}
	p.stacks[thread] = slices.Insert(s, 0, block)
	p.had[thread][block] = true
	p.last[thread][block] = p.clock[thread]
	p.clock[thread]++
	if write {
		for other, s := range p.stacks {
			if i := slices.Index(s, block); other != thread && i >= 0 {
				s[i] = hole
			}
		}
	}
	return kind, dist, time
}

// list writes the stack from the top, with - for a hole.
func (p *brutePrivate) list(thread int32) string {
	b := ""
	for _, x := range p.stacks[thread] {
		if x == hole {
			b += "-"
		} else {
			b += string(rune(x))
		}
	}
	return b
}

// threadAccesses is a random stream with sharing: blocks are drawn from a
// skewed law, part of them from the thread's own range.
func threadAccesses(r *rand.Rand, n, threads int, blocks float64, writes float64) []model.Access {
	a := make([]model.Access, n)
	for i := range a {
		thread := r.IntN(threads)
		b := uint64(blocks * r.Float64() * r.Float64())
		if r.IntN(2) == 0 {
			b += uint64(blocks) * uint64(thread+1)
		}
		op := model.Load
		if r.Float64() < writes {
			op = model.Store
		}
		a[i] = model.Access{Addr: b * model.WordBytes, Size: 8, Thread: int32(thread * 7), Op: op, PC: b % 13}
	}
	return a
}

func TestPrivateStacksAgainstBrute(t *testing.T) {
	r := seededRand(t)
	for _, c := range []struct {
		n, threads     int
		blocks, writes float64
	}{{20_000, 1, 200, 0.3}, {20_000, 2, 100, 0.5}, {40_000, 4, 200, 0.1}, {40_000, 8, 40, 0.3}, {20_000, 3, 100, 0}, {20_000, 3, 100, 1},
		{150_000, 2, 20, 0.4}} { // several compactions
		s, err := NewPrivateStacks(model.WordBytes)
		if err != nil {
			t.Fatal(err)
		}
		brute := newBrutePrivate()
		var kinds [model.NumKinds]int
		err = s.Add(threadAccesses(r, c.n, c.threads, c.blocks, c.writes), func(x *Touch) {
			kind, dist, time := brute.touch(x.Thread, int64(x.Block), x.Op == model.Store)
			kinds[kind]++
			if x.Kind != kind || x.Dist != dist || x.Time != time {
				t.Fatalf("%+v: %v distance %d time %d, want %v %d %d", c, x.Kind, x.Dist, x.Time, kind, dist, time)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if c.threads > 1 && c.writes > 0 && kinds[model.Invalidated] == 0 {
			t.Errorf("%+v: nothing was invalidated", c)
		}
		if s.Threads() != c.threads {
			t.Errorf("%d threads, want %d", s.Threads(), c.threads)
		}
	}
}

func TestSharedStackAgainstBrute(t *testing.T) {
	r := seededRand(t)
	accesses := randomAccesses(r, 3000, 30_000)
	s, err := NewSharedStack(model.LineBytes)
	if err != nil {
		t.Fatal(err)
	}
	var brute bruteStack
	blocks, _ := touchesOf(accesses, model.LineBytes)
	i := 0
	for _, part := range [][]model.Access{accesses[:1000], accesses[1000:1001], accesses[1001:]} {
		err := s.Add(part, func(x *Touch) {
			d, tm := brute.touch(blocks[i])
			if x.Block != blocks[i] || x.Dist != d || x.Time != tm || (x.Kind == model.Cold) != (d == model.Infinite) {
				t.Fatalf("touch %d: %+v, want block %d distance %d time %d", i, *x, blocks[i], d, tm)
			}
			i++
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if i != len(blocks) {
		t.Errorf("%d touches, want %d", i, len(blocks))
	}
}

// With one thread, or threads that only read, private stacks are Olken's.
func TestPrivateStacksOneThread(t *testing.T) {
	r := seededRand(t)
	for name, blocks := range testStreams(r, 100_000, 5000) {
		dist := distances(t, blocks)
		s, err := NewPrivateStacks(1)
		if err != nil {
			t.Fatal(err)
		}
		accesses := make([]model.Access, 2*len(blocks))
		for i, b := range blocks {
			accesses[2*i] = model.Access{Addr: b, Thread: 1}
			accesses[2*i+1] = model.Access{Addr: b, Thread: 2}
		}
		i := 0
		err = s.Add(accesses, func(x *Touch) {
			if x.Dist != dist[i/2] {
				t.Fatalf("%s: touch %d of thread %d: distance %d, want %d", name, i/2, x.Thread, x.Dist, dist[i/2])
			}
			i++
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

type step struct {
	thread int32
	block  byte
	op     model.Op
}

// figure1 is a reference stream that fits all the paper says of its Figure 1
// (Schuff et al., section 2): three blocks, the fifth reference a write of A
// by thread 2 and the rest reads by thread 1; B is reused with only C between,
// A with two blocks between of which one comes after the write.
var figure1 = []step{{1, 'A', model.Load}, {1, 'B', model.Load}, {1, 'C', model.Load}, {1, 'B', model.Load}, {2, 'A', model.Store}, {1, 'C', model.Load}, {1, 'A', model.Load}}

func runSteps(t *testing.T, s Stacks, steps []step) []Touch {
	t.Helper()
	var got []Touch
	for _, x := range steps {
		if err := s.Add([]model.Access{{Addr: uint64(x.block), Thread: x.thread, Op: x.op}}, func(t *Touch) { got = append(got, *t) }); err != nil {
			t.Fatal(err)
		}
	}
	return got
}

func TestPaperSchuffFigure1(t *testing.T) {
	check := func(what string, x Touch, kind model.Kind, dist uint64) {
		t.Helper()
		if x.Kind != kind || x.Dist != dist {
			t.Errorf("%s: %v at distance %d, want %v at %d", what, x.Kind, x.Dist, kind, dist)
		}
	}
	private, err := NewPrivateStacks(1)
	if err != nil {
		t.Fatal(err)
	}
	got := runSteps(t, private, figure1)
	check("private, reuse of B", got[3], model.Reuse, 1)
	check("private, A by thread 2", got[4], model.Cold, model.Infinite)
	check("private, A after the write", got[6], model.Invalidated, model.Infinite)

	got = runSteps(t, mustShared(t), figure1)
	check("shared, reuse of B", got[3], model.Reuse, 1)
	check("shared, A by thread 2", got[4], model.Reuse, 2)
	check("shared, A after the write", got[6], model.Reuse, 1)

	// Independent stacks: thread 1 alone.
	alone := slices.DeleteFunc(slices.Clone(figure1), func(x step) bool { return x.thread == 2 })
	got = runSteps(t, mustShared(t), alone)
	check("independent, reuse of B", got[3], model.Reuse, 1)
	check("independent, reuse of A", got[5], model.Reuse, 2)
}

// The cases of Schuff et al., Figure 2, and the fourth of section 3.2: where a
// reference r lies relative to the topmost hole and to the block a that is
// being tracked. Stacks are written from the top, - is a hole.
func TestPaperSchuffFigure2(t *testing.T) {
	for _, c := range []struct {
		name          string
		before        string // stack of thread 1 before the reference
		reference     byte
		after         string
		depth         int // of a, before and after
		distReference uint64
	}{
		{"case 1: above the hole", "br-ca", 'r', "rb-ca", 4, 1},
		{"case 2: between hole and a", "b-rca", 'r', "rb-ca", 4, 2},
		{"case 3: below a", "b-car", 'r', "rbca-", 3, 4},
		{"case 4: new", "b-ca", 'r', "rbca", 3, model.Infinite},
	} {
		brute := newBrutePrivate()
		s, err := NewPrivateStacks(1)
		if err != nil {
			t.Fatal(err)
		}
		do := func(x step) Touch {
			brute.touch(x.thread, int64(x.block), x.op == model.Store)
			return runSteps(t, s, []step{x})[0]
		}
		// Blocks come in from the bottom up; x is then written by thread 2.
		for i := len(c.before) - 1; i >= 0; i-- {
			block := c.before[i]
			if block == '-' {
				block = 'x'
			}
			do(step{1, block, model.Load})
		}
		do(step{2, 'x', model.Store})
		if got := brute.list(1); got != c.before {
			t.Fatalf("%s: the stack is %s, want %s", c.name, got, c.before)
		}
		if got := do(step{1, c.reference, model.Load}); got.Dist != c.distReference {
			t.Errorf("%s: r has distance %d, want %d", c.name, got.Dist, c.distReference)
		}
		if got := brute.list(1); got != c.after {
			t.Errorf("%s: the stack becomes %s, want %s", c.name, got, c.after)
		}
		if got := do(step{1, 'a', model.Load}); got.Dist != uint64(c.depth) {
			t.Errorf("%s: a has distance %d, want %d", c.name, got.Dist, c.depth)
		}
	}
}

func mustShared(t *testing.T) *SharedStack {
	t.Helper()
	s, err := NewSharedStack(1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func FuzzPrivateStacks(f *testing.F) {
	f.Add([]byte("abcAbc"), uint8(2))
	f.Add([]byte{0, 64, 1, 65, 128, 0}, uint8(3))
	f.Fuzz(func(t *testing.T, ops []byte, threads uint8) {
		s, err := NewPrivateStacks(1)
		if err != nil {
			t.Fatal(err)
		}
		brute := newBrutePrivate()
		for i, op := range ops {
			a := model.Access{Addr: uint64(op % 16), Thread: int32(i*i) % int32(threads%5+1), Op: model.Load}
			if op >= 128 {
				a.Op = model.Store
			}
			kind, dist, time := brute.touch(a.Thread, int64(a.Addr), a.Op == model.Store)
			if err := s.Add([]model.Access{a}, func(x *Touch) {
				if x.Kind != kind || x.Dist != dist || x.Time != time {
					t.Fatalf("access %d: %v %d %d, want %v %d %d", i, x.Kind, x.Dist, x.Time, kind, dist, time)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
