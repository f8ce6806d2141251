package sharing

import (
	"cmp"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
)

// Between the taking of a lock and its giving nobody else comes, and between two of a thread's sections who takes the
// lock does.

// mostGuarded is which share of the writes of a line must be in sections of a lock for it to guard the line.
const mostGuarded = 0.9

// mostLocks are used in a window of some thousand accesses: where more words look like locks they are data that are added to.
const mostLocks = 64

// section is between the taking and the giving of a lock.
type section struct{ from, to int32 }

// setLocks finds the words by which threads keep each other out, and what they guard.
func (j *Join) setLocks() {
	j.locks, j.sections, j.guards, j.inWindow = make(map[wordKey]bool), make(map[sectionKey][]section), make(map[guardKey]int), make(map[int][]wordKey)
	j.lockChances = make(map[lockedKey]*chance)
	waitedFor := make(map[wordKey]bool)
	for _, x := range j.waits {
		j.locks[x.word], waitedFor[x.word] = true, true
	}
	for key, l := range j.lines {
		by := make(map[uint8]int) // threads that read and write a word at once
		for _, segments := range l.threads {
			var words uint8
			for _, s := range segments {
				words |= atOnce(s.touches)
			}
			for word := range uint8(lineWords) {
				by[word] += int(words >> word & 1)
			}
		}
		for word, n := range by {
			if n > 1 {
				j.locks[wordKey{key, word}] = true
				delete(waitedFor, wordKey{key, word})
			}
		}
	}
	if len(j.locks) == 0 {
		return
	}
	for word := range j.locks {
		l := j.lines[word.lineKey]
		if l == nil {
			continue
		}
		for _, segments := range l.threads {
			for _, s := range segments {
				if found := sectionsOf(s, word.word, waitedFor[word]); len(found) > 0 {
					key := sectionKey{s.window.Hold, word}
					j.sections[key] = found
					j.inWindow[s.window.Hold] = append(j.inWindow[s.window.Hold], word)
				}
			}
		}
	}
	for hold, words := range j.inWindow {
		if len(words) > mostLocks {
			for _, word := range words {
				delete(j.sections, sectionKey{hold, word})
			}
			delete(j.inWindow, hold)
		}
	}
	for key, l := range j.lines {
		for tid, segments := range l.threads {
			for _, s := range segments {
				for _, t := range s.touches {
					if t.Store {
						j.countGuards(key, tid, s.window.Hold, t.At)
					}
				}
			}
		}
	}
}

type sectionKey struct {
	hold int
	word wordKey
}

// guardKey is of a thread's writes to a line in sections of a lock, and with the lock's process nil of all of them.
type guardKey struct {
	line lineKey
	tid  int
	lock wordKey
}

func (j *Join) countGuards(line lineKey, tid, hold int, at int32) {
	j.guards[guardKey{line: line, tid: tid}]++
	for _, lock := range j.inWindow[hold] {
		if within(j.sections[sectionKey{hold, lock}], at, at) {
			j.guards[guardKey{line, tid, lock}]++
		}
	}
}

// within says whether one of the sections, which are in order and apart, has all from one moment to another.
func within(sections []section, from, to int32) bool {
	i, _ := slices.BinarySearchFunc(sections, from, func(s section, at int32) int { return cmp.Compare(s.to, at) })
	return i < len(sections) && sections[i].from <= from && to <= sections[i].to
}

// atOnce are the words that an instruction both reads and writes.
func atOnce(touches []record.LineTouch) (words uint8) {
	for i := 1; i < len(touches); i++ {
		if a, b := &touches[i-1], &touches[i]; a.At == b.At && a.PC == b.PC && a.Word == b.Word && a.Store != b.Store {
			words |= 1 << a.Word
		}
	}
	return words
}

// sectionsOf are where a lock is held in a window: from where it is read and written at once, or, of a word that is waited for,
// read, to where it is only written.
func sectionsOf(s segment, word uint8, byReading bool) (out []section) {
	open, opened := int32(0), true // a window may begin within a section
	for i := range s.touches {
		t := &s.touches[i]
		if t.Word != word {
			continue
		}
		both := i > 0 && s.touches[i-1].At == t.At && s.touches[i-1].Word == word ||
			i+1 < len(s.touches) && s.touches[i+1].At == t.At && s.touches[i+1].Word == word
		switch {
		case both || !t.Store && byReading:
			open, opened = t.At, true
		case t.Store:
			if opened {
				out = append(out, section{open, t.At})
			}
			opened = false
		}
	}
	if opened && len(out) > 0 {
		out = append(out, section{open, int32(s.window.Length)})
	}
	return out
}

// locked says whether two touches of a line are in sections of a lock that all others hold who write it: then nobody comes in the
// same section, and otherwise as soon as a section of another's. span is how long that one has for it: from the beginning of a
// section to the beginning of the next, 0 in the same. It has not been in one then, and those between are the thread's own.
func (j *Join) locked(w *record.Stretch, l *sharedLine, key lineKey, from, to int32) (lock wordKey, span float64, ok bool) {
	if l == nil {
		return lock, 0, false
	}
	for _, lock := range j.inWindow[w.Hold] {
		sections := j.sections[sectionKey{w.Hold, lock}]
		a := slices.IndexFunc(sections, func(s section) bool { return s.from <= from && from <= s.to })
		b := slices.IndexFunc(sections, func(s section) bool { return s.from <= to && to <= s.to })
		if a < 0 || b < 0 || !j.guarded(w, l, key, lock) {
			continue
		}
		for i := a; i < b; i++ {
			span += float64(sections[i+1].from - sections[i].from)
		}
		return lock, span, true
	}
	return lock, 0, false
}

// guarded says whether others write a line while they hold a lock.
func (j *Join) guarded(w *record.Stretch, l *sharedLine, key lineKey, lock wordKey) bool {
	all, in := 0, 0
	for tid := range l.writes {
		if tid != w.TID {
			all += j.guards[guardKey{line: key, tid: tid}]
			in += j.guards[guardKey{key, tid, lock}]
		}
	}
	return all > 0 && float64(in) >= mostGuarded*float64(all)
}

type lockedKey struct {
	lock           wordKey
	writer, reader int
}

// lockChance is that a writer, or anybody but the reader, takes a lock, from a moment on in which it does not hold it.
func (j *Join) lockChance(lock wordKey, writer, reader int) *chance {
	key := lockedKey{lock: lock, writer: writer}
	if writer == everybody {
		key.reader = reader
	}
	if c := j.lockChances[key]; c != nil {
		return c
	}
	var windows []*record.Stretch
	for _, tid := range j.processes[lock.process] {
		if tid == writer || writer == everybody && tid != reader {
			windows = append(windows, j.of[threadKey{lock.process, tid}]...)
		}
	}
	c := none
	if len(windows) > 0 {
		c = chanceOf(windows, func(w *record.Stretch) (at []int, length int) {
			held := 0
			for _, s := range j.sections[sectionKey{w.Hold, lock}] {
				if begin := int(s.from) - held; s.from > 0 && (len(at) == 0 || begin > at[len(at)-1]) {
					at = append(at, begin)
				}
				held += int(s.to - s.from)
			}
			length = max(w.Length-held, 1)
			if x := j.waits[w.Hold]; x != nil && x.word == lock { // it gets it when the wait is over
				at, length = append(at, length), length+1
			}
			return at, length
		})
	}
	j.lockChances[key] = c
	return c
}

// addLocked adds a touch of a line that a lock guards, that is not touched again in a section so soon.
func (o *of) addLocked(lock wordKey, t *record.LineTouch, span float64) {
	any := 0.0
	if span > 0 {
		any = ofWriters(o.writers, func(tid int) float64 { return o.lockChance(lock, tid, o.window.TID).in(span) }, o.each)
	}
	o.note(t, any, span, 1, 0)
}
