package ahead

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/proc"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/clock"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// A Checkpoint is what a thread had when it was held: its registers, and the
// pages that its process can write. With these the thread's way from there on
// can be interpreted later, while it runs on: what the pages hold by then does
// not matter. What can't be written is read when it is needed.
//
// Plan is for any goroutine, Take for the tracing thread, Replay again for any.
type Checkpoint struct {
	pid     int
	spans   []span // in order, as zeros are
	zeros   []span // anonymous pages that are not there yet
	data    []byte
	regs    registers
	machine *machine
	memory  targetMemory
	files   files
	space   space
	pagemap *os.File
}

// span is pages that follow each other, copied to an offset of the data.
type span struct {
	start, bytes uint64
	at           uint64
}

const (
	// CheckpointMost is how much memory is copied of a held thread's process, some
	// 0.2 ms a MB; of a larger one there is no checkpoint.
	CheckpointMost = 32 << 20
	// checkpointTime is when copying is given up.
	checkpointTime = 7 * time.Millisecond
	copyPiece      = 1 << 20
	copyParts      = 512 // of IOV_MAX
)

// NewCheckpoint returns a Checkpoint, to be used again and again.
func NewCheckpoint() *Checkpoint { return &Checkpoint{machine: newMachine()} }

var (
	errLarge = &Declined{Reason: "more memory than can be copied"}
	errSlow  = &Declined{Reason: "memory not copied in time"}
	errMoved = &Declined{Reason: "memory unmapped meanwhile"}
)

// Plan finds out whether a process's memory can be copied, and makes room for it.
// It takes milliseconds, and holds nobody.
func (c *Checkpoint) Plan(pid int) error {
	c.pid = pid
	if c.pagemap != nil {
		c.pagemap.Close()
	}
	var err error
	if c.pagemap, err = os.Open(fmt.Sprintf("/proc/%d/pagemap", pid)); err != nil {
		return fmt.Errorf("plan checkpoint: %w", err)
	}
	total, err := c.scan()
	if err != nil {
		return err
	}
	if uint64(len(c.data)) < total+room {
		// Filled here, so that the thread need not be held while the kernel does.
		c.data = make([]byte, total+total/4+room)
		for i := 0; i < len(c.data); i += pageSize {
			c.data[i] = 1
		}
	}
	c.memory.userfault.of(pid)
	return c.files.plan(pid)
}

// room for what a process takes between Plan and Take.
const room = 1 << 20

// scan finds the pages that the process can write and that are there.
func (c *Checkpoint) scan() (total uint64, err error) {
	c.spans, c.zeros = c.spans[:0], c.zeros[:0]
	c.space.reset()
	maps, err := proc.ReadMappings(c.pid)
	if err != nil {
		return 0, fmt.Errorf("plan checkpoint: %w", err)
	}
	reach := uint64(0)
	for m := range proc.Mappings(maps) {
		c.space.add(m)
		if !m.Readable || !m.Writable {
			continue
		}
		if reach += m.Limit - m.Start; reach > scanMost {
			return 0, errLarge
		}
		if err := c.addPresent(m.Start, m.Limit, m.Inode == 0, &total); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// scanMost bounds the address space that is looked through in a hold: half a
// millisecond.
const scanMost = 256 << 20

// addPresent adds the pages from start to limit: to be copied those that are there,
// and those of anonymous memory that the program has not touched as zero.
func (c *Checkpoint) addPresent(start, limit uint64, anonymous bool, total *uint64) error {
	var entries [8 * 512]byte
	for at := start; at < limit; at += pageSize * 512 {
		n := min((limit-at)/pageSize, 512)
		if got, _ := c.pagemap.ReadAt(entries[:8*n], int64(at/pageSize*8)); got < int(8*n) {
			return errMoved
		}
		for i := range n {
			entry, page := binary.NativeEndian.Uint64(entries[8*i:]), at+i*pageSize
			switch {
			case entry&pagemapPresent != 0:
				c.spans = addPage(c.spans, page, *total, copyPiece)
			case anonymous && entry&pagemapSwapped == 0:
				c.zeros = addPage(c.zeros, page, 0, math.MaxUint64)
				continue
			default:
				continue
			}
			if *total += pageSize; *total > CheckpointMost {
				return errLarge
			}
		}
	}
	return nil
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
	start := clock.Monotonic()
	total, err := c.scan()
	if err != nil {
		return err
	}
	if total > uint64(len(c.data)) {
		return errLarge
	}
	c.files.take()
	for from := 0; from < len(c.spans); {
		if clock.Monotonic()-start > checkpointTime {
			return errSlow
		}
		to, bytes := from, uint64(0)
		var remote []unix.RemoteIovec
		for ; to < len(c.spans) && to-from < copyParts && bytes < copyPiece; to++ {
			s := c.spans[to]
			remote = append(remote, unix.RemoteIovec{Base: uintptr(s.start), Len: int(s.bytes)})
			bytes += s.bytes
		}
		at := c.spans[from].at
		n, err := unix.ProcessVMReadv(c.pid, []unix.Iovec{{Base: &c.data[at], Len: bytes}}, remote, 0)
		if err != nil || uint64(n) < bytes {
			return errMoved
		}
		from = to
	}
	return nil
}

// ReadPage implements interp.Memory: from the copies, or what no copy was made of
// from the process.
func (c *Checkpoint) ReadPage(addr uint64, buf *[4096]byte) error {
	if c.space.isFresh(addr) {
		clear(buf[:])
		return nil
	}
	if s, ok := find(c.spans, addr); ok {
		copy(buf[:], c.data[s.at+addr-s.start:])
		return nil
	}
	if _, ok := find(c.zeros, addr); ok {
		clear(buf[:])
		return nil
	}
	c.memory.pid, c.memory.pages = c.pid, 1
	err := c.memory.ReadPage(addr, buf)
	return err
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
	// mostReplayed instructions are interpreted, in two seconds or less; the stamps
	// that lie beyond are not reached.
	mostReplayed = 100e6
	// beyond the last stamp it is followed by so much of the way, lest it comes to the
	// same place again.
	beyond = 1.1
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
func (c *Checkpoint) Replay(stamps []sampler.Stamp) (r Replayed) {
	c.files.reopen()
	defer c.files.close()
	m := c.machine
	m.Start(&c.regs, c)
	met := newMeetings(stamps)
	m.StopAt().Set(met.open())
	for accesses := 0; ; {
		end := m.Run(replayPiece)
		if made := m.Accesses(); len(made) > 0 {
			accesses += len(made)
			r.Code = append(r.Code, CodeAt{made[rand.IntN(len(made))].PC, accesses})
		}
		r.Instructions += end.Instructions
		switch {
		case end.Cause == interp.Arrived:
			if met.at(m.StopAt().Which(), accesses, r.Instructions, m.Load) {
				m.StopAt().Set(met.open())
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
	all   []meeting
	which []int // of all, by the number of the machine's stop
}

type meeting struct {
	stop                   interp.Stop
	stamp                  *sampler.Stamp
	clock                  uint64
	accesses, instructions int // when it was met first, or -1
	several                bool
}

func newMeetings(stamps []sampler.Stamp) *meetings {
	m := new(meetings)
	for i := range stamps {
		m.all = append(m.all, meeting{stop: stamps[i].Stop(), stamp: &stamps[i], clock: stamps[i].Clock, accesses: -1})
	}
	for i := range m.all {
		for j := range m.all {
			if i != j && m.all[i].stop == m.all[j].stop && stamps[i].Near == stamps[j].Near {
				m.all[i].several = true
			}
		}
	}
	return m
}

// open are the stops that may still be met.
func (m *meetings) open() []interp.Stop {
	var out []interp.Stop
	m.which = m.which[:0]
	for i := range m.all {
		if !m.all[i].several {
			m.which = append(m.which, i)
			out = append(out, m.all[i].stop)
		}
	}
	return out
}

// at notes that the machine's stop was met, and says whether others are open now. load
// reads what lies near the registers then.
func (m *meetings) at(stop, accesses, instructions int, load func(addr uint64, b []byte) bool) bool {
	first := &m.all[m.which[stop]]
	for i := range m.all {
		// Several may have the same registers.
		if e := &m.all[i]; !e.several && e.stop == first.stop && nearStamp(e.stamp, load) {
			return e.meet(accesses, instructions)
		}
	}
	return false
}

func (e *meeting) meet(accesses, instructions int) bool {
	if e.accesses < 0 {
		e.accesses, e.instructions = accesses, instructions
	}
	e.several = e.accesses != accesses
	return e.several
}

// far is after how many instructions the last stamp must have been met, if those
// that were tell anything: code becomes faster in the course of it, not slower by
// much.
func (m *meetings) far() int {
	last := &m.all[len(m.all)-1]
	perNano := m.perNS()
	switch {
	case last.accesses >= 0 || last.several:
		return int(max(beyond*perNano*float64(last.clock), 1))
	case perNano > 0:
		return int(min(3*perNano, perNS) * float64(last.clock))
	}
	return int(perNS * float64(last.clock))
}

// perNS is how many instructions a nanosecond had until the stamp before which it had
// most, 0 if none was met.
func (m *meetings) perNS() (most float64) {
	for i := range m.all {
		if e := &m.all[i]; e.accesses >= 0 && !e.several {
			most = max(most, float64(e.instructions)/float64(e.clock))
		}
	}
	return most
}

// accesses is how many had been made at each stamp, -1 where that is not known. In
// order they must be.
func (m *meetings) accesses() []int {
	out := make([]int, len(m.all))
	for i := range m.all {
		if out[i] = m.all[i].accesses; m.all[i].several {
			out[i] = -1
		}
	}
	return out
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
