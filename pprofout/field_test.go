// Needs: gcc, objcopy, strip and xz for packed symbols; else nothing. What a program's files may hold that others
// tools do not read, and what they must not cost.
package pprofout

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// Symbols packed by xz into a stripped program, as Fedora has them.
func TestMiniDebug(t *testing.T) {
	need(t, "gcc", "objcopy", "strip", "xz")
	bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-O2")
	pcs := functions(t, bin, isMine)
	mini := bin + ".mini"
	command(t, "objcopy", "-S", "--remove-section", ".comment", "--keep-symbol=hidden", "--keep-symbol=outer", "--keep-symbol=main", bin, mini)
	command(t, "xz", mini)
	command(t, "strip", bin)
	command(t, "objcopy", "--add-section", ".gnu_debugdata="+mini+".xz", bin)
	const base = 0x555555554000
	_, ms := mapped(t, bin, base)
	locs, stats := symbolizeAt(t, symbolizer{}, ms, base, pcs)
	names := map[string]bool{}
	for _, l := range locs {
		if len(l.Lines) > 0 {
			names[l.Lines[0].Function] = true
		}
	}
	if !names["outer"] || !names["hidden"] {
		t.Errorf("functions %v; %v", names, stats.Problems)
	}
}

// What .gnu_debugdata asks for is bounded: memory for a dictionary, and bytes.
func TestMiniDebugBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	need(t, "xz")
	pack := func(size int, args ...string) []byte {
		cmd := exec.Command("xz", append([]string{"-c"}, args...)...)
		cmd.Stdin = io.LimitReader(blanks{}, int64(size))
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if err := checkXZ(pack(100, "--lzma2=dict=8MiB")); err != nil {
		t.Error(err)
	}
	if err := checkXZ(pack(100, "--lzma2=dict=1GiB")); err == nil {
		t.Error("a dictionary of 1 GiB is taken")
	}
	for _, b := range [][]byte{nil, make([]byte, 5)} {
		if err := checkXZ(b); err == nil {
			t.Errorf("%d bytes are taken for packed ones", len(b))
		}
	}
	// Each block has a dictionary of its own.
	blocks := pack(1000, "--block-size=100", "--lzma2=dict=8MiB")
	if err := checkXZ(blocks); err != nil {
		t.Error(err)
	}
	filter := []byte{0x21, 1, 22} // 8 MiB
	if n := bytes.Count(blocks, filter); n != 10 {
		t.Fatalf("%d blocks", n)
	}
	blocks[bytes.LastIndex(blocks, filter)+2] = 36 // 1 GiB
	if err := checkXZ(blocks); err == nil {
		t.Error("a dictionary of 1 GiB is taken in the last block")
	}
	if _, err := miniDebug(withSection(t, pack(200<<20, "-0"))); err == nil || !strings.Contains(err.Error(), "becomes more than") {
		t.Errorf("200 MiB of zeros: %v", err)
	}
}

// FuzzXZ: what is packed costs neither much time nor memory.
func FuzzXZ(f *testing.F) {
	if _, err := exec.LookPath("xz"); err != nil {
		f.Skip("no xz")
	}
	for _, args := range [][]string{nil, {"--block-size=100"}, {"-9e"}} {
		cmd := exec.Command("xz", append([]string{"-c"}, args...)...)
		cmd.Stdin = strings.NewReader(strings.Repeat("some text ", 50))
		b, err := cmd.Output()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		bounded(t, len(b), func() { _, _ = unpackXZ(b) })
	})
}

// bounded runs f, which reads so many bytes, and wants it to cost neither ten seconds nor a gigabyte in all.
func bounded(t *testing.T, size int, f func()) {
	t.Helper()
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(allocated)
	before, start := allocated[0].Value.Uint64(), processTime()
	f()
	elapsed := processTime() - start
	metrics.Read(allocated)
	if n := allocated[0].Value.Uint64() - before; elapsed > 10*time.Second || n > 1<<30 {
		t.Errorf("%d bytes take %v and %d bytes of memory", size, elapsed, n)
	}
}

// FuzzAltLink: whatever names the file that shares debug information, it is only looked for.
func FuzzAltLink(f *testing.F) {
	bin := compile(f, source(f, "p.c", oneFunction), "gcc", "-g", "-O2", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=none")
	image, err := os.ReadFile(bin)
	if err != nil {
		f.Fatal(err)
	}
	e, err := objfile.Open(bytes.NewReader(image))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("/usr/lib/debug/.dwz/x\x00\x01\x02\x03"))
	f.Add([]byte("../../etc/passwd\x00ab"))
	f.Fuzz(func(t *testing.T, link []byte) {
		e.Sections = append(e.Sections[:len(e.Sections):len(e.Sections)], &elf.Section{
			SectionHeader: elf.SectionHeader{Name: ".gnu_debugaltlink", Type: elf.SHT_PROGBITS, Size: uint64(len(link)), FileSize: uint64(len(link))},
			ReaderAt:      bytes.NewReader(link),
		})
		defer func() { e.Sections = e.Sections[:len(e.Sections)-1] }()
		s := &debugSource{elf: e, names: []string{"/bin/x"}, limit: newTimeLimit(e), debugRoots: []debugRoot{fromMemory{"", image}}}
		bounded(t, len(link), func() {
			if _, err := s.alternate(); err == nil {
				t.Errorf("%q: a file without a build ID is taken", link)
			}
		})
	})
}

type blanks struct{}

func (blanks) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// withSection is an ELF file with such a .gnu_debugdata.
func withSection(t *testing.T, content []byte) *elfFile {
	t.Helper()
	need(t, "gcc", "objcopy")
	bin := compile(t, source(t, "packed.c", inlinedC), "gcc")
	data := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(data, content, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "objcopy", "--add-section", ".gnu_debugdata="+data, bin)
	b, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	f, err := objfile.Open(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// inRoot are the files of a target that is in a directory of its own.
type inRoot struct {
	files
	root string
}

func (r inRoot) OpenNamed(_ *model.Mapping, name string) (io.ReaderAt, error) {
	f, err := os.Open(r.root + name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Debug files that are in the target's root alone.
func TestDebugFileBelowRoot(t *testing.T) {
	need(t, "gcc", "objcopy", "strip")
	bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-g", "-O2", "-Wl,--build-id")
	pcs := functions(t, bin, isMine)
	b, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	f, err := objfile.Open(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	id, err := objfile.BuildID(f)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	place := filepath.Join(root, debugDir, ".build-id", id[:2])
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "objcopy", "--only-keep-debug", bin, filepath.Join(place, id[2:]+".debug"))
	command(t, "strip", bin)
	const base = 0x555555554000
	_, ms := mapped(t, bin, base)
	p := &model.Profile{BinsPerOctave: 8}
	for _, pc := range pcs {
		p.Records = append(p.Records, model.Record{Kind: model.Cold, Use: []*model.Location{{Address: base + pc, Mapping: ms[0]}}, Weight: model.Weight{Observations: 1}})
	}
	stats, err := Symbolize(p, inRoot{root: root})
	if err != nil || stats.Lines == 0 {
		t.Errorf("%v, %+v", err, stats)
	}
}

// madeJITDump is a jitdump by its specification.
func madeJITDump() []byte {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if s, ok := v.(string); ok {
				b.WriteString(s + "\x00")
			} else {
				binary.Write(&b, binary.LittleEndian, v)
			}
		}
	}
	load := func(at, size, index uint64, name string) {
		put(uint32(0), uint32(16+40+len(name)+1+int(size)), uint64(1), uint32(1), uint32(1), at, at, size, index, name, make([]byte, size))
	}
	put(uint32(0x4a695444), uint32(1), uint32(40), uint32(62), uint32(0), uint32(1), uint64(0), uint64(0))
	load(0x1000, 0x100, 1, "first")
	put(uint32(2), uint32(16+16+2*16+len("a.js")+1+2), uint64(1), uint64(0x2000), uint64(2), uint64(0x2000), uint32(7), uint32(0), "a.js", uint64(0x2010), uint32(9), uint32(0), "\xff")
	load(0x2000, 0x100, 2, "second")
	load(0x1080, 0x10, 3, "inside")                                                                                                          // in the place of a part of the first
	put(uint32(1), uint32(16+48), uint64(1), uint32(1), uint32(1), uint64(0x3000), uint64(0x1000), uint64(0x3000), uint64(0x100), uint64(1)) // the first moves
	put(uint32(99), uint32(20), uint64(1), uint32(5))                                                                                        // of a later version
	b.WriteString("cut")
	return b.Bytes()
}

func TestReadJITDump(t *testing.T) {
	b := madeJITDump()
	pcs := []uint64{0xfff, 0x1000, 0x1085, 0x1090, 0x2000, 0x2015, 0x2100, 0x3050}
	lines, err := readJITDump(bytes.NewReader(b), pcs)
	var got []string
	for _, l := range lines {
		s := ""
		if len(l) > 0 {
			s = fmt.Sprintf("%s %s:%d", l[0].Function, l[0].File, l[0].Line)
		}
		got = append(got, s)
	}
	want := []string{"", "first :0", "inside :0", "first :0", "second a.js:7", "second a.js:9", "", "first :0"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", err, got, want)
	}
	for n := range b {
		_, _ = readJITDump(bytes.NewReader(b[:n]), pcs)
	}
	// Of code whose bytes are not all written yet the name is.
	begun := bytes.LastIndex(b, []byte("inside\x00")) + len("inside\x00")
	for n, want := range map[int]string{begun: "inside", begun + 5: "inside", begun - 1: "first"} {
		lines, err := readJITDump(bytes.NewReader(b[:n]), []uint64{0x1085})
		if err != nil || len(lines[0]) != 1 || lines[0][0].Function != want {
			t.Errorf("of %d bytes: %v, %v, want %s", n, lines, err, want)
		}
	}
}

func FuzzJITDump(f *testing.F) {
	f.Add(madeJITDump())
	f.Add([]byte("DTiJ\x01\x00\x00\x00\x28\x00\x00\x00\x3e\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		bounded(t, len(b), func() {
			if lines, _ := readJITDump(bytes.NewReader(b), []uint64{1, 0x1000, 0x2015, 1 << 63}); len(lines) != 4 {
				t.Errorf("%d lines", len(lines))
			}
		})
	})
}

// FuzzSymbolize: whatever a file of some kilobytes holds, it costs neither 10 s nor a gigabyte.
func FuzzSymbolize(f *testing.F) {
	for _, flags := range [][]string{{"-O2", "-g"}, {"-O2", "-s"}, {"-O2", "-gdwarf-4"}} {
		if _, err := exec.LookPath("gcc"); err == nil {
			bin := compile(f, source(f, "p.c", "int main(int c, char**v) { return c; }\n"), "gcc", append(flags, "-nostartfiles", "-e", "main")...)
			if b, err := os.ReadFile(bin); err == nil {
				f.Add(b, uint64(0x1000))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, pc uint64) {
		m := &model.Mapping{Start: 0x10000, Limit: 0x10000 + 1<<24, File: "/x"}
		p := &model.Profile{BinsPerOctave: 8}
		for i := range uint64(16) {
			p.Records = append(p.Records, model.Record{Kind: model.Cold, Use: []*model.Location{{Address: m.Start + (pc+i*97)%(1<<24), Mapping: m}}, Weight: model.Weight{Observations: 1}})
		}
		bounded(t, len(data), func() {
			if _, err := Symbolize(p, vdsoBinaries{image: memory{io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))}}); err != nil {
				t.Error(err)
			}
		})
	})
}

// What a hundred times as many entries cost is about a hundred times as much, though each covers all addresses.
func TestPerfMapGrows(t *testing.T) {
	pcs := make([]uint64, 20000)
	for i := range pcs {
		pcs[i] = uint64(0x1000 + 16*i)
	}
	elapsed := func(lines int) time.Duration {
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "1000 100000 f%d\n", i)
		}
		start := processTime()
		names, err := readPerfMap(strings.NewReader(b.String()), pcs)
		if err != nil || names[len(names)-1] != fmt.Sprintf("f%d", lines-1) {
			t.Fatalf("%v, %q", err, names[len(names)-1])
		}
		return processTime() - start
	}
	few, many := elapsed(3000), elapsed(300_000)
	t.Logf("3,000 entries %v, 300,000 %v", few, many)
	if many > 100*8*max(few, 2*time.Millisecond) {
		t.Errorf("3,000 entries take %v, 300,000 %v", few, many)
	}
}

// The same of a symbol table in which all symbols hold all addresses.
func TestSymbolsGrow(t *testing.T) {
	elapsed := func(n int) time.Duration {
		syms := func(yield func(objfile.Symbol) bool) {
			for i := range n {
				if !yield(namedSymbol(uint64(0x1000+i), 1<<40, i)) {
					return
				}
			}
		}
		pcs := make([]uint64, n)
		for i := range pcs {
			pcs[i] = uint64(0x1000 + i*2)
		}
		start := processTime()
		found := map[uint64][]model.Line{}
		lookupSymbols(oneSection(), syms, pcs, found)
		if len(found) != n {
			t.Fatalf("%d of %d are named", len(found), n)
		}
		return processTime() - start
	}
	few, many := elapsed(1000), elapsed(100_000)
	t.Logf("1,000 symbols and addresses %v, 100,000 %v", few, many)
	if many > 100*8*max(few, 2*time.Millisecond) {
		t.Errorf("1,000 symbols take %v, 100,000 %v", few, many)
	}
}
