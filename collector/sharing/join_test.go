package sharing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// A made program's thread appends the touches of its next round; a round has instructions, of which inst is the first.
type made func(r *rand.Rand, inst int32, to []ahead.Touch) (touches []ahead.Touch, instructions int32)

func word(n uint64, inst int32, store bool) ahead.Touch {
	return ahead.Touch{Block: n, PC: 0x1000 + n%8*2, Inst: inst, Store: store, Bytes: 0xff}
}

// own touches n words of the thread's own, an instruction each.
func privately(thread uint64, r *rand.Rand, n int, inst int32, to []ahead.Touch) []ahead.Touch {
	for i := range n {
		to = append(to, word(1<<20*(thread+1)+r.Uint64N(64), inst+int32(i), i%2 == 0))
	}
	return to
}

// run is what a thread touches in so many touches.
func (m made) run(r *rand.Rand, touches int) []ahead.Touch {
	var out []ahead.Touch
	for inst := int32(0); len(out) < touches; {
		var n int32
		out, n = m(r, inst, out)
		inst += n
	}
	return out
}

// truth is the share of touches that find their line written by another thread since the own last touch of it, of threads
// that go on at one instruction a nanosecond from random moments of it.
func truth(r *rand.Rand, threads [][]ahead.Touch) float64 {
	type event struct {
		at     float64
		thread int
		touch  *ahead.Touch
	}
	var all []event
	end := math.Inf(1)
	for i, touches := range threads {
		begin := r.Float64() * 1000
		for k := range touches {
			all = append(all, event{begin + float64(touches[k].Inst), i, &touches[k]})
		}
		end = min(end, begin+float64(touches[len(touches)-1].Inst))
	}
	slices.SortStableFunc(all, func(a, b event) int { return int(math.Copysign(1, a.at-b.at)) })
	type last struct {
		gone [8]bool
		by   [8]bool
	}
	lines := map[uint64]*last{}
	n, gone := 0, 0
	for _, e := range all {
		if e.at > end {
			break
		}
		l := lines[e.touch.Block/8]
		if l == nil {
			l = &last{}
			lines[e.touch.Block/8] = l
		}
		if n++; l.gone[e.thread] && l.by[e.thread] {
			gone++
		}
		l.gone[e.thread], l.by[e.thread] = false, true
		if e.touch.Store {
			for k := range l.gone {
				l.gone[k] = l.gone[k] || k != e.thread
			}
		}
	}
	return float64(gone) / float64(n)
}

// windowsOf are so many of each thread's run, from random touches on.
func windowsOf(r *rand.Rand, p *target.Process, threads [][]ahead.Touch, each int) []*record.Stretch {
	const length, first = 3000, 1000
	var out []*record.Stretch
	for i, touches := range threads {
		var others []int
		for k := range threads {
			if k != i {
				others = append(others, k+1)
			}
		}
		for range each {
			from := r.IntN(len(touches) - length)
			part := slices.Clone(touches[from : from+length])
			for k := range part {
				part[k].Inst -= touches[from].Inst
			}
			h := Hold{Stretch: record.Stretch{Process: p, TID: i + 1, Hold: len(out) + 1, Others: others, Share: 1}, touches: part, classified: first}
			out = append(out, h.window())
		}
	}
	return out
}

const shared = 8 << 10 // word number of a line

var madePrograms = []struct {
	name    string
	threads []made
	falsely bool
}{
	{"neighbours in a bare loop", []made{increments(0, 0), increments(1, 0)}, true},
	{"a counter in a bare loop", []made{increments(0, 0), increments(0, 0)}, false},
	{"neighbours with work between", []made{increments(0, 40), increments(1, 40)}, true},
	{"one fast, one slow", []made{increments(0, 10), increments(4, 300)}, true},
	{"halves of a word", []made{part(0x0f, increments(0, 40)), part(0xf0, increments(1, 40))}, true},
	{"a half of a word and all of it", []made{part(0x0f, increments(0, 40)), part(0xff, increments(1, 40))}, false},
	{"four threads", []made{increments(0, 60), increments(1, 60), increments(2, 60), increments(3, 60)}, true},
	{"read by one, seldom written by another", []made{reads(20), increments(0, 700)}, false},
	{"counters at random", []made{atRandom(0), atRandom(1)}, true},
	{"nothing shared", []made{alone, alone}, false},
}

func increments(at uint64, work int) made {
	thread := at
	return func(r *rand.Rand, inst int32, to []ahead.Touch) ([]ahead.Touch, int32) {
		to = append(privately(thread, r, work, inst, to), word(shared+at, inst+int32(work), false), word(shared+at, inst+int32(work), true))
		return to, int32(work) + 3
	}
}

// part has only some bytes of one shared word touched.
func part(bytes uint8, m made) made {
	return func(r *rand.Rand, inst int32, to []ahead.Touch) ([]ahead.Touch, int32) {
		from := len(to)
		to, n := m(r, inst, to)
		for i := range to[from:] {
			if to[from+i].Block/8 == shared/8 {
				to[from+i].Block, to[from+i].Bytes = shared, bytes
			}
		}
		return to, n
	}
}

func reads(work int) made {
	return func(r *rand.Rand, inst int32, to []ahead.Touch) ([]ahead.Touch, int32) {
		to = append(privately(7, r, work, inst, to), word(shared, inst+int32(work), false))
		return to, int32(work) + 1
	}
}

func atRandom(at uint64) made {
	return func(r *rand.Rand, inst int32, to []ahead.Touch) ([]ahead.Touch, int32) {
		to = privately(at, r, 20, inst, to)
		if r.IntN(4) == 0 {
			to = append(to, word(shared+8*r.Uint64N(4)+at, inst+20, r.IntN(2) == 0))
		}
		return to, 21
	}
}

func alone(r *rand.Rand, inst int32, to []ahead.Touch) ([]ahead.Touch, int32) {
	return append(privately(r.Uint64N(2)+20, r, 20, inst, to)[:len(to)], word(shared+900, inst, false)), 20
}

// never leaves what comes back later to watchpoints.
func nobody(*target.Process, uint64) Beyond { return Beyond{} }

// What others take is within a tenth of the share in the threads' own interleaving, and kinds are told apart.
func TestTakenAsMade(t *testing.T) {
	for _, c := range madePrograms {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			p := &target.Process{}
			want, n := 0.0, 5
			var threads [][]ahead.Touch
			for range n {
				threads = threads[:0]
				for _, m := range c.threads {
					threads = append(threads, m.run(r, 40_000))
				}
				want += truth(r, threads) / float64(n)
			}
			windows := windowsOf(r, p, threads, 60)
			j := New(windows)
			if j.phased[p] {
				t.Error("taken to change over time")
			}
			true_, false_, unknown := 0.0, 0.0, 0.0
			for _, w := range windows {
				for _, x := range j.Of(w, nobody) {
					switch share := x.Share / float64(len(windows)); {
					case x.Unknown:
						unknown += share
					case x.True:
						true_ += share
					default:
						false_ += share
					}
				}
			}
			t.Logf("true %.4f, false %.4f, want %.4f", true_, false_, want)
			if got := true_ + false_; math.Abs(got-want) > 0.1*want {
				t.Errorf("%.4f, want %.4f", got, want)
			}
			if c.falsely && true_ > 0 || !c.falsely && false_ > 0 || unknown > 0 {
				t.Errorf("true %v, false %v, unknown %v", true_, false_, unknown)
			}
		})
	}
}

// A line that comes back sooner than it can go to another thread and return is hardly ever gone, whatever others write; of one that comes
// back late the time that it takes makes no difference.
func TestTakenNoSoonerThanLinesMove(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		work        int
		least, most float64 // of what is taken
	}{{0, 0, 0.1}, {40, 0.05, 0.4}, {1000, 0.99, 1}} {
		p := &target.Process{}
		windows := windowsOf(r, p, [][]ahead.Touch{increments(0, c.work).run(r, 40_000), increments(1, c.work).run(r, 40_000)}, 60)
		j := New(windows)
		j.SetPaces(func(int) float64 { return 1 })
		share, least := 0.0, 0.0
		for _, w := range windows {
			for _, x := range j.Of(w, nobody) {
				share += x.Share
				least += x.Least
			}
		}
		if got := least / share; !(got >= c.least && got <= c.most) {
			t.Errorf("work %d: %.3f of it, want %v to %v", c.work, got, c.least, c.most)
		}
	}
}

// Work that moves from thread to thread, as goroutines do, is shared with nobody; what two such count beside each other is
// falsely shared, though each thread has written both.
func TestTakenInPhases(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := &target.Process{}
	work := [2][]ahead.Touch{increments(0, 40).run(r, 40_000), increments(1, 40).run(r, 40_000)}
	want := truth(r, [][]ahead.Touch{work[0], work[1]})
	const length, first, holds, phase = 3000, 1000, 240, 20
	var windows []*record.Stretch
	for hold := range holds {
		thread := hold % 2
		touches := work[(thread+hold/phase)%2]
		from := r.IntN(len(touches) - length)
		part := slices.Clone(touches[from : from+length])
		for k := range part {
			part[k].Inst -= touches[from].Inst
		}
		h := Hold{Stretch: record.Stretch{Process: p, TID: thread + 1, Hold: hold + 1, Others: []int{2 - thread}, Share: 1}, touches: part, classified: first}
		windows = append(windows, h.window())
	}
	j := New(windows)
	truly, falsely := 0.0, 0.0
	for _, w := range windows {
		for _, x := range j.Of(w, nobody) {
			if x.True {
				truly += x.Share / holds
			} else {
				falsely += x.Share / holds
			}
		}
	}
	t.Logf("true %.4f, false %.4f, want false %.4f", truly, falsely, want)
	// At a phase's end windows of the other phase count, for what both touch.
	if math.Abs(truly+falsely-want) > 0.1*want || truly > 0.2*want {
		t.Errorf("true %.4f, false %.4f, want false %.4f", truly, falsely, want)
	}
}
