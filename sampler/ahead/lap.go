package ahead

import "github.com/rdx-profiler/rdx/sampler"

// Lap is what was read ahead between two touches of a word, one after the other: watched, they tell how long so many accesses
// take right after a hold, when caches are cold.
type Lap struct {
	Word     uint64
	Use      Located // the first touch, of the lap's beginning
	Before   int     // instructions that touch the word before it: traps to let pass
	Accesses int     // from the one touch to the other
	from, to int     // accesses of the log
}

const (
	// lapWords is of how many words one is looked at, as the thread is held meanwhile.
	lapWords = 8
	// LeastLap is how many accesses a lap has at least: fewer take no longer than what traps differ by.
	LeastLap = 4096
	// lapBefore bounds the traps before its beginning.
	lapBefore = 4
	// fewLaps are timed in one of lapsSoon holds that find their slot free, more in one of lapsLater.
	fewLaps, lapsSoon, lapsLater = 24, 2, 8
)

// TimesLap says whether a hold that finds its slot free is to time a lap, where so many were. pick(n) chooses one of n.
func TimesLap(timed int, pick func(n int) int) bool {
	if timed >= fewLaps {
		return pick(lapsLater) == 0
	}
	return pick(lapsSoon) == 0
}

// Lap is the longest lap of the last Read, of a random part of its words, that begins at one of the accesses that are classified. ok is
// false if there is none.
func (l *Locator) Lap(pick func(n int) int) (lap Lap, ok bool) {
	all := l.log.all
	if len(all) <= LeastLap {
		return lap, false
	}
	table, salt := &l.laps, uint64(pick(1<<16))
	table.reset()
	for i := range all {
		a := &all[i]
		for w := a.Addr / sampler.WordSize; w <= (a.Addr+uint64(a.Size)-1)/sampler.WordSize; w++ {
			if hashOf(w+salt)>>32%lapWords != 0 {
				continue
			}
			before := table.swap(w, i)
			if before >= 0 && before < l.first && i-before > max(lap.Accesses, LeastLap-1) {
				lap = Lap{Word: w * sampler.WordSize, Accesses: i - before, from: before, to: i}
			}
		}
	}
	if lap.Accesses == 0 {
		return lap, false
	}
	a := &all[lap.from]
	lap.Use = Located{Addr: a.Addr, Size: int(a.Size), Store: a.Store, PC: a.PC, Next: l.reportedAt(a.PC)}
	lap.Before = instructionsTouching(l.log.touching(lap.from, lap.Word, sampler.WordSize), a.Inst, lap.Word, sampler.WordSize)
	return lap, lap.Before <= lapBefore
}

// LapLines is how many cache lines a lap touches that were not touched before in the hold: of data, and of the code that
// touches these. It is for when the thread runs on, and blocks are lines.
func (l *Locator) LapLines(lap Lap) (data, code int) {
	l.settle()
	for _, t := range l.log.touches[l.log.first[lap.from]:] {
		if int(t.at) > lap.to {
			break
		}
		if t.prev < 0 && int(t.at) > lap.from {
			data++
		}
	}
	seen := &l.laps
	seen.reset()
	for i := range l.log.all[:lap.to+1] {
		if seen.swap(l.log.all[i].PC/sampler.LineSize, i) < 0 && i > lap.from {
			code++
		}
	}
	return data, code
}
