package target

import (
	"bytes"
	"debug/elf"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/library"
)

// origin is what anonymous code was copied from: programs move their text to huge pages by putting anonymous memory with
// the same bytes in the place of their file.
type origin struct {
	neighbour *library.File // the file of a mapping beside it
	found     atomic.Pointer[copiedFrom]
}

type copiedFrom struct {
	offset uint64 // of the file that the mapping begins at
	name   string
}

// mayBeRemapped says of executable memory by its name whether it may be a program's text.
func mayBeRemapped(name string) bool {
	return name == "" || strings.HasPrefix(name, "[anon") || strings.HasPrefix(name, "/anon_hugepage")
}

// nearest bounds how many mappings away, and how far, a part of the same file is looked for.
const (
	nearestMappings = 4
	nearestBytes    = 4 << 30
)

// neighbourFile is the region of a file next to one, before it first.
func neighbourFile(regions []Region, i int) *Region {
	isFile := func(r *Region) bool {
		return r.key.Inode != 0 && strings.HasPrefix(r.File, "/") && !mayBeRemapped(r.File)
	}
	for d := 1; d <= nearestMappings; d++ {
		for _, j := range []int{i - d, i + d} {
			if j >= 0 && j < len(regions) && isFile(&regions[j]) && max(regions[i].Start, regions[j].Start)-min(regions[i].Start, regions[j].Start) < nearestBytes {
				return &regions[j]
			}
		}
	}
	return nil
}

// lookForOrigin has it found out what a region of code without a file is a copy of: the file beside it, if that has
// the very bytes there.
func (p *Process) lookForOrigin(m *Mapping, regions []Region, i int) {
	n := neighbourFile(regions, i)
	if n == nil {
		return
	}
	file := p.library.Hold(n.key, library.Place{Via: p.Via, Start: n.Start, Limit: n.Limit, Name: n.File, In: p.Facts})
	if file == nil {
		return
	}
	m.origin = &origin{neighbour: file}
	via, neighbour := p.Via, *n
	from, to, o := m.Start, m.Limit, m.origin
	p.library.Do(func() {
		if file.Err() != nil {
			return
		}
		for _, part := range partsIn(file.Loads(), &neighbour, from, to) {
			if sameBytes(via, from, min(to, from+part.end-part.off), file, part.off) {
				o.found.Store(&copiedFrom{part.off, neighbour.File})
				return
			}
		}
	})
}

// A filePart is a part of a file, up to the end of its code there.
type filePart struct{ off, end uint64 }

// partsIn are where in a file the code of a region may be, if the whole file is mapped at the distance at which the
// region beside it is. Segments share pages at their edges, so that it may be a part of either.
func partsIn(loads []elf.ProgHeader, neighbour *Region, from, to uint64) (all []filePart) {
	for _, l := range loads {
		if neighbour.offset+pageSize <= l.Off || neighbour.offset >= l.Off+l.Filesz {
			continue
		}
		bias := neighbour.Start - (l.Vaddr + neighbour.offset - l.Off)
		for _, x := range loads {
			first := bias + x.Vaddr&^(pageSize-1)
			if x.Flags&elf.PF_X != 0 && first <= from && from < bias+x.Vaddr+x.Filesz && to > from {
				all = append(all, filePart{from - bias - x.Vaddr + x.Off, x.Off + x.Filesz})
			}
		}
	}
	return all
}

const (
	comparedPages = 16
	// sameShare of the bytes must be equal: programs may patch their text, and probes do.
	sameShare = .95
)

// sameBytes compares pages of the process, spread evenly, with the file.
func sameBytes(pid int, from, to uint64, file *library.File, off uint64) bool {
	pages := (to - from) / pageSize
	if to <= from || pages == 0 {
		return false
	}
	theirs, ours := make([]byte, pageSize), make([]byte, pageSize)
	same, all := 0, 0
	for i := range min(pages, comparedPages) {
		at := i * pages / min(pages, comparedPages) * pageSize
		local := []unix.Iovec{{Base: &theirs[0], Len: pageSize}}
		if n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(from + at), Len: pageSize}}, 0); err != nil || n != pageSize {
			return false
		}
		n, _ := file.ReadAt(ours, int64(off+at))
		if len(bytes.Trim(theirs[:n], "\x00")) == 0 {
			continue // says nothing
		}
		for j := range n {
			if all++; theirs[j] == ours[j] {
				same++
			}
		}
	}
	return all > 0 && float64(same) > sameShare*float64(all)
}

// Code is the file that a mapping's code is of, nil if there is none, and the offset of its beginning.
func (m *Mapping) Code() (file *library.File, offset uint64) {
	if m.Held == nil && m.origin != nil {
		if o := m.origin.found.Load(); o != nil {
			return m.origin.neighbour, o.offset
		}
	}
	return m.Held, m.Offset
}

// takeOrigin makes the mapping one of the file that it is a copy of.
func (m *Mapping) takeOrigin() {
	if m.origin == nil {
		return
	}
	if o := m.origin.found.Load(); o != nil {
		m.Held, m.Offset, m.File = m.origin.neighbour, o.offset, o.name
		m.origin = nil
	}
}
