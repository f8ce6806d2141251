package ahead

import (
	"math/bits"
	"slices"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// touchedBytes are the bytes of a line that an access touches, one bit each.
func touchedBytes(a *interp.Access, line uint64) uint64 {
	from, to := max(a.Addr, line), min(a.Addr+uint64(max(a.Size, 1)), line+sampler.LineSize)
	if from >= to {
		return 0
	}
	return ^uint64(0) >> (sampler.LineSize - (to - from)) << (from - line)
}

func onesOf(mask uint64) int { return bits.OnesCount64(mask) }

const (
	// originTried is of how many accesses of an instruction it is looked where their addresses came from, and
	// originBack how many loads before each may be it.
	originTried, originBack = 12, 24
	// originLeast must agree, with different values.
	originLeast = 3
	// largestScale is by how much a value that was read may be multiplied to be an address: an index
	// into an array of structures.
	largestScale = 4096
)

// origin is a load that may have read what an address is made of.
type origin struct {
	run    int32
	n      int
	addrs  [originTried]int64 // of the accesses looked at
	values [originTried]int64 // that the load before each had read
}

// linkOf says where the addresses of an instruction come from that keep no stride: whether they are a multiple
// of what the same load had read each time before, plus a constant. from is the load's run.
func (l *Locator) linkOf(n int32) (found Pattern, from int32) {
	s, all := &l.sights, l.log.all
	s.origins = s.origins[:0]
	at := s.runs[n].last
	for range originTried {
		if at < 0 {
			break
		}
		if _, ok := s.stride(all, at); !ok {
			l.addOrigins(at)
		}
		at = s.before[at]
	}
	found = Random
	for i := range s.origins {
		o := &s.origins[i]
		if !o.linear() {
			continue
		}
		if q := &s.runs[o.run]; o.run != n && 2*q.kept >= q.n {
			return Gathered, o.run
		}
		if found != Chased || o.run == n { // itself before others
			found, from = Chased, o.run
		}
	}
	return found, from
}

// addOrigins adds what the loads before access at have read, of each instruction the last.
func (l *Locator) addOrigins(at int32) {
	s, all := &l.sights, l.log.all
	seen := 0
	for i := at - 1; i >= 0 && seen < originBack; i-- {
		a := &all[i]
		if a.Store || a.Size > 8 || a.Inst == all[at].Inst {
			continue
		}
		seen++
		if s.after[i] >= 0 && s.after[i] < at {
			continue // a later one of the same instruction was looked at
		}
		v, ok := l.valueAt(a.Addr, uint8(a.Size))
		if !ok {
			continue
		}
		k := 0
		for k < len(s.origins) && s.origins[k].run != s.of[i] {
			k++
		}
		if k == len(s.origins) {
			s.origins = slices.Grow(s.origins, 1)[:k+1]
			s.origins[k].run, s.origins[k].n = s.of[i], 0
		}
		o := &s.origins[k]
		o.addrs[o.n], o.values[o.n] = int64(all[at].Addr), v
		o.n++
	}
}

// valueAt is what a load has read, as the machine's copy has it now.
func (l *Locator) valueAt(addr uint64, size uint8) (v int64, ok bool) {
	if size == 0 || size&(size-1) != 0 {
		return 0, false
	}
	u, ok := l.machine.Held(addr, size)
	if !ok {
		return 0, false
	}
	if size == 4 {
		return int64(int32(u)), true
	}
	return int64(u), true
}

// linear says whether the addresses are one multiple of the values plus one constant: three quarters of them, and three
// different ones at least.
func (o *origin) linear() bool {
	n := o.n
	if n < originLeast {
		return false
	}
	// The pair that says what the multiple is may be wrong: a few are tried.
	for i := 1; i < min(n, 4); i++ {
		da, dv := o.addrs[i]-o.addrs[i-1], o.values[i]-o.values[i-1]
		if dv == 0 || da%dv != 0 {
			continue
		}
		scale := da / dv
		if scale < 1 || scale > largestScale {
			continue
		}
		constant := o.addrs[i] - scale*o.values[i]
		agree, different := 0, 0
		for k := range o.addrs[:n] {
			if o.addrs[k]-scale*o.values[k] == constant {
				if agree++; k > 0 && o.values[k] != o.values[k-1] {
					different++
				}
			}
		}
		if 4*agree >= 3*n && different+1 >= originLeast {
			return true
		}
	}
	return false
}
