package sharing

import (
	"cmp"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
)

// Threads that take turns are not independent, and what was read ahead of one alone does not show them so: it hands its turn over
// and then reads a word for ever that nobody writes, for others' writes are not part of its window. So a window ends
// where its thread only waits. What it left behind is then the others': of a line that they write as often as it comes
// back to it, it finds every time gone.

const (
	fewestWaits  = 48 // loads with nothing else until the window's end
	mostWaitedOn = 3  // words that these may read
	// seenOfTurn is by how much a turn is longer than what is left of it when it is held: twice as long at a random moment,
	// and no longer if the others' lead has it begin with the hold.
	seenOfTurn = 1.5
	fewWaits   = 0.1 // share of a thread's windows that end in a wait for it not to be as if it took turns
)

// wordKey is a word of a process.
type wordKey struct {
	lineKey
	word uint8
}

// wait is how a window ends.
type wait struct {
	begins  int // instruction from which on its thread only waits
	touches int // until then
	word    wordKey
	pc      uint64  // that reads it
	each    float64 // instructions between two touches of the wait
	whole   bool    // it begins with the end of a wait: the turn is whole
}

// writers of a word: one, or several.
type wordWriters struct {
	tid     int
	several bool
}

// writtenWords are who was seen to write each word.
func writtenWords(windows []*record.Stretch) map[wordKey]wordWriters {
	out := make(map[wordKey]wordWriters)
	for _, w := range windows {
		for i := range w.Lines {
			if t := &w.Lines[i]; t.Store {
				key := wordKey{lineKey{w.Process, t.Line}, t.Word}
				was, ok := out[key]
				out[key] = wordWriters{w.TID, was.several || ok && was.tid != w.TID}
			}
		}
	}
	return out
}

// byOthers says whether anybody but one thread writes it.
func (s wordWriters) byOthers(tid int) bool { return s.several || s.tid != tid }

// cutWaits ends windows where their threads only wait. One that waits all along stays as it is.
func (j *Join) cutWaits(windows []*record.Stretch) (out []*record.Stretch) {
	j.blocked = make(map[*target.Process]bool)
	j.waits, j.idle, j.waiting = make(map[int]*wait), make(map[int]*wait), make(map[threadKey]float64)
	written := writtenWords(windows)
	for _, w := range windows {
		switch x := waitOf(w, written); {
		case x == nil:
		case x.begins > 0:
			j.waits[w.Hold] = x
			j.waiting[threadKey{w.Process, w.TID}]++
			w = until(w, x.begins)
			x.touches = len(w.Lines)
		default:
			j.idle[w.Hold] = x
			j.blocked[w.Process] = true
		}
		out = append(out, w)
	}
	return out
}

// waitOf is how a window ends if its thread waits, from the beginning on or later; nil if it does not.
func waitOf(w *record.Stretch, written map[wordKey]wordWriters) *wait {
	order := make([]int, len(w.Lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(w.Lines[a].At, w.Lines[b].At) })
	var words []wordKey
	var x wait
	first := len(order)
	for ; first > 0; first-- {
		t := &w.Lines[order[first-1]]
		if t.Store {
			break
		}
		key := wordKey{lineKey{w.Process, t.Line}, t.Word}
		if !slices.Contains(words, key) {
			if len(words) == mostWaitedOn {
				break
			}
			words = append(words, key)
		}
		if by, ok := written[key]; ok && by.byOthers(w.TID) && (x.pc == 0 || key == x.word) {
			x.word, x.pc = key, w.PCs[t.PC]
		}
	}
	if n := len(order) - first; n < fewestWaits || x.pc == 0 {
		return nil
	}
	if first == 0 {
		return &x
	}
	if x.begins = int(w.Lines[order[first]].At); x.begins == 0 {
		return nil
	}
	head := &w.Lines[order[0]]
	head0 := wordKey{lineKey{w.Process, head.Line}, head.Word}
	x.whole = !head.Store && slices.Contains(words, head0) && written[head0].byOthers(w.TID)
	x.each = float64(w.Length-x.begins) / float64(len(order)-first)
	return &x
}

// until is a window's beginning.
func until(w *record.Stretch, at int) *record.Stretch {
	cut := *w
	cut.Length, cut.Classified, cut.Lines = at, 0, nil
	for _, t := range w.Lines {
		if int(t.At) < at {
			cut.Lines = append(cut.Lines, t)
			if t.First {
				cut.Classified++
			}
		}
	}
	return &cut
}

// turns are what is known of those of a thread: touches in one and while it waits for the next, and for how many windows each
// tells that it is told from.
type turns struct {
	touches, waited float64
	whole           bool // only whole ones tell
	each            float64
}

// setTurns goes by the turns that were seen from their beginning, if these are enough: of the others only the last part is known. As
// holds come at random, as many begin in a wait as it takes of the time.
func (j *Join) setTurns() {
	j.turns = make(map[threadKey]turns)
	for key := range j.waiting {
		var all, whole, length, waits float64
		n, wholes := 0.0, 0.0
		for _, w := range j.of[key] {
			x := j.waits[w.Hold]
			if x == nil {
				continue
			}
			n++
			all += float64(x.touches)
			length += float64(x.begins)
			waits += x.each
			if x.whole {
				wholes++
				whole += float64(x.touches)
			}
		}
		t := turns{seenOfTurn * all / n, 0, false, 1}
		if wholes >= fewWindows {
			t = turns{whole / wholes, 0, true, n / wholes}
		}
		share := (wholes + 0.5) / (n + 1)
		t.waited = t.touches * share / (1 - share) * (length / max(all, 1)) / (waits / n)
		j.turns[key] = t
	}
}

// setAlternate works out, of the lines that an instruction of a thread touches, how often others write them for each time that it
// comes to them: as a share of windows.
func (j *Join) setAlternate() {
	j.alternate = make(map[alternateKey]float64)
	touched, written := make(map[alternateKey]float64), make(map[alternateKey]float64)
	for key, l := range j.lines {
		for tid, segments := range l.threads {
			if j.waiting[threadKey{key.process, tid}] == 0 {
				continue
			}
			by := 0.0
			for _, other := range l.tids() {
				if other != tid {
					by += float64(l.writing(other)) / float64(len(j.of[threadKey{key.process, other}]))
				}
			}
			all := float64(len(j.of[threadKey{key.process, tid}]))
			seen := make(map[uint64]bool)
			for _, s := range segments {
				pc := s.window.PCs[s.touches[len(s.touches)-1].PC]
				k := alternateKey{key.process, tid, pc}
				touched[k] += 1 / all
				if !seen[pc] {
					seen[pc] = true
					written[k] += by
				}
			}
		}
	}
	for k, n := range touched {
		j.alternate[k] = min(written[k]/n, 1)
	}
}

type alternateKey struct {
	process *target.Process
	tid     int
	pc      uint64
}

// byTurns says whether threads that touch a line may wait for each other: by a lock that lies in it, or guards it, or by what
// they read until it changes.
func (j *Join) byTurns(w *record.Stretch, l *sharedLine, key lineKey) bool {
	if l == nil {
		return false
	}
	for word := range uint8(lineWords) {
		if j.locks[wordKey{key, word}] {
			return true
		}
	}
	for tid := range l.writes {
		if key := (threadKey{w.Process, tid}); j.waiting[key] >= fewWaits*float64(len(j.of[key])) {
			return true
		}
	}
	return slices.ContainsFunc(j.inWindow[w.Hold], func(lock wordKey) bool { return j.guarded(w, l, key, lock) })
}

// handedOver adds to what is taken in a window that ends with its thread's turn what others take of what it leaves behind, and what
// it waits for. The wait is not in the window, but takes its part of the touches.
func (j *Join) handedOver(w *record.Stretch, taken []Taken) []Taken {
	x, turn := j.waits[w.Hold], j.turns[threadKey{w.Process, w.TID}]
	all := turn.touches + turn.waited
	for i := range taken {
		taken[i].Share *= turn.touches / all
	}
	if turn.whole && !x.whole {
		return taken
	}
	all /= turn.each
	handed := 0.0
	for touches := range runs(w) {
		l := j.lines[lineKey{w.Process, touches[0].Line}]
		if touches[0].Line == x.word.line || !l.writtenByOthers(w.TID) {
			continue
		}
		t := &touches[len(touches)-1]
		if p := j.alternate[alternateKey{w.Process, w.TID, w.PCs[t.PC]}]; p > 0 {
			handed += p / all
			taken = append(taken, l.byWrite(Taken{Line: t.Line, Reader: w.PCs[t.PC], Read: t.Word, Turns: true, Share: p / all, Soon: float64(w.Length)}, everybody, w.TID, -1)...)
		}
	}
	if l := j.lines[x.word.lineKey]; l != nil {
		handed += 1 / all
		taken = append(taken, l.byWrite(Taken{Line: x.word.line, Reader: x.pc, Read: x.word.word, Turns: true, Share: 1 / all, Soon: x.each}, everybody, w.TID, int(x.word.word))...)
	}
	if j.blocked[w.Process] { // it may be that it waits as long only as others have no processor
		taken = append(taken, Taken{Line: x.word.line, Reader: x.pc, Read: x.word.word, Unknown: true, Share: handed * turn.waited / turn.touches})
	}
	return taken
}

// idlers is how many threads of a process were seen to wait all along.
func (j *Join) idlers(p *target.Process) int {
	threads := make(map[int]bool)
	for hold := range j.idle {
		if w := j.byHold[hold]; w.Process == p {
			threads[w.TID] = true
		}
	}
	return len(threads)
}

// idles adds what is not known of a window in which its thread waits all along: whether for one that has no processor just now, and
// else would take turns with it as in the process's windows that have any.
func (j *Join) idles(w *record.Stretch, taken []Taken, later Later) []Taken {
	x := j.idle[w.Hold]
	of, ok := j.perTurn[w.Process]
	if !ok {
		n := 0.0
		for _, v := range j.windows {
			if v.Process == w.Process && j.waits[v.Hold] != nil {
				n++
				for _, t := range j.Of(v, later) {
					of += t.Share
				}
			}
		}
		switch {
		case n > 0:
			of = min(of/n, 1)
		case j.idlers(w.Process) > 1: // for each other, and nothing is known of what they do then
			of = 1
		}
		j.perTurn[w.Process] = of
	}
	for _, t := range taken {
		of -= t.Share
	}
	if of > 0 {
		taken = append(taken, Taken{Line: x.word.line, Reader: x.pc, Read: x.word.word, Unknown: true, Share: of})
	}
	return taken
}
