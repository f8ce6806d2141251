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
	ticks    uint64 // of the processor's clock, when the thread was held
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
	c.ticks = processorTime()
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
)

// Diverged: gone another way, as where the thread read what another has written
// meanwhile.
const Diverged = "went another way"

// NoRoom is why a way ended that came by more pages than there is room for.
var NoRoom = interp.MemoryLimit.String()

// replayPiece is so small that what is noted of its accesses stays in the first cache.
var replayPiece = interp.Limit{Accesses: 512, Instructions: 1 << 16}

// Replay interprets from the checkpoint through the moments of the stamps, which
// are in order, and finds where the way came to them (meetings).
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
	m.SetTime(c.ticks)
	m.Recycle()
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
			if met.at(m.Waypoints().Others, accesses, r.Instructions, m.Load) {
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
