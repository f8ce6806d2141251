package trace

import (
	"container/heap"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"
)

// With Options.Ordered nothing is read before the program's end, so that the reading
// takes no processor from its threads. Each has written the time after every 64
// accesses, and before and after its system calls. Between two times its accesses
// are taken to be spread evenly, and all threads' are read in the order that this
// gives. Where one thread waits for another by system calls that is the order in which
// they happened; else it is wrong by the accesses between two times at most.

// orderedBytes is less than the buffers of one thread, so that none waits for
// a buffer that is not given back.
const orderedBytes = (orderedBuffers - 16) * threadBytes

// keep keeps a buffer until the program has ended.
func (e *engine) keep(p *process, w []uint64) error {
	if e.raw += uint64(len(w)) * 8; e.raw > e.room {
		return fmt.Errorf("engine: accesses whose order is to be kept take more than the %d MiB that they may: give the program less to do", e.room>>20)
	}
	p.kept = append(p.kept, w)
	return nil
}

// inOrder reads what was kept.
func (e *engine) inOrder() error {
	var reads sync.WaitGroup
	defer func() {
		reads.Wait()
		for _, p := range e.connections {
			unix.Munmap(p.region)
		}
	}()
	if e.err != nil {
		return e.err
	}
	var q byTime
	for _, p := range e.connections {
		if t := (&orderedThread{p: p}); t.find() {
			q = append(q, t)
		}
	}
	heap.Init(&q)
	for words := 0; len(q) > 0; {
		t := q[0]
		w, last := t.take(q.second())
		left, err := t.p.decoder.buffer(w, last, t.p.to)
		if err != nil {
			return fmt.Errorf("engine: process %d: %w", t.p.pid, err)
		}
		if left != nil {
			e.cutShort(t.p, left)
		}
		if t.find() {
			heap.Fix(&q, 0)
		} else {
			heap.Pop(&q)
		}
		if words += len(w); words >= threadBytes/8 || len(q) == 0 {
			words = 0
			reads.Add(1)
			e.src.after(reads.Done)
		}
	}
	for _, p := range e.connections {
		e.ended(p)
	}
	return nil
}

// orderedThread is one thread's buffers as they are read: header by header, each
// with its words.
type orderedThread struct {
	p    *process // kept[0] is the buffer that is read
	at   int      // word of it that comes next
	left int      // headers up to the next time, which is one, too
	time float64  // of the next header, ns
	step float64  // from one header to the next
	end  float64  // the last time that was reached
}

// find finds the next header, and says whether there is one.
func (t *orderedThread) find() bool {
	for len(t.p.kept) > 0 && t.at >= len(t.p.kept[0]) {
		t.p.kept, t.at = t.p.kept[1:], 0
	}
	if len(t.p.kept) == 0 {
		return false
	}
	if t.left > 0 {
		return true
	}
	w, begin := t.p.kept[0], t.end
	for i := t.at; i < len(w); {
		t.left++
		if uint32(w[i]) == wordTime && i+1 < len(w) {
			if t.end = float64(w[i+1]); begin == 0 {
				begin = t.end
			}
			break
		}
		_, n := first(w[i])
		i += n
	}
	// Of a thread that was killed what follows its last time is put there.
	t.step = max(t.end-begin, 0) / float64(t.left)
	t.time = begin + t.step/2
	return true
}

// take is what comes before a time, one header at least, and all of one buffer; last if
// nothing of the thread comes after it.
func (t *orderedThread) take(before float64) (w []uint64, last bool) {
	from := t.at
	w = t.p.kept[0]
	for {
		_, n := first(w[t.at])
		t.at = min(t.at+n, len(w))
		t.time += t.step
		t.left--
		if t.at == len(w) {
			t.left = 0
			return w[from:], len(t.p.kept) == 1
		}
		if t.left == 0 {
			t.find()
		}
		if t.time > before {
			return w[from:t.at], false
		}
	}
}

// byTime is a heap of threads.
type byTime []*orderedThread

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, j int) bool { return q[i].time < q[j].time }
func (q byTime) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *byTime) Push(x any)        { *q = append(*q, x.(*orderedThread)) }
func (q *byTime) Pop() any {
	o := *q
	x := o[len(o)-1]
	*q = o[:len(o)-1]
	return x
}

// second is the time of the thread that comes after the first.
func (q byTime) second() float64 {
	t := math.Inf(1)
	for _, o := range q[1:min(len(q), 3)] {
		t = min(t, o.time)
	}
	return t
}
