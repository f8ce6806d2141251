package sharing

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
)

// fewWindows of a thread tell little of it: it is taken for one of all others then.
const fewWindows = 6

// everybody, but the reader, in the place of a thread's number.
const everybody = -1

type lineKey struct {
	process *target.Process
	line    uint64
}

type threadKey struct {
	process *target.Process
	tid     int
}

// Join is what was read ahead of all threads, by line.
type Join struct {
	windows   []*record.Stretch
	of        map[threadKey][]*record.Stretch
	processes map[*target.Process][]int // their threads
	read      map[*target.Process]int   // their windows
	lines     map[lineKey]*sharedLine   // that one thread writes and another touches
	byHold    map[int]*record.Stretch
	classes   map[codeKey]*class

	waits     map[int]*wait         // by hold, of windows that end as their thread waits
	idle      map[int]*wait         // those in which it does nothing else
	waiting   map[threadKey]float64 // how many of these a thread has
	pace      map[int]pace          // by hold
	perTouch  func(hold int) float64
	threads   map[threadKey]*held
	waiters   map[*target.Process]bool
	turns     map[threadKey]turns
	alternate map[alternateKey]float64
	locks     map[wordKey]bool // by which threads may keep each other out
	inWindow  map[int][]wordKey
	sections  map[sectionKey][]section
	guards    map[guardKey]int // writes

	lockChances map[lockedKey]*chance

	concurrence   map[*target.Process]Concurrence
	concurrenceOf map[codeKey]Concurrence

	phased  map[*target.Process]bool              // what threads touch changes over time: see phases.go
	inOrder map[*target.Process][]*record.Stretch // of windows
}

// sharedLine is a line that one thread was seen to write and another one to touch.
type sharedLine struct {
	touched map[int]uint64 // bytes, by thread, as bits
	threads map[int][]segment
	sorted  []int           // the keys of these
	most    []threadWrite   // of everybody, see writesOf
	writes  map[int][]Write // by thread
	chances map[chanceKey]*chance
	hold    int // that chances are for, in a process that changes over time
}

type chanceKey struct {
	writer, reader int // the reader only where the writer is everybody, or windows near one of its holds count
	word           int // -1: any
}

// Write is an instruction's writes of a word of a line, or of some of its bytes.
type Write struct {
	PC    uint64
	Word  uint8
	Bytes uint8
	count int
}

// inLine are bytes of a word of a line, as bits.
func inLine(word, bytes uint8) uint64 { return uint64(bytes) << (word * wordBytes) }

// offset is where in its line the first of a word's bytes is.
func offset(word, bytes uint8) uint8 { return word*wordBytes + uint8(bits.TrailingZeros8(bytes)) }

// New joins windows.
func New(windows []*record.Stretch) *Join {
	j := &Join{of: make(map[threadKey][]*record.Stretch), processes: make(map[*target.Process][]int), read: make(map[*target.Process]int),
		lines: make(map[lineKey]*sharedLine), byHold: make(map[int]*record.Stretch)}
	windows = slices.SortedStableFunc(slices.Values(windows), func(a, b *record.Stretch) int { return cmp.Compare(a.Hold, b.Hold) })
	windows = j.cutWaits(windows)
	j.windows = windows
	type seen struct {
		tid           int
		many, written bool
	}
	all := make(map[lineKey]seen)
	for _, w := range windows {
		key := threadKey{w.Process, w.TID}
		if len(j.of[key]) == 0 {
			j.processes[w.Process] = append(j.processes[w.Process], w.TID)
		}
		j.of[key] = append(j.of[key], w)
		j.read[w.Process]++
		j.byHold[w.Hold] = w
		for touches := range runs(w) {
			key := lineKey{w.Process, touches[0].Line}
			s, ok := all[key]
			s.many = s.many || ok && s.tid != w.TID
			s.written = s.written || slices.ContainsFunc(touches, func(t record.LineTouch) bool { return t.Store })
			s.tid = w.TID
			all[key] = s
		}
	}
	for _, w := range windows {
		for touches := range runs(w) {
			key := lineKey{w.Process, touches[0].Line}
			if s := all[key]; s.many && s.written {
				j.add(key, w, touches)
			}
		}
	}
	j.setPhased()
	j.classify()
	j.setAlternate()
	j.setTurns()
	j.setLocks()
	j.setConcurrence()
	j.SetPaces(nil)
	return j
}

// runs are a window's touches, line by line.
func runs(w *record.Stretch) func(yield func([]record.LineTouch) bool) {
	return func(yield func([]record.LineTouch) bool) {
		for from := 0; from < len(w.Lines); {
			to := from + 1
			for to < len(w.Lines) && w.Lines[to].Line == w.Lines[from].Line {
				to++
			}
			if !yield(w.Lines[from:to]) {
				return
			}
			from = to
		}
	}
}

func (j *Join) add(key lineKey, w *record.Stretch, touches []record.LineTouch) {
	l := j.lines[key]
	if l == nil {
		l = &sharedLine{touched: make(map[int]uint64), threads: make(map[int][]segment), writes: make(map[int][]Write), chances: make(map[chanceKey]*chance)}
		j.lines[key] = l
	}
	l.threads[w.TID] = append(l.threads[w.TID], segment{w, touches})
	for _, t := range touches {
		l.touched[w.TID] |= inLine(t.Word, t.Bytes)
		if !t.Store {
			continue
		}
		l.writes[w.TID] = count(l.writes[w.TID], w, &t)
	}
}

// count adds a store to a list.
func count(all []Write, w *record.Stretch, t *record.LineTouch) []Write {
	i := slices.IndexFunc(all, func(x Write) bool { return x.PC == w.PCs[t.PC] && x.Word == t.Word && x.Bytes == t.Bytes })
	if i < 0 {
		i = len(all)
		all = append(all, Write{PC: w.PCs[t.PC], Word: t.Word, Bytes: t.Bytes})
	}
	all[i].count++
	return all
}

// chance is that of a writer, or of everybody but the reader, at the time of a hold.
func (j *Join) chance(p *target.Process, l *sharedLine, writer, reader, word, hold int) *chance {
	if j.phased[p] && l.hold != hold { // they are of no use for another one
		clear(l.chances)
		l.hold = hold
	}
	key := chanceKey{writer: writer, word: word}
	if writer == everybody || j.phased[p] {
		key.reader = reader
	}
	if c := l.chances[key]; c != nil {
		return c
	}
	var windows []*record.Stretch
	var segments []segment
	if j.phased[p] {
		windows = j.whileTouched(p, l, writer, reader, hold)
		segments = l.segmentsIn(windows)
	} else {
		for _, tid := range j.processes[p] {
			if tid == writer || writer == everybody && tid != reader {
				windows = append(windows, j.of[threadKey{p, tid}]...)
				segments = append(segments, l.threads[tid]...)
			}
		}
	}
	c := none
	if len(windows) > 0 {
		c = newChance(windows, segments, func(t record.LineTouch) bool { return t.Store && (word < 0 || int(t.Word) == word) })
	}
	l.chances[key] = c
	return c
}

// writer is one who may come between: a thread, or so many of those that little is known of.
type writer struct {
	tid     int
	threads float64
	share   float64 // of the time that it has a processor
}

// writers are those who ran beside the window's thread. ok is false if nothing was read ahead of some of them.
func (j *Join) writers(w *record.Stretch) (out []writer, ok bool) {
	rest := max(w.Running-1, 0)
	share := 1.0
	if w.Others != nil {
		rest, share = 0, w.Share
		for _, tid := range w.Others {
			if len(j.of[threadKey{w.Process, tid}]) < fewWindows {
				rest++
				continue
			}
			out = append(out, writer{tid, 1, share})
		}
	}
	if rest > 0 {
		if j.others(w) == 0 {
			return out, false
		}
		out = append(out, writer{everybody, rest, share})
	}
	return out, true
}

// within is each writer's chance to write the line, or a word of it, within so many instructions, and that of any of them.
func (j *Join) within(w *record.Stretch, l *sharedLine, writers []writer, word int, span float64, each []float64) (any float64) {
	return ofWriters(writers, func(tid int) float64 { return j.chance(w.Process, l, tid, w.TID, word, w.Hold).in(span) }, each)
}

// ofWriters is the chance of any of them, and each one's.
func ofWriters(writers []writer, chance func(tid int) float64, each []float64) (any float64) {
	free, mean, threads, share := 1.0, 0.0, 0.0, 1.0
	for i, x := range writers {
		p := min(chance(x.tid), 1-1e-12)
		each[i] = -math.Expm1(x.threads * math.Log1p(-p))
		free *= 1 - each[i]
		mean += x.threads * p
		threads += x.threads
		share = x.share
	}
	if share < 1 { // so many have a processor, for longer than the span, and the others do nothing in it
		whole, part := math.Modf(share * threads)
		free = math.Pow(1-mean/threads, whole) * (1 - part*mean/threads)
	}
	return 1 - free
}

// Taken is how much of a window finds a line written by another thread.
type Taken struct {
	Line    uint64 // its number
	Reader  uint64 // instruction
	Read    uint8  // offset
	Writer  int    // thread
	By      uint64 // its instruction
	Written uint8
	True    bool    // the reader touches what is written there, too
	Unknown bool    // it is not known whether anybody writes the line
	Turns   bool    // these threads wait for each other, or may: they are not independent
	Share   float64 // of the touches that are classified
	Least   float64 // likewise, if a line goes from thread to thread no sooner than it can
	Apart   float64 // standard error of the share, as it is not known whether these threads are at work on it at the same times
	Soon    float64 // instructions from the touch to the thread's own next one, on average by share
}

// Later says of touches by an instruction of a process whose line does not come back as far as was read ahead how much the
// windows tell of them.
type Later func(p *target.Process, pc uint64) Beyond

// Beyond is what windows tell of an instruction's touches whose line comes back later.
type Beyond struct {
	Joined bool      // of lines that others were seen to write
	Class  bool      // of all lines, by how often others write any of them
	After  []float64 // touches until lines come back, as far as that was timed
}

// from is where in a window a line is touched.
type from struct {
	pc          uint16
	word, bytes uint8
}

// tally adds up what is taken of one line in a window.
type tally struct {
	by, span []float64 // by writer
	least    []float64 // of by
	unknown  float64   // touches
	apart    float64   // standard error of what is taken, see Taken.Apart
	class    float64   // touches taken by the class's writers
	after    float64   // instructions of these, added up
}

// of sums what is taken of a line's touches in a window.
type of struct {
	*Join
	window  *record.Stretch
	writers []writer
	ok      bool
	each    []float64
	found   map[from]*tally
}

// Of is what others take from a window's thread.
func (j *Join) Of(w *record.Stretch, later Later) (taken []Taken) {
	if w = j.byHold[w.Hold]; w.Classified == 0 {
		return nil
	}
	w, by := j.showing(w)
	if w == nil || w.Classified == 0 {
		return nil
	}
	o := of{Join: j, window: w}
	o.writers, o.ok = j.writers(w)
	o.each = make([]float64, len(o.writers))
	waits := j.waits[w.Hold] != nil
	for touches := range runs(w) {
		key := lineKey{w.Process, touches[0].Line}
		l := j.lines[key]
		o.found = make(map[from]*tally)
		for i := range touches {
			t := &touches[i]
			if !t.First {
				break
			}
			if i+1 < len(touches) {
				if lock, span, ok := j.locked(w, l, key, t.At, touches[i+1].At); ok {
					o.addLocked(lock, t, span)
				} else {
					o.add(l, t, float64(touches[i+1].At-t.At), 1, 0)
				}
				continue
			}
			if waits && l.writtenByOthers(w.TID) {
				continue // it has handed over
			}
			switch b := later(w.Process, w.PCs[t.PC]); {
			case b.Class && (l == nil || !l.often(w.TID)):
				o.addClass(j.classes[codeKey{w.Process, w.PCs[t.PC]}], t, b.After)
			case (b.Joined || b.Class) && l.writtenByOthers(w.TID):
				o.addLater(l, t, b.After)
			}
		}
		found := o.taken(l, touches[0].Line)
		for i := range found {
			found[i].Turns = waits || j.byTurns(w, l, key)
		}
		taken = append(taken, found...)
	}
	if waits {
		taken = j.handedOver(w, taken)
	}
	for i := range taken {
		taken[i].Share *= by
		taken[i].Least *= by
		taken[i].Apart *= by
	}
	slices.SortFunc(taken, func(a, b Taken) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Reader, b.Reader), cmp.Compare(a.Read, b.Read), cmp.Compare(a.Writer, b.Writer), cmp.Compare(a.By, b.By), cmp.Compare(a.Written, b.Written))
	})
	return taken
}

// addLater adds a touch whose line does not come back in the window.
func (o *of) addLater(l *sharedLine, t *record.LineTouch, after []float64) {
	least := float64(o.window.Length) - float64(t.At)
	perTouch := float64(o.window.Length) / float64(len(o.window.Lines))
	n := 0
	for _, a := range after {
		if a*perTouch >= least {
			n++
		}
	}
	if n == 0 {
		o.add(l, t, least, 1, 1)
		return
	}
	for _, a := range after {
		if span := a * perTouch; span >= least {
			o.add(l, t, span, 1/float64(n), 0)
		}
	}
}

// often says whether enough is known of who writes the line, but for one.
func (l *sharedLine) often(tid int) bool {
	n := 0
	for other := range l.writes {
		if other != tid {
			n += l.writing(other)
		}
	}
	return n >= fewWindows
}

// addClass adds a touch by what is known of its class.
func (o *of) addClass(c *class, t *record.LineTouch, after []float64) {
	least := float64(o.window.Length) - float64(t.At)
	perTouch := float64(o.window.Length) / float64(len(o.window.Lines))
	s := o.at(t)
	for _, a := range after {
		span := max(a*perTouch, least)
		p, most := c.in(span)
		s.class += p / float64(len(after))
		s.after += p / float64(len(after)) * span
		s.unknown += (most - p) / float64(len(after))
	}
	if len(after) == 0 {
		p, _ := c.in(least)
		s.class += p
		s.after += p * least
		s.unknown += 1 - p
	}
}

// at is what is added up of touches like this one.
func (o *of) at(t *record.LineTouch) *tally {
	key := from{t.PC, t.Word, t.Bytes}
	s := o.found[key]
	if s == nil {
		s = &tally{by: make([]float64, len(o.writers)), span: make([]float64, len(o.writers)), least: make([]float64, len(o.writers))}
		o.found[key] = s
	}
	return s
}

// add adds a touch, by so much, whose line comes back after so many instructions, or later: then of what is left the share
// unknown is.
func (o *of) add(l *sharedLine, t *record.LineTouch, span, weight, unknown float64) {
	any := 0.0
	if l != nil && span > 0 {
		any = o.within(o.window, l, o.writers, -1, span, o.each)
	}
	if any > 0 && span <= stillAtIt {
		by := o.concurrenceAt(o.window.Process, o.window.PCs[t.PC])
		if by.Error > 0 {
			o.at(t).apart += weight * any * by.Error
		}
		any = min(any*by.Times, 1)
	}
	o.note(t, any, span, weight, unknown)
}

// note adds a touch that is taken with a probability, of each in proportion.
func (o *of) note(t *record.LineTouch, any, span, weight, unknown float64) {
	if !o.ok {
		unknown = 1
	}
	if unknown *= 1 - any; any == 0 && unknown == 0 {
		return
	}
	s := o.at(t)
	s.unknown += weight * unknown
	all := 0.0
	for _, p := range o.each {
		all += p
	}
	if any > 0 {
		least := o.stays(o.window, any, span)
		for k, p := range o.each {
			s.by[k] += weight * any * p / all
			s.least[k] += weight * least * p / all
			s.span[k] += weight * any * p / all * span
		}
	}
}

// taken is what was added up of a line.
func (o *of) taken(l *sharedLine, line uint64) (taken []Taken) {
	all := float64(o.window.Classified)
	for key, s := range o.found {
		t := Taken{Line: line, Reader: o.window.PCs[key.pc], Read: offset(key.word, key.bytes)}
		if s.unknown > 0 {
			x := t
			x.Unknown, x.Share = true, s.unknown/all
			taken = append(taken, x)
		}
		if s.class > 0 {
			t := t
			t.Share, t.Least, t.Soon = s.class/all, s.class/all, s.after/s.class
			taken = append(taken, o.classes[codeKey{o.window.Process, t.Reader}].byWrite(t, inLine(key.word, key.bytes))...)
		}
		if s.apart > 0 {
			x := t
			x.Apart = s.apart / all
			taken = append(taken, x)
		}
		for k := range o.writers {
			if s.by[k] > 0 {
				x := t
				x.Share, x.Least, x.Soon = s.by[k]/all, s.least[k]/all, s.span[k]/s.by[k]
				taken = append(taken, o.byWrite(o.window, l, x, o.writers[k].tid, -1)...)
			}
		}
	}
	return taken
}

// byWrite divides what is taken of a class among those who write its lines. touched are the bytes that the reader touches.
func (c *class) byWrite(t Taken, touched uint64) (out []Taken) {
	all := 0.0
	for _, w := range c.foremost() {
		all += c.writes[w]
	}
	for _, w := range c.foremost() {
		x := t
		x.Writer, x.By, x.Written, x.True = w.tid, w.pc, offset(w.word, w.bytes), inLine(w.word, w.bytes)&touched != 0
		x.Share *= c.writes[w] / all
		x.Least *= c.writes[w] / all
		out = append(out, x)
	}
	return out
}

// Told says whether an instruction's lines can be told of by how often others write any of them.
func (j *Join) Told(p *target.Process, pc uint64) bool { return j.classes[codeKey{p, pc}].usable() }

// Open is how much of a window's touches, by instruction, don't have their line back in it: of lines that others were seen
// to write, and of others.
func (j *Join) Open(w *record.Stretch, add func(pc uint64, joined bool, share float64)) {
	if w = j.byHold[w.Hold]; w.Classified == 0 {
		return
	}
	waits := j.waits[w.Hold] != nil
	for touches := range runs(w) {
		if t := &touches[len(touches)-1]; t.First {
			joined := j.lines[lineKey{w.Process, t.Line}].writtenByOthers(w.TID)
			if waits && joined {
				continue // told of by the turns
			}
			add(w.PCs[t.PC], joined, 1/float64(w.Classified))
		}
	}
}

// Joins says whether another thread was seen to write the line of an address.
func (j *Join) Joins(p *target.Process, tid int, addr uint64) bool {
	return j.lines[lineKey{p, addr / lineBytes}].writtenByOthers(tid)
}

// Apart says whether an instruction that writes a word writes, as far as was seen, none of the bytes that a reader touches there.
func (j *Join) Apart(p *target.Process, reader int, addr, by uint64) bool {
	l, word := j.lines[lineKey{p, addr / lineBytes}], uint8(addr%lineBytes/wordBytes)
	if l == nil {
		return false
	}
	written := uint64(0)
	for _, writes := range l.writes {
		for _, w := range writes {
			if w.PC == by && w.Word == word {
				written |= inLine(w.Word, w.Bytes)
			}
		}
	}
	touched := l.touched[reader] & inLine(word, math.MaxUint8)
	return written != 0 && touched != 0 && written&touched == 0
}

// writtenByOthers says whether any thread but one was seen to write the line; l may be nil.
func (l *sharedLine) writtenByOthers(tid int) bool {
	if l != nil {
		for other := range l.writes {
			if other != tid {
				return true
			}
		}
	}
	return false
}

// byWrite divides what a writer takes among its instructions, those that write the word if there is one, by how often
// each was seen.
func (j *Join) byWrite(window *record.Stretch, l *sharedLine, t Taken, writer, word int) (out []Taken) {
	all, reader := 0, window.TID
	writes, touched := l.writesOf(writer), l.touched[reader]
	if j.phased[window.Process] {
		writes, touched = j.writesNear(window, l, writer), l.touchedIn(window)
	}
	each := func(f func(threadWrite)) {
		for _, w := range writes {
			if w.tid != reader && (word < 0 || int(w.Word) == word) {
				f(w)
			}
		}
	}
	each(func(w threadWrite) { all += w.count })
	each(func(w threadWrite) {
		x := t
		x.Writer, x.By, x.Written = w.tid, w.PC, offset(w.Word, w.Bytes)
		x.True = touched&inLine(w.Word, w.Bytes) != 0
		x.Share *= float64(w.count) / float64(all)
		x.Least *= float64(w.count) / float64(all)
		out = append(out, x)
	})
	return out
}

// Lost is who writes the line of an observation's datum, or with word the datum itself, within so many touches of its
// thread, and how likely; nil if nobody was seen to. ok is false if it is not known who ran beside it.
func (j *Join) Lost(o *record.Observation, word bool, touches float64) (taken []Taken, ok bool) {
	w := j.byHold[o.Hold]
	if w == nil || len(w.Lines) == 0 {
		return nil, false
	}
	writers, ok := j.writers(w)
	addr := o.Addr / lineBytes
	l := j.lines[lineKey{w.Process, addr}]
	if l == nil {
		return nil, ok
	}
	which := -1
	if word {
		which = int(o.Addr % lineBytes / wordBytes)
	}
	each := make([]float64, len(writers))
	any := j.within(w, l, writers, which, touches*float64(w.Length)/float64(len(w.Lines)), each)
	any = min(any*j.concurrenceAt(w.Process, o.PC).Times, 1)
	all := 0.0
	for _, p := range each {
		all += p
	}
	for k, p := range each {
		if p > 0 {
			t := Taken{Line: addr, Reader: o.PC, Read: uint8(o.Addr % lineBytes), Share: any * p / all}
			taken = append(taken, j.byWrite(w, l, t, writers[k].tid, which)...)
		}
	}
	return taken, ok
}
