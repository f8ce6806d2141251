package trace

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// drTrace makes a trace entry by entry.
type drTrace struct{ bytes.Buffer }

func (d *drTrace) entry(kind, size uint16, addr uint64) *drTrace {
	b := binary.LittleEndian.AppendUint16(nil, kind)
	b = binary.LittleEndian.AppendUint16(b, size)
	d.Write(binary.LittleEndian.AppendUint64(b, addr))
	return d
}

func newDrTrace(thread uint64, filetype uint64) *drTrace {
	d := &drTrace{}
	return d.entry(drHeader, 0, 7).entry(drMarker, drMarkVersion, 7).entry(drMarker, drMarkFiletype, filetype).
		entry(drThread, 4, thread).entry(drPid, 4, 1)
}

func (d *drTrace) end() []byte { return d.entry(drThreadExit, 4, 0).entry(drFooter, 0, 0).Bytes() }

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

// zipped cuts the trace into chunks, not at entries.
func zipped(b []byte, chunk int) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	i := 0
	for part := range slices.Chunk(b, chunk) {
		w, _ := z.Create(string([]byte{'c', byte('a' + i)}))
		w.Write(part)
		i++
	}
	z.Close()
	return out.Bytes()
}

func writeFiles(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readDr(t testing.TB, path string, partial bool) ([]model.Access, []string, error) {
	t.Helper()
	d, err := OpenDrmemtrace(path)
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	d.Partial = partial
	var all []model.Access
	for d.Next() {
		a, bad := d.Record()
		if bad != nil {
			t.Fatal(bad)
		}
		all = append(all, *a)
	}
	return all, d.Notes(), d.Err()
}

// One thread, with every kind of entry.
func TestDrmemtraceEntries(t *testing.T) {
	d := newDrTrace(77, 0x40|0x1000)
	d.entry(drEncoding, 3, 0xc08b48).entry(drInstr, 3, 0x1000).entry(drRead, 8, 0x7000)
	d.entry(drBundle, 2, 0x0402).entry(drWrite, 4, 0x7010)               // instructions of 2 and 4 bytes, at 0x1003 and 0x1005
	d.entry(drTakenJump, 2, 0x1009).entry(drPrefetch+3, 1, 0x8000)       // prefetch
	d.entry(drNoFetch, 2, 0x100b).entry(drRead, 0, 0x7018)               // no size
	d.entry(drMarker, drMarkSyscallTrace, 1).entry(drInstr, 4, 1<<63+16) // kernel
	d.entry(drRead, 8, 1<<63).entry(drMarker, drMarkSyscallEnd, 1)
	d.entry(drFlush, 64, 0x7000).entry(drMarker, 77, 5)
	d.entry(drSysenter, 2, 0x2000).entry(drWrite, 64, 0x7fc0)
	b := d.end()
	want := []model.Access{
		{Addr: 0x7000, PC: 0x1000, Thread: 77, Size: 8, Op: model.Load},
		{Addr: 0x7010, PC: 0x1005, Thread: 77, Size: 4, Op: model.Store},
		{Addr: 0x7018, PC: 0x100b, Thread: 77, Size: 0, Op: model.Load},
		{Addr: 0x7fc0, PC: 0x2000, Thread: 77, Size: 64, Op: model.Store},
	}
	dir := writeFiles(t, map[string][]byte{
		"t.trace": b, "t.trace.gz": gzipped(b), "t.trace.zip": zipped(b, 50), "plain.txt": []byte("0x10 R 8\n"), "text.gz": gzipped([]byte("1\n")),
		"top.dir/trace/a.trace.gz": gzipped(b), "top.dir/raw/modules.log": nil,
	})
	for _, name := range []string{"t.trace", "t.trace.gz", "t.trace.zip", "top.dir", "top.dir/trace"} {
		path := filepath.Join(dir, name)
		if !IsDrmemtrace(path) {
			t.Errorf("%s is not taken for one", name)
		}
		got, notes, err := readDr(t, path, false)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
		if s := strings.Join(notes, "\n"); len(notes) != 3 || !strings.Contains(s, "1 accesses of the kernel") || !strings.Contains(s, "1 prefetches") || !strings.Contains(s, "no size") {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
	for _, name := range []string{"plain.txt", "text.gz", "none"} {
		if IsDrmemtrace(filepath.Join(dir, name)) {
			t.Errorf("%s is taken for one", name)
		}
	}
}

// Threads take turns by their timestamps, and a file may hold several.
func TestDrmemtraceThreads(t *testing.T) {
	stamp := func(d *drTrace, time uint64, addrs ...uint64) *drTrace {
		d.entry(drMarker, drMarkTimestamp, time)
		for _, a := range addrs {
			d.entry(drRead, 8, a)
		}
		return d
	}
	one, two := newDrTrace(1, 0), newDrTrace(2, 0)
	stamp(stamp(stamp(one, 10, 100, 101), 40, 102), 50, 103)
	stamp(stamp(two, 20, 200), 45, 201).entry(drThread, 4, 3).entry(drRead, 8, 300)
	dir := writeFiles(t, map[string][]byte{"a.trace.gz": gzipped(one.end()), "b.trace.gz": gzipped(two.end()), "cpu_schedule.bin.zip": nil})
	got, notes, err := readDr(t, dir, false)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	var order, threads []int
	for _, a := range got {
		order, threads = append(order, int(a.Addr)), append(threads, int(a.Thread))
	}
	if !slices.Equal(order, []int{100, 101, 200, 102, 201, 300, 103}) || !slices.Equal(threads, []int{1, 1, 2, 1, 2, 3, 1}) {
		t.Errorf("%v of %v", order, threads)
	}
}

func TestDrmemtraceErrors(t *testing.T) {
	good := newDrTrace(1, 0).entry(drRead, 8, 1).entry(drRead, 8, 2).end()
	cut := good[:len(good)-30]
	small := append([]byte{drHeader, 0, 0, 0, 7, 0, 0, 0}, bytes.Repeat([]byte{drMarker, 0, 12, 0, 7, 0, 0, 0}, 4)...)
	unknown := newDrTrace(1, 0).entry(drRead, 8, 1).entry(999, 0, 0).end()
	dir := writeFiles(t, map[string][]byte{
		"cut/a.trace": cut, "unknown.trace": unknown, "small.trace": small, "thirtytwo.trace": newDrTrace(1, 0x20).end(),
		"instr.trace": newDrTrace(1, drInstructionOnly).end(), "noheader/a.trace": []byte("hello, hello, hello"), "empty/a.trace": nil,
		"raw/a.raw.gz": nil, "snappy/a.memtrace.sz": nil, "nothing/readme": nil, "mixed/a.trace": cut, "mixed/b.trace": good,
		"end.trace":    newDrTrace(1, 0).entry(drRead, 8, 1<<64-8).entry(drRead, 8, 1<<64-7).end(),
		"bundle.trace": newDrTrace(1, 0).entry(drBundle, 9, 0).end(), "bad.zip": []byte("PK\x03\x04xxxx"), "cut.trace.gz": gzipped(good)[:40],
		"filtered.trace": newDrTrace(1, 0x100).entry(drRead, 8, 1).end(), "new.trace": (&drTrace{}).entry(drHeader, 0, 9).entry(drRead, 8, 1).end(),
	})
	for name, want := range map[string]string{
		"cut": "footer", "unknown.trace": "unknown type 999", "small.trace": "32-bit", "thirtytwo.trace": "32-bit", "instr.trace": "instructions only",
		"noheader": "does not begin with a header", "empty": "truncated", "raw": "raw drmemtrace", "snappy": "snappy", "nothing": "not a drmemtrace trace",
		"mixed": "footer", "bundle.trace": "bundle of 9", "end.trace": "past the end of the address space", "bad.zip": "zip", "cut.trace.gz": "EOF", "missing": "no such file",
	} {
		_, _, err := readDr(t, filepath.Join(dir, name), false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	// With Partial a damaged file ends alone, and is still reported.
	got, _, err := readDr(t, filepath.Join(dir, "mixed"), true)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) < 3 {
		t.Errorf("partial: %d accesses, %v", len(got), err)
	}
	for name, want := range map[string]string{"filtered.trace": "filtered", "new.trace": "version 9"} {
		if _, notes, err := readDr(t, filepath.Join(dir, name), false); err != nil || len(notes) != 1 || !strings.Contains(notes[0], want) {
			t.Errorf("%s: %q, %v", name, notes, err)
		}
	}
}

// Any bytes end in accesses or an error, in bounded time.
func FuzzDrmemtrace(f *testing.F) {
	f.Add(newDrTrace(1, 0).entry(drRead, 8, 1).entry(drBundle, 3, 0x030201).entry(drWrite, 8, 1).end(), uint8(0))
	f.Add(newDrTrace(1, 0).entry(drMarker, drMarkTimestamp, 9).entry(drMarker, drMarkTimestamp, 3).entry(drRead, 8, 1).end(), uint8(1))
	f.Add([]byte("PK\x03\x04"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, form uint8) {
		switch form % 3 {
		case 1:
			b = gzipped(b)
		case 2:
			b = zipped(b, 100)
		}
		dir := writeFiles(t, map[string][]byte{"a.trace": b, "b.trace": b})
		got, _, err := readDr(t, dir, true)
		if len(got) > 2*len(b) && form%3 == 0 {
			t.Errorf("%d accesses of %d bytes", len(got), len(b))
		}
		whole, _, strict := readDr(t, dir, false)
		if (err == nil) != (strict == nil) || strict == nil && !slices.Equal(got, whole) {
			t.Errorf("partial: %d, %v; strict: %d, %v", len(got), err, len(whole), strict)
		}
	})
}
