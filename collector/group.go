package collector

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
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

// fewThreads are watched each by itself; more by CPU, if that is less.
const fewThreads = 16

// group is a process whose threads share their slots: what one of them used is
// watched in the others, too.
type group struct {
	*shares
	members []*thread
	running []int // of these, the numbers of those that ran at the last hold
	apart   []int // of these, those that were on another CPU than the held one
	parts   map[int]served
	byCPU   bool // watch CPUs instead of threads, from when there were many
	written estimate.LineSeen
}

// shares are the slots of a group, or of all those that are watched by CPU.
type shares struct {
	number uint32
	shared *sampler.Group
	slots  [sampler.NumSlots]groupWatch
}

// groupWatch is whom a slot of the group serves.
type groupWatch struct {
	owner  *thread
	main   int // owner's slot
	points []*sampler.Watchpoint
}

// groupWatches are what is watched in all threads of a process: the slots of groups, and the registers of CPUs. It
// belongs to the tracing thread.
type groupWatches struct {
	account *account
	cfg     *Config
	kernel  *sampler.Kernel
	rand    *rand.Rand
	timing  *timing
	watches *watches // the slots of threads, which those of groups serve

	groupOf     map[*target.Process]*group
	byCPU       *shares    // of processes that are watched by CPU, nil if there are none
	registers   *registers // of CPUs, likewise
	others      int        // watchpoints opened in other threads
	otherFailed error      // the last failure to watch another thread
	unwatched   int        // words of lines given up for another datum
	cpus        int        // online at the start
}

// groups says whether data are watched in all threads.
func (s *groupWatches) groups() bool { return s.cfg.Stack != OwnStack }

// several says whether a process has more than one thread.
func (s *groupWatches) several() bool {
	for _, g := range s.groupOf {
		if len(g.members) > 1 {
			return true
		}
	}
	return false
}

// join takes a thread into its process's group; what is being watched is
// watched in it, too, before its first instruction.
func (s *groupWatches) join(t *thread) error {
	p := t.process
	g := s.groupOf[p]
	if g == nil {
		slots := s.cfg.Slots
		if s.byCPU != nil {
			slots = min(slots, cpuSlots)
		}
		number, shared, err := s.kernel.AddGroup(slots)
		if err != nil {
			return err
		}
		g = &group{shares: &shares{number: number, shared: shared}}
		s.groupOf[p] = g
	}
	g.add(t)
	if !g.byCPU && s.many(len(g.members)-1) {
		err := s.watchByCPU(g)
		if err != nil {
			s.leave(t)
		}
		return err
	}
	if g.byCPU {
		return nil
	}
	for slot := range g.slots {
		w := &g.slots[slot]
		if w.owner == nil {
			continue
		}
		o := w.owner.slots[w.main].obs
		if o == nil || o.State == record.Done || o.State == record.Void {
			continue
		}
		if !s.watchOther(w, t.tid, slot, g.shared.Slots[slot].Addr, o.Stack) {
			s.vacate(g, slot) // known up to here
		}
	}
	return nil
}

func (s *groupWatches) leave(t *thread) {
	g := t.group
	if g.remove(t); len(g.members) == 0 {
		if !g.byCPU {
			s.kernel.RemoveGroup(g.number)
		}
		delete(s.groupOf, t.process)
	}
}

// add and remove keep the group's threads.
func (g *group) add(t *thread) {
	t.join(g)
	t.shared.Group, t.shared.Process = g.number, uint32(t.process.PID)
	g.members = append(g.members, t)
}

func (g *group) remove(t *thread) {
	t.join(nil)
	g.members = slices.DeleteFunc(g.members, func(m *thread) bool { return m == t })
}

// turnToCPUs has the group watched by CPU, by slots that it shares with other groups.
func (g *group) turnToCPUs(s *shares) {
	g.shares, g.byCPU = s, true
	for _, m := range g.members {
		m.shared.Group = g.number
	}
}

// vacate ends what a slot of the group serves.
func (s *groupWatches) vacate(g *group, slot int) {
	switch w := &g.slots[slot]; {
	case w.owner == nil:
	case w.main == slot:
		s.watches.retire(w.owner, slot)
	default: // a word of the line of another slot's datum
		s.cutWord(g, slot)
		s.closeOthers(g, slot)
	}
}

// occupy gives the slot to a thread of the group, free to nobody.
func (s *shares) occupy(slot int, t *thread) {
	s.slots[slot] = groupWatch{owner: t, main: slot}
	s.shared.Slots[slot].Owner = 0
}

func (s *shares) free(slot int) {
	s.slots[slot] = groupWatch{}
	s.shared.Slots[slot].Owner = 0
}

// closeOthers takes down the slot's watchpoints in other threads.
func (s *groupWatches) closeOthers(g *group, slot int) {
	if g.byCPU && g.slots[slot].owner != nil {
		// One that fails is given back and renewed, and counted.
		_ = s.registers.park(slot)
	}
	for _, p := range g.slots[slot].points {
		if err := p.Close(); err != nil {
			s.account.fail(err)
		}
	}
	g.free(slot)
}

// release frees all that serves the thread's slot.
func (g *group) release(s *groupWatches, t *thread, slot int) {
	g.releaseLine(s, t, slot)
	if w := &g.slots[slot]; w.owner == t && w.main == slot {
		s.closeOthers(g, slot)
	}
}

// releaseLine frees the slots that watch other words of the line of the datum in the
// thread's slot.
func (g *group) releaseLine(s *groupWatches, t *thread, slot int) {
	for i := range g.slots {
		if w := &g.slots[i]; i != slot && w.owner == t && w.main == slot {
			s.cutBlind(g, t, slot, i)
			s.closeOthers(g, i)
		}
	}
}

// watchOthers watches word, which t's slot is armed for, in all other threads,
// and for a private stack as many other words of its line as slots are free. It says
// why it can't watch the word, "" if it does.
func (s *groupWatches) watchOthers(t *thread, slot int, word uint64, o *observation) (failed model.Reason) {
	g := t.group
	if failed := s.watchGroup(g, t, slot, slot, word, o.Stack); failed != "" {
		return failed
	}
	if o.Stack != model.StackPrivate || len(g.members) < 2 {
		return ""
	}
	o.Lined = true
	var free []int
	for i := range int(g.shared.Num) {
		if g.slots[i].owner == nil && (!g.byCPU || s.registers.missing(i) == "" && s.registers.writes[i]) {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return ""
	}
	// In random order: registers may be fewer than slots, and which words are watched then
	// must not depend on where they are.
	words := estimate.DrawWords(s.rand, g.written.Scores(estimate.WordAt(word)), len(free), word&^(estimate.LineBytes-1))
	order := s.rand.Perm(len(words))
	for n, i := range order {
		if s.watchGroup(g, t, free[n], slot, words[i].Addr, o.Stack) != "" {
			s.closeOthers(g, free[n])
			order = order[:n]
			break
		}
	}
	o.Line = estimate.KeepWords(words, order)
	return ""
}

// cutWord notes that a word of a datum's line is not watched any more.
func (s *groupWatches) cutWord(g *group, slot int) {
	w := &g.slots[slot]
	main := &w.owner.shared.Slots[w.main]
	o := w.owner.slots[w.main].obs
	if o == nil || main.State == sampler.SlotDone {
		return
	}
	s.unwatched++
	for i := range o.Line {
		if o.Line[i].Addr != g.shared.Slots[slot].Addr {
			continue
		}
		o.Line[i].CutAt = 1
		if main.State == sampler.SlotUsed {
			o.Line[i].CutAt = max(float64(sampler.Monotonic())-float64(main.UseTime)-s.timing.calibration.Cost, 1)
		}
	}
}

// watchGroup watches a word by a slot of the group for t's slot main, and says why it can't,
// "" if it does.
func (s *groupWatches) watchGroup(g *group, t *thread, slot, main int, word uint64, stack model.StackKind) (failed model.Reason) {
	w := &g.slots[slot]
	*w = groupWatch{owner: t, main: main}
	shared := &g.shared.Slots[slot]
	shared.Addr, shared.Main = word, uint32(main)
	for _, m := range g.members {
		m.shared.Others[slot] = 0
	}
	shared.Owner = t.index + 1
	if g.byCPU {
		// The owner's own accesses trap, too: those before the use, and both ends.
		ownerTraps := int(t.shared.Slots[main].Skip) + 2
		if s.registers.move(slot, word, sampler.OtherLimit+ownerTraps) != nil {
			return model.RegisterFailed
		}
		return ""
	}
	for _, m := range g.members {
		if m != t && !s.watchOther(w, m.tid, slot, word, stack) {
			return model.ThreadsRefused
		}
	}
	return ""
}

// watchOther opens one watchpoint, and says whether it could: else what the slot watches is
// not known in all threads.
func (s *groupWatches) watchOther(w *groupWatch, tid, slot int, word uint64, stack model.StackKind) bool {
	p, err := s.kernel.ArmOther(tid, slot, word, stack == model.StackPrivate)
	s.others++
	switch {
	case err == nil:
		w.points = append(w.points, p)
	case errors.Is(err, unix.ESRCH): // has exited
	default:
		s.otherFailed = err
		return false
	}
	return true
}

// watchable says why a datum that a thread's hold has won a slot for can't be watched in
// others, "" if it can.
func (s *groupWatches) watchable(t *thread) model.Reason {
	if g := t.group; g != nil && g.byCPU {
		s.collectRegisters()
		return s.registers.missing(int(t.shared.HoldSlot))
	}
	return ""
}

// chooseStack says in which stack the next sample is observed.
// In one that is watched by CPU what is watched goes by the slot: see registers.stack.
func (s *groupWatches) chooseStack(g *group) model.StackKind {
	switch {
	case g == nil:
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

// othersRunning counts the threads of the group that run at the moment, beside t, which is held: those
// that don't wait for anything, but not more than have a CPU then. The profiler itself may have taken another one's CPU just now, so
// that who has one tells less. The process's CPU clock would need tens of milliseconds, for it learns of a thread that runs only
// once a tick of the kernel (1 to 10 ms), and many processes do not live as long. ok is false for threads that are watched by CPU, who are too many to be asked.
func (g *group) othersRunning(t *thread, cpus int, runsOn func(pid, tid int) (cpu int, runs bool)) (n int, ok bool) {
	if g.byCPU {
		return 0, false
	}
	g.running, g.apart = g.running[:0], g.apart[:0]
	heldOn := -1
	for _, m := range g.members {
		if m == t {
			continue
		}
		cpu, runs := runsOn(t.process.PID, m.tid)
		if !runs {
			continue
		}
		if len(g.running) == 0 {
			heldOn, _ = runsOn(t.process.PID, t.tid)
		}
		g.running = append(g.running, m.tid)
		if cpu != heldOn || cpu < 0 {
			g.apart = append(g.apart, m.tid)
		}
	}
	return min(len(g.running), max(cpus-1, 0)), true
}
