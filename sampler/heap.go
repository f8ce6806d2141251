package sampler

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler/objfile"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// HeapProbes record where a process allocates its blocks of memory, by uprobes
// on malloc and its kin.
//
// The kernel puts a breakpoint into the process's own copy of the functions'
// code, and for their returns one into the return address on the stack: the only
// thing rdx does that changes a target's memory. The probes go with their file
// descriptors, however this process ends.
//
// The table is bounded: MaxBlocks places and sizes. What finds no room is counted.
type HeapProbes struct {
	obj      bpf.HeapObjects
	pmu      uint32
	retprobe uint64 // config

	mu     sync.Mutex // of what follows
	events []int
	probed map[fileID]bool
}

// MaxBlocks that are known at a time.
const MaxBlocks = 65536

type fileID struct {
	pid      int
	dev, ino uint64
}

// Block is one block of memory.
type Block struct {
	Base, Size uint64
	// Stack is that of the call which allocated it, from the entry of malloc, as
	// far as it was copied.
	Stack *unwind.Snapshot
}

// LoadHeapProbes needs a kernel with uprobes.
func LoadHeapProbes() (*HeapProbes, error) {
	const pmu = "/sys/bus/event_source/devices/uprobe/"
	kind, err := os.ReadFile(pmu + "type")
	if err != nil {
		return nil, fmt.Errorf("heap probes: %w (the kernel has no uprobes: CONFIG_UPROBE_EVENTS)", err)
	}
	h := &HeapProbes{probed: make(map[fileID]bool), retprobe: 1}
	n, err := strconv.ParseUint(strings.TrimSpace(string(kind)), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("heap probes: type of uprobe events: %w", err)
	}
	h.pmu = uint32(n)
	if format, err := os.ReadFile(pmu + "format/retprobe"); err == nil {
		if n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(string(format)), "config:"), 10, 6); err == nil {
			h.retprobe = 1 << n
		}
	}
	if err := bpf.LoadHeapObjects(&h.obj, nil); err != nil {
		return nil, fmt.Errorf("heap probes: load bpf: %w", err)
	}
	return h, nil
}

// Close takes all probes out.
func (h *HeapProbes) Close() error {
	if h == nil {
		return nil
	}
	// A probing that never comes back, as the file system doesn't, is not waited for: the probes
	// go with this process.
	for tries := 0; tries < 100; tries++ {
		if h.mu.TryLock() {
			for _, fd := range h.events {
				unix.Close(fd)
			}
			h.events = nil
			h.mu.Unlock()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return h.obj.Close()
}

// Probe puts probes on the allocators that a file defines, in one process. A file
// without any is no error, nor one that is probed already. It reads the file and may have to
// wait for that: any goroutine may call it but the one that holds threads.
func (h *HeapProbes) Probe(pid int, f *os.File) error {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd()) // the very file, for the kernel, too
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return fmt.Errorf("heap probes: %s: %w", f.Name(), err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id := fileID{pid, stat.Dev, stat.Ino}
	if h.probed[id] {
		return nil
	}
	h.probed[id] = true
	offsets, err := functions(f)
	if err != nil {
		return nil // no program: a file that is mapped as code for other ends
	}
	for _, p := range []struct {
		entry, exit *ebpf.Program
		names       []string
	}{
		{h.obj.OnMalloc, h.obj.OnReturn, []string{"malloc"}},
		{h.obj.OnCalloc, h.obj.OnReturn, []string{"calloc"}},
		{h.obj.OnSecond, h.obj.OnReturn, []string{"realloc", "aligned_alloc", "memalign", "mmap"}},
		{h.obj.OnPosixMemalign, h.obj.OnReturn, []string{"posix_memalign"}},
	} {
		for _, name := range p.names {
			at, ok := offsets[name]
			if !ok {
				continue
			}
			if err := h.open(pid, path, at, 0, p.entry); err != nil {
				return fmt.Errorf("heap probes: %s in %s: %w", name, f.Name(), err)
			}
			if err := h.open(pid, path, at, h.retprobe, p.exit); err != nil {
				return fmt.Errorf("heap probes: return of %s in %s: %w", name, f.Name(), err)
			}
		}
	}
	return nil
}

func (h *HeapProbes) open(pid int, path string, offset, config uint64, program *ebpf.Program) error {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{
		Type:   h.pmu,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config: config,
		Ext1:   uint64(uintptr(unsafe.Pointer(name))),
		Ext2:   offset,
	}
	fd, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	runtime.KeepAlive(name)
	if err != nil {
		return explainRefused(fmt.Errorf("perf_event_open: %w", err))
	}
	h.events = append(h.events, fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, program.FD()); err != nil {
		return fmt.Errorf("attach program: %w", err)
	}
	return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
}

// functions are the file's by name, as offsets in the file.
func functions(r io.ReaderAt) (map[string]uint64, error) {
	f, err := objfile.Open(r)
	if err != nil {
		return nil, err
	}
	out := make(map[string]uint64)
	for _, table := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		symbols, _ := table() // one of them may be missing
		for _, s := range symbols {
			if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF {
				continue
			}
			for _, p := range f.Progs {
				if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && s.Value-p.Vaddr < p.Filesz {
					out[s.Name] = s.Value - p.Vaddr + p.Off
				}
			}
		}
	}
	return out, nil
}

// Find returns the block that was last allocated around an address; ok is false
// if none is known.
func (h *HeapProbes) Find(pid int, addr uint64) (found Block, ok bool) {
	var classes uint64
	if h.obj.Classes.Get(&classes) != nil {
		return Block{}, false
	}
	var latest uint64
	var b bpf.HeapBlock
	for ; classes != 0; classes &= classes - 1 {
		class := bits.TrailingZeros64(classes)
		shift := class - 1
		for back := range uint64(3) { // it may be two windows long
			window := addr>>shift - back
			if window > addr>>shift {
				break
			}
			key := bpf.HeapBlockKey{Pid: uint32(pid), Class: uint32(class), Window: window}
			if h.obj.Blocks.Lookup(&key, &b) != nil || addr-b.Base >= b.Size || b.Time < latest {
				continue
			}
			latest, ok = b.Time, true
			regs, sp := stackRegs(&bpf.RDXStackHead{Regs: b.Regs})
			found = Block{b.Base, b.Size, &unwind.Snapshot{Regs: regs, Stack: unwind.Stack{Base: sp, Data: append([]byte(nil), b.Stack[:]...)}}}
		}
	}
	return found, ok
}

// Allocated is how many blocks were seen, and how many of them found no room in
// the table.
func (h *HeapProbes) Allocated() (all, full uint64, err error) {
	return all, full, errors.Join(h.obj.Allocated.Get(&all), h.obj.Full.Get(&full))
}
