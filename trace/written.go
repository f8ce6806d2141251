package trace

import "github.com/rdx-profiler/rdx/model"

// written is the stream that Writer.Write makes of accesses: each is a segment
// with one word.
type written struct {
	segments []*segment
	sites    map[site]uint32 // numbers of segments
	words    []uint64
	thread   int32
	from     int // word of the thread's first entry
	accesses int // of the part
	spare    chan []uint64
}

// writtenWords is how many are handed on at a time.
const writtenWords = 1 << 17

// Write writes accesses that come from elsewhere than the engine.
func (w *Writer) Write(accesses []model.Access) error {
	x := &w.written
	if x.sites == nil {
		x.sites = map[site]uint32{}
		x.segments = make([]*segment, wordFirstSegment)
		x.spare = make(chan []uint64, maxParts)
	}
	for i := range accesses {
		a := &accesses[i]
		s := site{pc: a.PC, size: max(a.Size, 1), flags: siteLoad}
		if a.Op == model.Store {
			s.flags = siteStore
		}
		id, ok := x.sites[s]
		if !ok {
			id = uint32(len(x.segments))
			x.segments = append(x.segments, newSegment([]site{s}, 1, false), nil, nil, nil) // the next number
			x.sites[s] = id
		}
		if a.Thread != x.thread {
			w.endSpan()
			x.thread = a.Thread
		}
		x.words = append(x.words, uint64(id)|1<<32, a.Addr)
		x.accesses++
		if len(x.words) >= writtenWords || x.accesses == blockAccesses {
			w.flush()
			if err := w.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// endSpan ends the entries of one thread.
func (w *Writer) endSpan() {
	x := &w.written
	if x.from < len(x.words) {
		w.taken = append(w.taken, span{streamKey{0, x.thread}, 0, x.segments, x.words, x.from})
		x.from = len(x.words)
	}
}

// flush hands on what was written.
func (w *Writer) flush() {
	x := &w.written
	w.endSpan()
	words := x.words
	w.hand(func() {
		select {
		case x.spare <- words[:0]:
		default:
		}
	})
	select {
	case x.words = <-x.spare:
	default:
		x.words = make([]uint64, 0, writtenWords)
	}
	x.from = 0
	if x.accesses == blockAccesses {
		w.cut()
		x.accesses = 0
	}
}
