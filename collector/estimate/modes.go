package estimate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler"
)

const (
	// leastKernel is the share of CPU time in the kernel that matters: below it are rdx's own traps and stops.
	leastKernel = 0.02
	// leastModes is the CPU time, in ns, of which the kernel's account, in ticks of it, tells the share.
	leastModes = 3e8
	// afterCall is how much longer, in ns, user mode takes after a time in the kernel than the model of the processor says, at most, and
	// afterLong that part of this time more: what it had in the caches and learnt of branches is gone, the more of it the longer the kernel
	// worked, above all where it has woken another processor. It was 80 and 170 in loops of four calls a request, of 2 µs each; 370 of redis,
	// of 3; and 1,300 of memcached, of 6.
	afterCall, afterLong = 150, 1.0 / 3
	// passed is the standard error, in parts of the logarithm of the share in user mode, of what is in the time of probes of the system
	// calls that they go by.
	passed = 0.25
	// mostEntries into the kernel are counted one by one.
	mostEntries = 30
)

// modes is what is made of how a target's CPU time was spent, by the kernel's account. Samples fall on user mode, and what is read ahead
// and the model of the processor tell of that; a watched word's time has the kernel's in it.
type modes struct {
	user float64 // share of CPU time, 0 where the rest does not matter or is not known
	// each is how long the kernel takes at a time, and between how long it is user mode, in ns: means; 0 if that is not known.
	each, between float64
	// faults is the share of the kernel's time that is taken to be for pages, by how often it was called for what.
	faults float64
}

// newModes is of a session whose clock is CPU time, and whose code makes about so many accesses a ns.
func (s *stage) newModes(perNS float64) (m modes) {
	user, kernel := float64(s.Modes.User), float64(s.Modes.Kernel) // ns
	all := user + kernel
	if s.Clock.Counted != nil || s.Clock.Unit != sampler.Nanoseconds || all < leastModes || kernel < leastKernel*all || user == 0 {
		return m
	}
	m.user = user / all
	calls := s.callsPerAccess() * perNS // in a ns of user mode
	faults := float64(s.Modes.Faults) / user
	if calls+faults > 0 {
		m.between = 1 / (calls + faults)
		m.each = m.between * (1 - m.user) / m.user
		m.faults = faults / (calls + faults)
	}
	return m
}

// callsPerAccess is how many system calls come with an access, in as much of each hold as half of them tell of: code that makes none for
// long is read far, and would count for more than its time.
func (s *stage) callsPerAccess() float64 {
	var reach []int
	for i := range s.Holds {
		if n := s.Holds[i].Accesses; n > 0 {
			reach = append(reach, n)
		}
	}
	if len(reach) == 0 {
		return 0
	}
	slices.Sort(reach)
	near := reach[len(reach)/2]
	var accesses, calls float64
	for i := range s.Holds {
		h := &s.Holds[i]
		accesses += float64(min(h.Accesses, near))
		if h.End == record.SystemCall && 0 < h.Accesses && h.Accesses <= near {
			calls++
		}
	}
	return calls / accesses
}

// cold is how many times as long user mode takes, at most, as caches and branches are cold after the kernel.
func (m *modes) cold() float64 {
	if m.between == 0 {
		return 1
	}
	return 1 + (afterCall+afterLong*m.each)/m.between
}

// inUser is the share of CPU time in user mode.
func (m *modes) inUser() float64 { return cmp.Or(m.user, 1) }

// paging is the logarithm of how many times as fast user mode is as probes say, which go by no system calls but a few, as writes, and
// wait for pages; and its standard error.
func (m *modes) paging() (log, off float64) {
	log = -math.Log(1 - (1-m.inUser())*m.faults)
	return log, math.Hypot(log, passed*math.Log(m.inUser())) * (1 - m.faults)
}

// userTime is how much of a time between two touches is likely user mode, in ns: of all of a long one its share, of one that is too short for
// the kernel to come between all. In between it is what is as likely for any number of times that the kernel came, each as long as the
// mean, at moments by chance, where uses are reused after any time, as many in each octave.
func (m *modes) userTime(ns float64) float64 {
	if m.inUser() == 1 || !(ns > 0) {
		return ns
	}
	if m.between == 0 || ns > mostEntries*(m.each+m.between) {
		return ns * m.user
	}
	sum, all := 0.0, 0.0
	for n := 0; ; n++ {
		left := ns - float64(n)*m.each
		if left <= 0 || n > 4*mostEntries {
			break
		}
		x := left / m.between
		ways, _ := math.Lgamma(float64(n + 1))
		p := math.Exp(float64(n)*math.Log(x)-x-ways) / left
		sum, all = sum+p*left, all+p
	}
	if !(all > 0) {
		return ns * m.user
	}
	return sum / all
}

// comment says how the kernel's time was taken into account.
func (m *modes) comment(r *Rates) string {
	text := fmt.Sprintf("access rate: %.0f%% of the CPU time is the kernel's, which samples do not fall on: %.3g per ns of user mode", 100*(1-m.user), r.perUser())
	if m.between > 0 {
		text += fmt.Sprintf("; it is taken to come in every %.3g µs of that, for %.3g µs", m.between/1000, m.each/1000)
	}
	return text
}
