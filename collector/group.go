package collector

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// What Config.Stack may say.
const (
	OwnStack     = "own"     // other threads are not looked at
	PrivateStack = "private" // other threads' writes invalidate
	SharedStack  = "shared"  // a reuse is anybody's
	BothStacks   = "both"    // each sample is for one of the two, by chance
)

const (
	lineBytes = 64
	lineWords = lineBytes / 8
	// fewThreads are watched each by itself; more by CPU, if that is less.
	fewThreads = 16
	// cpuSlots: a datum watched on all CPUs takes one of the four registers of
	// its own thread and one of every CPU.
	cpuSlots = 2
)

// group is a process whose threads share their slots: what one of them used is
// watched in the others, too.
type group struct {
	number  uint32
	shared  *sampler.Group
	members []*thread
	byCPU   bool // watch CPUs instead of threads, from when there were many
	slots   [sampler.NumSlots]groupWatch
	written lineSeen
}

// groupWatch is whom a slot of the group serves.
type groupWatch struct {
	owner  *thread
	main   int // owner's slot
	points []*sampler.Watchpoint
}

// groups says whether data are watched in all threads.
func (s *Session) groups() bool { return s.cfg.Stack != OwnStack }

// join takes a thread into its process's group; what is being watched is
// watched in it, too, before its first instruction.
func (s *Session) join(t *thread) error {
	p := t.process
	if p.group == nil {
		number, shared, err := s.kernel.AddGroup(s.cfg.Slots)
		if err != nil {
			return err
		}
		p.group = &group{number: number, shared: shared}
	}
	g := p.group
	t.shared.Group = g.number
	g.members = append(g.members, t)
	if others := len(g.members) - 1; !g.byCPU && others > fewThreads && others > len(s.cpus) {
		for slot := range g.slots {
			s.vacate(g, slot)
		}
		g.byCPU, g.shared.Num = true, uint32(min(cpuSlots, s.cfg.Slots))
	}
	if g.byCPU {
		return nil
	}
	for slot := range g.slots {
		w := &g.slots[slot]
		if len(w.points) > 0 && w.owner.slots[w.main].obs.state != done {
			s.watchOther(w, sampler.Reach{TID: t.tid}, slot, g.shared.Slots[slot].Addr, w.owner.slots[w.main].obs.stack)
		}
	}
	return nil
}

func (s *Session) leave(t *thread) {
	p := t.process
	p.group.members = slices.DeleteFunc(p.group.members, func(m *thread) bool { return m == t })
	if len(p.group.members) == 0 {
		s.kernel.RemoveGroup(p.group.number)
		p.group = nil
	}
}

// vacate ends what a slot of the group serves.
func (s *Session) vacate(g *group, slot int) {
	switch w := &g.slots[slot]; {
	case w.owner == nil:
	case w.main == slot:
		s.retire(w.owner, slot)
	default: // a word of the line of another slot's datum
		s.cutWord(g, slot)
		s.closeOthers(g, slot)
	}
}

// occupy gives the slot to a thread of the group.
func (g *group) occupy(slot int, t *thread) {
	g.slots[slot] = groupWatch{owner: t, main: slot}
	g.shared.Slots[slot].Owner = 0
}

// closeOthers takes down the slot's watchpoints in other threads.
func (s *Session) closeOthers(g *group, slot int) {
	for _, p := range g.slots[slot].points {
		if err := p.Close(); err != nil {
			s.fail(err)
		}
	}
	g.slots[slot] = groupWatch{}
	g.shared.Slots[slot].Owner = 0
}

// release frees all that serves the thread's slot.
func (g *group) release(s *Session, t *thread, slot int) {
	g.releaseLine(s, t, slot)
	if w := &g.slots[slot]; w.owner == t && w.main == slot {
		s.closeOthers(g, slot)
	}
}

// releaseLine frees the slots that watch other words of the line of the datum in the
// thread's slot.
func (g *group) releaseLine(s *Session, t *thread, slot int) {
	for i := range g.slots {
		if w := &g.slots[i]; i != slot && w.owner == t && w.main == slot {
			s.closeOthers(g, i)
		}
	}
}

// watchOthers watches word, which t's slot is armed for, in all other threads,
// and for a private stack as many other words of its line as slots are free.
func (s *Session) watchOthers(t *thread, slot int, word uint64, o *observation) {
	g := t.process.group
	s.watchGroup(g, t, slot, slot, word, o.stack)
	if o.stack != model.StackPrivate || len(g.members) < 2 {
		return
	}
	var free []int
	for i := range int(g.shared.Num) {
		if g.slots[i].owner == nil {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return
	}
	o.line = drawWords(s.rand, g.written.scores(wordAt(word)), len(free), word&^(lineBytes-1))
	for i, w := range o.line {
		s.watchGroup(g, t, free[i], slot, w.addr, o.stack)
	}
}

// cutWord notes that a word of a datum's line is not watched any more.
func (s *Session) cutWord(g *group, slot int) {
	w := &g.slots[slot]
	main := &w.owner.shared.Slots[w.main]
	o := w.owner.slots[w.main].obs
	if o == nil || main.State == sampler.SlotDone || main.State == sampler.SlotAgain {
		return
	}
	s.unwatched++
	for i := range o.line {
		if o.line[i].addr != g.shared.Slots[slot].Addr {
			continue
		}
		o.line[i].cutAt = 1
		if main.State == sampler.SlotUsed {
			o.line[i].cutAt = max(float64(sampler.Monotonic())-float64(main.UseTime)-s.calibration.Cost, 1)
		}
	}
}

// watchGroup watches a word by a slot of the group for t's slot main.
func (s *Session) watchGroup(g *group, t *thread, slot, main int, word uint64, stack model.StackKind) {
	w := &g.slots[slot]
	*w = groupWatch{owner: t, main: main}
	shared := &g.shared.Slots[slot]
	shared.Addr, shared.Main = word, uint32(main)
	for _, m := range g.members {
		m.shared.Others[slot] = 0
	}
	shared.Owner = t.index + 1
	if g.byCPU {
		for _, cpu := range s.cpus {
			s.watchOther(w, sampler.Reach{CPU: cpu}, slot, word, stack)
		}
		return
	}
	for _, m := range g.members {
		if m != t {
			s.watchOther(w, sampler.Reach{TID: m.tid}, slot, word, stack)
		}
	}
}

// watchOther opens one watchpoint. Where it can't, the owner's observation
// does not know all, and is lost.
func (s *Session) watchOther(w *groupWatch, reach sampler.Reach, slot int, word uint64, stack model.StackKind) {
	// On a CPU the owner's own accesses trap, too: those before the use, both ends, and what is looked at again.
	own := int(w.owner.shared.Slots[w.main].Skip) + 2 + s.trapsAgain()
	p, err := s.kernel.ArmOther(reach, slot, word, stack == model.StackPrivate, own)
	s.others++
	switch {
	case err == nil:
		w.points = append(w.points, p)
	case errors.Is(err, unix.ESRCH): // has exited
	default:
		s.otherFailed = err
		if o := w.owner.slots[w.main].obs; o != nil && w.main == slot {
			o.blind = true
		}
	}
}

// otherTrap takes a trap of another thread at what o's slot watches.
func (s *Session) otherTrap(o *observation, trap *sampler.Trap) {
	writer := func() int {
		by := s.byIndex[trap.From]
		if by == nil || by.tid != int(trap.Tid) { // has exited
			by = &thread{process: o.process, index: noThread}
		}
		return s.stacks.addTrap(by, s.accessing(o, trap), trap, 0)
	}
	if trap.Kind == sampler.TrapLine {
		for i := range o.line {
			if w := &o.line[i]; w.addr == trap.Addr && w.seen == nil {
				w.seen = &lineWrite{int(trap.Tid), trap.Ip, writer(), s.wallSince(trap)}
				if g := o.process.group; g != nil {
					g.written[wordAt(o.word)][wordAt(w.addr)]++
				}
			}
		}
		return
	}
	o.state, o.kind = done, model.Reuse
	if o.stack == model.StackPrivate {
		o.kind = model.Invalidated
	}
	o.reuse, o.endTID = writer(), int(trap.Tid)
	o.wall, o.end, o.counted = s.wallSince(trap), float64(trap.Time), 0
	s.over(o.stack, o.wall)
	s.pairs++
}

// wallSince is the time from the use to a trap, in ns, without what the use's
// own trap took.
func (s *Session) wallSince(trap *sampler.Trap) float64 {
	return max(float64(trap.Wall)-s.calibration.Cost, 1)
}

// noThread is no index of a thread.
const noThread = ^uint32(0)

// chooseStack says in which stack the next sample is observed.
func (s *Session) chooseStack(p *process) model.StackKind {
	switch {
	case p.group == nil:
		return model.StackOwn
	case s.cfg.Stack == SharedStack, s.cfg.Stack == BothStacks && s.rand.IntN(2) == 0:
		return model.StackShared
	}
	return model.StackPrivate
}

// onlineCPUs are the CPUs that any thread can run on.
func onlineCPUs() ([]int, error) {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	return parseCPUs(string(b))
}

// maxCPUs bounds what a list of CPUs can claim; Linux supports 8192.
const maxCPUs = 1 << 16

// parseCPUs reads a list such as 0-3,8.
func parseCPUs(list string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("list of CPUs %q: %w", list, err)
		}
		if first < 0 || last < first || last >= maxCPUs {
			return nil, fmt.Errorf("list of CPUs %q: %q is no range below %d", list, part, maxCPUs)
		}
		for c := first; c <= last; c++ {
			out = append(out, c)
		}
	}
	return out, nil
}
