// Package gpu has exact analyses done by a GPU: it starts rdx-gpu, a program of its own that alone knows the GPU's
// driver, and speaks to it. Touches go through memory that both have mapped, and all else through pipes. When the driver
// crashes, rdx-gpu is gone and this process has an error.
//
// The package is rdx's own and may change.
package gpu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/exact"
)

// Protocol is the version of what follows; rdx and rdx-gpu are built together.
const Protocol = 1

// SlotRuns is how many runs of touches a slot of the shared memory has room for, and Slots the number of slots.
const (
	SlotRuns = 1 << 16
	Slots    = 24
)

// SharedFD is the file of the shared memory in rdx-gpu.
const SharedFD = 3

// Request is what rdx asks of rdx-gpu. One field is set.
type Request struct {
	Start  *Start
	Touch  *Touch
	Count  *Count
	Taken  bool // of what Reply.Found said
	Finish bool
}

// Start begins the analysis; it is the first request.
type Start struct {
	Protocol int
	Device   string // a number of the list, a part of a name, or "" for the first GPU
	Edges    []uint64
	Untimed  bool
	Segment  int // 0 is the device's default
	Piece    int // of an approximate merge; 0 is exact
	Each     bool
	// Private is for requests of Count only.
	Private bool
}

// Touch is a slot with so many runs.
type Touch struct{ Slot, Runs int }

// Count asks how many elements before each one are greater than what it asks for: see Shared.Count.
type Count struct {
	N      int
	Values uint32 // all are below
}

// Reply is what rdx-gpu answers. One field is set.
type Reply struct {
	Ready   *Ready
	Free    int  // 1 + a slot that was read
	Found   int  // distances and times in the shared memory, of the next touches
	Counted bool // the answer to Count is in the shared memory
	Done    *exact.Counted
	Error   string
}

// Ready says what device it is.
type Ready struct {
	Device  string
	Memory  uint64
	Segment int
}

// Info is a device of the list.
type Info struct {
	Number   int    `json:"number"`
	Name     string `json:"name"`
	Platform string `json:"platform"`
	Vendor   string `json:"vendor"`
	Driver   string `json:"driver"`
	Version  string `json:"opencl"`
	Kind     string `json:"kind"`
	Units    uint32 `json:"compute_units"`
	Memory   uint64 `json:"memory_bytes"`
	MaxAlloc uint64 `json:"largest_buffer_bytes"`
	Local    uint64 `json:"local_memory_bytes"`
	Group    uint64 `json:"largest_work_group"`
	Segment  int    `json:"segment_touches"` // the default
	Blocks   uint64 `json:"most_blocks"`     // distinct ones that an analysis has room for, about
	Unfit    string `json:"unfit,omitempty"` // why it can't be used
}

// Shared is the memory that rdx and rdx-gpu have mapped: slots of touches, and room for what is found of each touch.
type Shared struct {
	memory []byte
	found  []byte
}

const slotBytes = SlotRuns * 9

func sharedBytes(found int) int { return Slots*slotBytes + foundBytes*found }

// foundBytes is what is found of a touch: two numbers of 64 bits.
const foundBytes = 16

// MapShared maps the memory of a file.
func MapShared(fd int) (*Shared, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("map shared memory: %w", err)
	}
	if st.Size < int64(sharedBytes(0)) {
		return nil, fmt.Errorf("map shared memory: %d bytes, want %d or more (consider: rdx and rdx-gpu of one build)", st.Size, sharedBytes(0))
	}
	m, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map shared memory: %w", err)
	}
	return &Shared{m, m[Slots*slotBytes:]}, nil
}

// Close unmaps the memory.
func (s *Shared) Close() error {
	m := s.memory
	if s.memory, s.found = nil, nil; m == nil {
		return nil
	}
	return unix.Munmap(m)
}

// Slot is the room of a slot.
func (s *Shared) Slot(k int) (blocks []uint64, runs []uint8) {
	part := s.memory[k*slotBytes : (k+1)*slotBytes]
	return unsafe.Slice((*uint64)(unsafe.Pointer(&part[0])), SlotRuns), part[8*SlotRuns:]
}

// room is for how many touches there is room.
func (s *Shared) room() int { return len(s.found) / foundBytes }

// Found is the distances and times of n touches.
func (s *Shared) Found(n int) (dists, times []uint64, err error) {
	if n < 1 || n > s.room() {
		return nil, nil, fmt.Errorf("shared memory: %d touches found, and room for %d", n, s.room())
	}
	all := unsafe.Slice((*uint64)(unsafe.Pointer(&s.found[0])), 2*s.room())
	return all[:n], all[s.room():][:n], nil
}

// Count is room for n elements: those counted, those asked for, both plus one, with 0 for none, and the answers: of each that is
// asked for, how many counted before it are greater.
func (s *Shared) Count(n int) (counted, asked, greater []uint32, err error) {
	if n < 1 || n > s.room() {
		return nil, nil, nil, fmt.Errorf("shared memory: %d elements to count, and room for %d", n, s.room())
	}
	all := unsafe.Slice((*uint32)(unsafe.Pointer(&s.found[0])), 4*s.room())
	return all[:n], all[s.room():][:n], all[2*s.room():][:n], nil
}
