package sampler

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/bpf"
)

// MaxGroups is how many processes can share slots among their threads at a
// time.
const MaxGroups = 1024

// OtherLimit is how many traps the watchpoint of one other thread takes before
// it goes silent: some come before the use, and then it must not be used up,
// but all of them cost a thread that was not sampled.
const OtherLimit = 8

// Group is the slots that the threads of a process share, so that a datum can
// be watched in all of them. Shared with the BPF programs.
type Group = bpf.RDXGroup

// groupTable hands out the entries of the programs' table.
type groupTable struct {
	mem   []byte
	table []Group
	free  []uint32
}

func (g *groupTable) open(m *ebpf.Map) error {
	var err error
	size := MaxGroups * int(unsafe.Sizeof(Group{}))
	g.mem, err = unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map group table: %w", err)
	}
	g.table = unsafe.Slice((*Group)(unsafe.Pointer(&g.mem[0])), MaxGroups)
	for i := MaxGroups - 1; i >= 0; i-- {
		g.free = append(g.free, uint32(i))
	}
	return nil
}

func (g *groupTable) close() error {
	if g.mem == nil {
		return nil
	}
	return unix.Munmap(g.mem)
}

// AddGroup enters a group of slots in the table. Threads are in it whose Group
// is its number. It is valid until RemoveGroup.
func (k *Kernel) AddGroup(slots int) (number uint32, g *Group, err error) {
	free := k.groups.free
	if len(free) == 0 {
		return 0, nil, fmt.Errorf("add group: already %d processes that share slots, the most rdx watches at a time", MaxGroups)
	}
	i := free[len(free)-1]
	k.groups.free = free[:len(free)-1]
	g = &k.groups.table[i]
	*g = Group{Num: uint32(slots)}
	return i + 1, g, nil
}

// RemoveGroup takes the group out of the table. No thread may be in it.
func (k *Kernel) RemoveGroup(number uint32) { k.groups.free = append(k.groups.free, number-1) }

// SetUseCost tells the programs how long, in nanoseconds, a thread does not run
// after the program of a use trap has ended, until the program of a trap right
// after it begins.
func (k *Kernel) SetUseCost(ns float64) error {
	if err := k.obj.OtherLimit.Set(uint32(OtherLimit)); err != nil {
		return err
	}
	return k.obj.UseCost.Set(uint64(max(ns, 0)))
}

// SetCPUGroup says which group's threads are watched by CPU.
func (k *Kernel) SetCPUGroup(number uint32) error { return k.obj.CpuGroup.Set(number) }

// Blind is the bit of Slot.Blind that says of the datum that others may have touched it
// unseen.
const Blind = 1

// BlindWord is the bit that says of the word that a slot of the group watches in the datum's
// line that it may have been written unseen before the use.
func BlindWord(slot int) uint32 { return 2 << slot }

// ArmOther watches the word at addr in thread tid, which is not its user, for writes,
// or for any access, at most OtherLimit of them.
func (k *Kernel) ArmOther(tid, slot int, addr uint64, writes bool) (*Watchpoint, error) {
	kind := uint32(breakpointRW)
	if writes {
		kind = breakpointW
	}
	program, err := k.obj.program(otherProgram(slot))
	if err != nil {
		return nil, err
	}
	return arm(program, tid, addr, WordSize, kind, OtherLimit, false)
}
