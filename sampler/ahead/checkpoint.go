package ahead

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sort"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/proc"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// A Checkpoint is what a thread had when it was held: its registers, and of the pages
// that its process can write those that its ways are likely to come by. With these the thread's way from there on
// can be interpreted later, while it runs on. Other pages are read when the way comes to them: where the thread
// has changed what it had read there, the way may become another one, which shows.
//
// Plan is for any goroutine, Take for the tracing thread, Replay again for any.
type Checkpoint struct {
	pid      int
	writable []extent // of the process, in order
	planned  []uint64 // pages to be copied, in order
	spans    []span   // that were
	data     []byte
	heat     map[uint64]float64 // of writable pages: how often ways came by them, the last ones most
	regs     registers
	machine  *machine
	memory   targetMemory
	space    space
	pagemap  *os.File
}

// span is pages that follow each other, copied to an offset of the data.
type span struct {
	start, bytes uint64
	at           uint64
}

const (
	// checkpointPages are copied of a held thread's process at most: a fifth of a millisecond.
	checkpointPages = 256
	// stackPages about the stack pointer are always.
	stackPages = 4
	// smallMapping is what is copied whole, as long as there is room: a program's variables.
	smallMapping = 64 * pageSize
	copyParts    = 512 // of IOV_MAX
	// cooling is by how much what ways came by counts less with each new one.
	cooling = 0.8
)

// NewCheckpoint returns a Checkpoint, to be used again and again.
func NewCheckpoint() *Checkpoint {
	return &Checkpoint{machine: newMachine(), heat: make(map[uint64]float64), data: make([]byte, (checkpointPages+stackPages)*pageSize)}
}

var errMoved = &Declined{Reason: "memory unmapped meanwhile"}

// Plan chooses the pages that will be copied. It takes milliseconds, and holds nobody.
func (c *Checkpoint) Plan(pid int) error {
	if c.pid != pid {
		c.pid = pid
		clear(c.heat)
	}
	if c.pagemap != nil {
		c.pagemap.Close()
	}
	var err error
	if c.pagemap, err = os.Open(fmt.Sprintf("/proc/%d/pagemap", pid)); err != nil {
		return fmt.Errorf("plan checkpoint: %w", err)
	}
	maps, err := proc.ReadMappings(c.pid)
	if err != nil {
		return fmt.Errorf("plan checkpoint: %w", err)
	}
	c.readMaps(maps)
	c.choosePages()
	c.memory.userfault.of(pid)
	return nil
}

// readMaps takes what /proc/PID/maps says.
func (c *Checkpoint) readMaps(maps []byte) {
	c.writable = c.writable[:0]
	c.space.reset()
	for m := range proc.Mappings(maps) {
		c.space.add(m)
		if m.Readable && m.Writable {
			c.writable = append(c.writable, extent{m.Start, m.Limit})
		}
	}
}

// choosePages plans those that ways came by, the hottest first, and as long as there is room small mappings.
func (c *Checkpoint) choosePages() {
	c.planned = c.planned[:0]
	for page := range c.heat {
		if c.isWritable(page) {
			c.planned = append(c.planned, page)
		} else {
			delete(c.heat, page)
		}
	}
	slices.SortFunc(c.planned, func(a, b uint64) int { return cmp.Or(cmp.Compare(c.heat[b], c.heat[a]), cmp.Compare(a, b)) })
	c.planned = c.planned[:min(len(c.planned), checkpointPages)]
	small := slices.Clone(c.writable)
	slices.SortStableFunc(small, func(a, b extent) int { return cmp.Compare(a.limit-a.start, b.limit-b.start) })
	chosen := make(map[uint64]bool, len(c.planned))
	for _, page := range c.planned {
		chosen[page] = true
	}
	pages := proc.NewPagemap(c.pagemap)
	for _, e := range small {
		if e.limit-e.start > smallMapping {
			break
		}
		for page := e.start; page < e.limit && len(c.planned) < checkpointPages; page += pageSize {
			if entry, _ := pages.Entry(page / pageSize); !chosen[page] && entry&pagemapThere != 0 {
				c.planned = append(c.planned, page)
			}
		}
	}
	slices.Sort(c.planned)
}

func (c *Checkpoint) isWritable(addr uint64) bool {
	i := sort.Search(len(c.writable), func(i int) bool { return c.writable[i].limit > addr })
	return i < len(c.writable) && c.writable[i].start <= addr
}

// present says whether a page is there, in memory or swapped out: what is not is zero, and to read it would bring it in.
func (c *Checkpoint) present(page uint64) bool {
	var entry [8]byte
	n, _ := c.pagemap.ReadAt(entry[:], int64(page/pageSize*8))
	return n == len(entry) && binary.NativeEndian.Uint64(entry[:])&pagemapThere != 0
}

// addPage adds a page to the last span, which may have so many bytes, or as one of
// its own.
func addPage(spans []span, page, at, most uint64) []span {
	if last := len(spans) - 1; last >= 0 && spans[last].start+spans[last].bytes == page && spans[last].bytes < most {
		spans[last].bytes += pageSize
		return spans
	}
	return append(spans, span{page, pageSize, at})
}

// find returns the span with an address.
func find(spans []span, addr uint64) (s span, ok bool) {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].start+spans[i].bytes > addr })
	if i == len(spans) || spans[i].start > addr {
		return s, false
	}
	return spans[i], true
}

// Take copies what was planned of the held thread tid. An error that is no
// *Declined is that of a thread that is gone.
func (c *Checkpoint) Take(l *Locator, tid int) error {
	if err := l.readRegs(c.pid, tid, 0); err != nil {
		return err
	}
	if l.InSyscall {
		return &Declined{Reason: "system call"}
	}
	if l.memory.userfault.of(c.pid); l.memory.userfault.scan.userfault() {
		return &Declined{Reason: errUserfault.Error()}
	}
	c.regs = l.regs
	if err := c.regs.LoadVector(&c.regs.Vector); err != nil {
		return &Declined{Reason: "registers not readable"}
	}
	c.regs.LoadVector = nil
	_, sp := unwindRegs(&c.regs)
	c.layOut(sp)
	return c.copyPages()
}

// layOut makes spans of what was planned and of the stack about sp.
func (c *Checkpoint) layOut(sp uint64) {
	pages := slices.Clip(c.planned)
	for i := range uint64(stackPages) {
		if page := sp&^(pageSize-1) + i*pageSize - pageSize; c.isWritable(page) {
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	pages = slices.Compact(pages)
	c.spans = c.spans[:0]
	for i, page := range pages {
		c.spans = addPage(c.spans, page, uint64(i)*pageSize, math.MaxUint64)
	}
}

// copyPages copies the spans; those that are gone by now are left out.
func (c *Checkpoint) copyPages() error {
	kept := c.spans[:0]
	for rest := c.spans; len(rest) > 0; {
		var remote [copyParts]unix.RemoteIovec
		part := rest[:min(len(rest), copyParts)]
		bytes := uint64(0)
		for i, s := range part {
			remote[i] = unix.RemoteIovec{Base: uintptr(s.start), Len: int(s.bytes)}
			bytes += s.bytes
		}
		n, err := unix.ProcessVMReadv(c.pid, []unix.Iovec{{Base: &c.data[part[0].at], Len: bytes}}, remote[:len(part)], 0)
		if err != nil && err != unix.EFAULT {
			return errMoved
		}
		copied := 0
		for left := uint64(max(n, 0)); copied < len(part) && part[copied].bytes <= left; copied++ {
			left -= part[copied].bytes
		}
		kept = append(kept, part[:copied]...)
		if rest = rest[copied:]; copied < len(part) {
			rest = rest[1:]
		}
	}
	c.spans = kept
	return nil
}

// ReadPage implements interp.Memory: from the copies, or what no copy was made of
// from the process.
func (c *Checkpoint) ReadPage(addr uint64, buf *[4096]byte) error {
	if c.space.isFresh(addr) {
		clear(buf[:])
		return nil
	}
	writable := c.isWritable(addr)
	if writable {
		c.heat[addr]++
	}
	if s, ok := find(c.spans, addr); ok {
		copy(buf[:], c.data[s.at+addr-s.start:])
		return nil
	}
	if writable && !c.present(addr) {
		clear(buf[:])
		return nil
	}
	c.memory.begin(c.pid, 1)
	return c.memory.ReadPage(addr, buf)
}

// Replayed is what came of following a thread's way.
type Replayed struct {
	// Accesses made from the checkpoint to each of the stamps, -1 where it was not
	// reached, or can't be told from others.
	Accesses []int
	// End is why the way ended before the last stamp; "" if it did not.
	End string
	// Instructions interpreted.
	Instructions int
	// PerNS is how many of them a nanosecond had, until the stamp where that was most; 0 if
	// none was reached.
	PerNS float64
	// Code is where accesses were made: of each short piece of the way a random one.
	Code []CodeAt
}

// CodeAt is the instruction of one access of a piece of a replay's way, which ends when
// Until accesses have been made from the checkpoint.
type CodeAt struct {
	PC    uint64
	Until int
}

const (
	// perNS bounds the instructions of a nanosecond: a thread that is not found where
	// it was has gone another way.
	perNS = 24
	// mostReplayed instructions are interpreted, in a tenth of a second or less; the stamps
	// that lie beyond are not reached.
	mostReplayed = 6e6
	// beyond the last stamp it is followed by so much of the way, lest it comes to the
	// same place again.
	beyond = 1.1
	// muchFaster is how many times as fast as it was met to be a thread may be, for it to be followed no farther.
	muchFaster = 2
)

// Diverged: gone another way, as where the thread read what another has written
// meanwhile.
const Diverged = "went another way"

// replayPiece is so small that what is noted of its accesses stays in the first cache.
var replayPiece = interp.Limit{Accesses: 512, Instructions: 1 << 16}

// Replay interprets from the checkpoint through the moments of the stamps, which
// are in order: the thread was there if all its general registers are the same, and
// what lies where they point to. Where they are so more than once, at different numbers of accesses, it is
// not known which it was.
//
// usual is how many instructions a nanosecond other ways had, 0 if that is not known: where no stamp is met it is given up
// the sooner. fast is how many a nanosecond has where no data are waited for: what is met much sooner than that lets expect may
// have been met by a program that comes to the very same place in each of its rounds.
func (c *Checkpoint) Replay(stamps []sampler.Stamp, usual, fast float64) (r Replayed) {
	for page, heat := range c.heat {
		if heat *= cooling; heat < 0.01 {
			delete(c.heat, page)
		} else {
			c.heat[page] = heat
		}
	}
	m := c.machine
	m.Start(&c.regs, c)
	met := newMeetings(stamps)
	met.usual, met.fast = usual, fast
	m.Waypoints().Set(met.open())
	for accesses := 0; ; {
		end := m.Run(replayPiece)
		if made := m.Accesses(); len(made) > 0 {
			accesses += len(made)
			r.Code = append(r.Code, CodeAt{made[rand.IntN(len(made))].PC, accesses})
		}
		r.Instructions += end.Instructions
		switch {
		case end.Cause == interp.Arrived:
			if met.at(m.Waypoints().Which(), m.Waypoints().Others() == 0, accesses, r.Instructions, m.Load) {
				m.Waypoints().Set(met.open())
			}
		case end.Cause == interp.Syscall && c.call(m):
		case end.Cause != interp.AccessesDone && end.Cause != interp.InstructionLimit:
			if r.End = ending(end); end.Cause == interp.Syscall {
				number, _ := m.Called()
				r.End += fmt.Sprintf(" %d", number)
			}
		}
		if r.End != "" || r.Instructions > min(met.far(), mostReplayed) {
			break
		}
	}
	r.Accesses, r.PerNS = met.accesses(), met.perNS()
	if r.End == "" && !slices.ContainsFunc(r.Accesses, func(n int) bool { return n >= 0 }) {
		r.End = Diverged
	}
	return r
}

// meetings are where a replay came to stamps.
type meetings struct {
	usual float64 // instructions a nanosecond, of other ways; 0 if that is not known
	fast  float64 // where no data are waited for; 0 likewise
	all   []meeting
	which []int // of all, by the number of the machine's waypoint
}

type meeting struct {
	waypoint               interp.Waypoint
	stamp                  *sampler.Stamp
	clock                  uint64
	accesses, instructions int // when it was met first, or -1
	several                bool
	// like is when all but one of its registers were first met, or all with other things near them: what was read
	// late may be another value by then; 0 if never. likes says that this was so at other numbers of accesses, too.
	like, likeInstructions int
	likes                  bool
}

func newMeetings(stamps []sampler.Stamp) *meetings {
	m := new(meetings)
	for i := range stamps {
		m.all = append(m.all, meeting{waypoint: looseWaypoint(&stamps[i]), stamp: &stamps[i], clock: stamps[i].Clock, accesses: -1})
	}
	for i := range m.all {
		for j := range m.all {
			if i != j && m.all[i].waypoint == m.all[j].waypoint && stamps[i].Near == stamps[j].Near {
				m.all[i].several = true
			}
		}
	}
	return m
}

// looseWaypoint is the waypoint of a stamp where one register may be another.
func looseWaypoint(s *sampler.Stamp) interp.Waypoint {
	w := s.Waypoint()
	w.Slack = 1
	return w
}

// open are the waypoints that may still be met.
func (m *meetings) open() []interp.Waypoint {
	var out []interp.Waypoint
	m.which = m.which[:0]
	for i := range m.all {
		if !m.all[i].several {
			m.which = append(m.which, i)
			out = append(out, m.all[i].waypoint)
		}
	}
	return out
}

// at notes that the machine's waypoint was met, in all registers or in all but one, and says whether others are open now. load
// reads what lies near the registers then.
func (m *meetings) at(waypoint int, all bool, accesses, instructions int, load func(addr uint64, b []byte) bool) (changed bool) {
	first := &m.all[m.which[waypoint]]
	for i := range m.all {
		// Several may have the same registers.
		switch e := &m.all[i]; {
		case e.several || e.waypoint.PC != first.waypoint.PC || e.waypoint.Regs != first.waypoint.Regs:
		case all && nearStamp(e.stamp, load):
			return e.meet(accesses, instructions)
		case e.like == 0:
			e.like, e.likeInstructions = accesses, instructions
		case e.like != accesses && !e.likes:
			e.likes, e.waypoint.Slack, changed = true, 0, true
		}
	}
	return changed
}

// nearStamp says whether the memory that registers point to is what the stamp has. What
// can't be read is zero.
func nearStamp(s *sampler.Stamp, load func(addr uint64, b []byte) bool) bool {
	var b [len(s.Near[0])]byte
	for i, addr := range s.Pointers() {
		if !load(addr, b[:]) {
			clear(b[:])
		}
		if b != s.Near[i] {
			return false
		}
	}
	return true
}

func (e *meeting) meet(accesses, instructions int) bool {
	if e.accesses < 0 {
		e.accesses, e.instructions = accesses, instructions
	}
	e.several = e.accesses != accesses
	return e.several
}

// madeAt is after how many accesses and instructions the stamp was made, -1 where that is not known: where its registers were
// met with what lay near them, or else, if there is but one such place, without.
func (e *meeting) madeAt() (accesses, instructions int) {
	switch {
	case e.several:
		return -1, -1
	case e.accesses < 0 && e.like > 0 && !e.likes:
		return e.like, e.likeInstructions
	}
	return e.accesses, e.instructions
}

// far is after how many instructions the last stamp must have been met, if those
// that were tell anything: code becomes faster in the course of it, not slower by
// much.
func (m *meetings) far() int {
	last := &m.all[len(m.all)-1]
	perNano := 0.0
	for i := range m.all {
		if e := &m.all[i]; e.accesses >= 0 && !e.several {
			perNano = max(perNano, float64(e.instructions)/float64(e.clock))
		}
	}
	switch {
	case last.accesses >= 0 || last.several:
		if perNano < m.fast/muchFaster {
			perNano = m.fast
		}
		return int(max(beyond*perNano*float64(last.clock), 1))
	case perNano > 0:
		return int(min(3*perNano, perNS) * float64(last.clock))
	case m.usual > 0:
		return int(min(6*m.usual, perNS) * float64(last.clock))
	}
	return int(perNS * float64(last.clock))
}

// perNS is how many instructions a nanosecond had until the stamp before which it had
// most, 0 if it is not known of any.
func (m *meetings) perNS() (most float64) {
	for i := range m.all {
		if accesses, instructions := m.all[i].madeAt(); accesses >= 0 {
			most = max(most, float64(instructions)/float64(m.all[i].clock))
		}
	}
	return most
}

// accesses is how many had been made at each stamp, -1 where that is not known. In
// order they must be.
func (m *meetings) accesses() []int {
	out := make([]int, len(m.all))
	for i := range m.all {
		out[i], _ = m.all[i].madeAt()
	}
	return out
}
