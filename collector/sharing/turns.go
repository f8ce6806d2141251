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
	tail    int     // touches of it
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
	x.tail = len(order) - first
	x.each = float64(w.Length) / float64(len(order))
	if first == 0 {
		return &x
	}
	if x.begins = int(w.Lines[order[first]].At); x.begins == 0 {
		return nil
	}
	for _, i := range order[:len(words)] { // what it is told to stop by is read between two looks at the word
		t := &w.Lines[i]
		key := wordKey{lineKey{w.Process, t.Line}, t.Word}
		if t.Store || !slices.Contains(words, key) {
			break
		}
		if written[key].byOthers(w.TID) {
			x.whole = true
			break
		}
	}
	x.each = float64(w.Length-x.begins) / float64(x.tail)
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

// turns are what is known of those of a thread: touches in one, and what others take in and behind one.
type turns struct {
	touches, handed float64
	whole           bool // only whole ones tell
}

// setTurns goes by the turns that were seen from their beginning, if these are enough: of the others only the last part is known.
func (j *Join) setTurns() {
	j.turns = make(map[threadKey]turns)
	for key := range j.waiting {
		var all, whole, handed, n, wholes float64
		for _, w := range j.of[key] {
			x := j.waits[w.Hold]
			if x == nil {
				continue
			}
			n++
			all += float64(x.touches)
			handed += j.handed(w)
			if x.whole {
				wholes++
				whole += float64(x.touches)
			}
		}
		t := turns{touches: max(seenOfTurn*all/n, 1), handed: handed / n}
		if wholes >= fewWindows {
			t.touches, t.whole = max(whole/wholes, 1), true
		}
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

// handed is how many of the lines that a turn leaves behind, and of the word that it waits for then, others take.
func (j *Join) handed(w *record.Stretch) (n float64) {
	x := j.waits[w.Hold]
	for touches := range runs(w) {
		if l := j.lines[lineKey{w.Process, touches[0].Line}]; touches[0].Line != x.word.line && l.writtenByOthers(w.TID) {
			n += j.alternate[alternateKey{w.Process, w.TID, w.PCs[touches[len(touches)-1].PC]}]
		}
	}
	return n + j.seenToChange(w)
}

// seenToChange is how often the word that a window's thread waits for is found written before its next turn: once by each
// of the others.
func (j *Join) seenToChange(w *record.Stretch) (n float64) {
	if l := j.lines[j.waits[w.Hold].word.lineKey]; l != nil {
		for tid, writes := range l.writes {
			if tid != w.TID && slices.ContainsFunc(writes, func(x Write) bool { return x.Word == j.waits[w.Hold].word.word }) {
				n++
			}
		}
	}
	return n
}

// handedOver adds to what is taken in a window that ends with its thread's turn what others take of what it leaves behind, and what
// it waits for.
func (j *Join) handedOver(w *record.Stretch, taken []Taken) []Taken {
	x, all := j.waits[w.Hold], j.turns[threadKey{w.Process, w.TID}].touches
	for touches := range runs(w) {
		l := j.lines[lineKey{w.Process, touches[0].Line}]
		if touches[0].Line == x.word.line || !l.writtenByOthers(w.TID) {
			continue
		}
		t := &touches[len(touches)-1]
		if p := j.alternate[alternateKey{w.Process, w.TID, w.PCs[t.PC]}]; p > 0 {
			taken = append(taken, j.byWrite(w, l, Taken{Line: t.Line, Reader: w.PCs[t.PC], Read: offset(t.Word, t.Bytes), Turns: true, Share: p / all, Least: p / all, Soon: float64(w.Length)}, everybody, -1)...)
		}
	}
	if l := j.lines[x.word.lineKey]; l != nil {
		taken = append(taken, j.byWrite(w, l, Taken{Line: x.word.line, Reader: x.pc, Read: x.word.word * wordBytes, Turns: true, Share: j.seenToChange(w) / all, Least: j.seenToChange(w) / all, Soon: x.each}, everybody, int(x.word.word))...)
	}
	return taken
}
