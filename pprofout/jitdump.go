package pprofout

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// A jitdump is what a JIT compiler writes for perf inject: names, code and lines, in records (linux,
// tools/perf/Documentation/jitdump-specification.txt).
const (
	dumpMagic      = 0x4a695444
	dumpLoad       = 0
	dumpMove       = 1
	dumpDebug      = 2
	mostDump       = 1 << 30
	mostDumpName   = 64 << 10
	mostDumpDebug  = 4 << 20
	dumpHeaderSize = 40
)

var errDumpCut = errors.New("cut off")

// dumpLines are the lines of a piece of code, by address.
type dumpLines []dumpLine

type dumpLine struct {
	addr uint64
	line int
	file string
}

// readJITDump names the given sorted addresses. Where code has come to the place of other code the
// last wins. What was read before damage is valid beside the error.
func readJITDump(r io.ReaderAt, pcs []uint64) ([][]model.Line, error) {
	d := dump{in: bufio.NewReaderSize(io.NewSectionReader(r, 0, mostDump), 1<<16), pcs: pcs,
		claims: claims[dumpCode]{addresses: len(pcs)}, debug: make(map[uint64]dumpLines), named: make(map[uint64]string)}
	err := d.read()
	lines := make([][]model.Line, len(pcs))
	for _, c := range d.claims.winners() {
		for _, i := range c.won {
			if c.what.name != "" {
				lines[i] = []model.Line{c.what.lineAt(pcs[i])}
			}
		}
	}
	return lines, err
}

// dumpCode is a piece of code; its name is "" if it is not known.
type dumpCode struct {
	name  string
	lines dumpLines
}

// lineAt is what the code has at an address.
func (c dumpCode) lineAt(pc uint64) model.Line {
	l := model.Line{Function: c.name, SystemName: c.name}
	i, _ := slices.BinarySearchFunc(c.lines, pc, func(l dumpLine, pc uint64) int {
		if l.addr <= pc {
			return -1
		}
		return 1
	})
	if i > 0 {
		l.File, l.Line = c.lines[i-1].file, c.lines[i-1].line
	}
	return l
}

type dump struct {
	in     *bufio.Reader
	order  binary.ByteOrder
	pcs    []uint64
	claims claims[dumpCode]
	debug  map[uint64]dumpLines // of the code that is loaded next, by where it is
	named  map[uint64]string    // by code_index, for code that moves
}

func (d *dump) read() error {
	var head [dumpHeaderSize]byte
	if _, err := io.ReadFull(d.in, head[:]); err != nil {
		return errDumpCut
	}
	switch {
	case binary.LittleEndian.Uint32(head[:]) == dumpMagic:
		d.order = binary.LittleEndian
	case binary.BigEndian.Uint32(head[:]) == dumpMagic:
		d.order = binary.BigEndian
	default:
		return errors.New("it is no jitdump")
	}
	if version := d.order.Uint32(head[4:]); version != 1 {
		return fmt.Errorf("version %d is not known", version)
	}
	if size := d.order.Uint32(head[8:]); size > dumpHeaderSize {
		if _, err := d.in.Discard(int(size) - dumpHeaderSize); err != nil {
			return errDumpCut
		}
	}
	for {
		var prefix [16]byte
		if _, err := io.ReadFull(d.in, prefix[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return nil // its writer is at work
		}
		id, size := d.order.Uint32(prefix[:]), d.order.Uint32(prefix[4:])
		if size < 16 {
			return fmt.Errorf("a record of %d bytes", size)
		}
		if err := d.record(id, int(size)-16); err != nil {
			return err
		}
	}
}

// record reads one of so many bytes.
func (d *dump) record(id uint32, size int) error {
	var most int
	switch id {
	case dumpLoad:
		most = 40 + mostDumpName
	case dumpMove:
		most = 48
	case dumpDebug:
		most = mostDumpDebug
	}
	b := make([]byte, min(size, most))
	n, err := io.ReadFull(d.in, b)
	switch {
	case err == nil:
		_, _ = d.in.Discard(size - len(b)) // at the end the next prefix is missing, too
	case id == dumpLoad && n > 40 && bytes.IndexByte(b[40:n], 0) >= 0:
		b = b[:n] // its writer is at work, and the name comes before the code
	default:
		return nil // its writer is at work
	}
	u64 := func(at int) uint64 { return d.order.Uint64(b[at:]) }
	switch {
	case id == dumpLoad && len(b) > 40:
		name, _, ok := bytes.Cut(b[40:], []byte{0})
		if !ok {
			return errors.New("a name without an end")
		}
		code := dumpCode{string(name[:min(len(name), mostPerfMapName)]), d.debug[u64(16)]}
		d.place(u64(16), u64(24), code)
		if clear(d.debug); len(d.named) < mostDumpNames {
			d.named[u64(32)] = code.name
		}
	case id == dumpMove && len(b) == 48:
		d.place(u64(24), u64(32), dumpCode{name: d.named[u64(40)]})
	case id == dumpDebug && len(b) >= 16:
		return d.readLines(b)
	}
	return nil
}

func (d *dump) place(addr, size uint64, code dumpCode) {
	from, _ := slices.BinarySearch(d.pcs, addr)
	end := addr + size
	if end < addr {
		end = math.MaxUint64
	}
	to, _ := slices.BinarySearch(d.pcs, end)
	d.claims.add(from, to, code)
}

// mostDumpNames are kept for code that moves.
const mostDumpNames = 1 << 18

// readLines reads those of the code that is loaded next.
func (d *dump) readLines(b []byte) error {
	at, n := d.order.Uint64(b), d.order.Uint64(b[8:])
	b = b[16:]
	var lines dumpLines
	for ; n > 0 && len(b) > 16; n-- {
		addr, line := d.order.Uint64(b), d.order.Uint32(b[8:])
		name, rest, ok := bytes.Cut(b[16:], []byte{0})
		if !ok {
			break
		}
		file := string(name)
		if file == "\xff" && len(lines) > 0 { // as before
			file = lines[len(lines)-1].file
		}
		lines = append(lines, dumpLine{addr, int(line), file})
		b = rest
	}
	slices.SortStableFunc(lines, func(a, b dumpLine) int {
		switch {
		case a.addr < b.addr:
			return -1
		case a.addr > b.addr:
			return 1
		}
		return 0
	})
	d.debug[at] = lines
	return nil
}
