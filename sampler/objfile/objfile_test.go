// Compiles small programs with gcc and go; what is missing is skipped.
package objfile

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

const program = "int main(void) { return 0; }\n"

func source(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// compile compiles a source and returns the path of the program.
func compile(t testing.TB, src, compiler string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no %s on this machine", compiler)
	}
	bin := strings.TrimSuffix(src, filepath.Ext(src))
	if out, err := exec.Command(compiler, append(args, "-o", bin, src)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return bin
}

func idOf(r io.ReaderAt) (string, error) {
	f, err := Open(r)
	if err != nil {
		return "", err
	}
	return BuildID(f)
}

func TestBuildID(t *testing.T) {
	bin := compile(t, source(t, "prog.c", program), "gcc", "-Wl,--build-id=0xfeedbeef01")
	id := func(path string) (string, error) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return idOf(f)
	}
	if got, err := id(bin); got != "feedbeef01" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	// Without section headers, as in a memory image.
	data, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[0x28:0x30]) // e_shoff
	clear(data[0x3a:0x40]) // e_shentsize, e_shnum, e_shstrndx
	if got, err := idOf(bytes.NewReader(data)); got != "feedbeef01" || err != nil {
		t.Errorf("without sections: %q, %v", got, err)
	}
	none := compile(t, source(t, "none.c", program), "gcc", "-Wl,--build-id=none")
	if got, err := id(none); err == nil || !strings.Contains(err.Error(), "no build ID") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := id("objfile_test.go"); err == nil {
		t.Errorf("%q of a text file", got)
	}
	src := source(t, "prog.go", "package main\nfunc main() {}\n")
	goBin := compile(t, src, "go", "build", "-ldflags=-buildid=some/go/id -B none")
	if got, err := id(goBin); got != fmt.Sprintf("%x", "some/go/id") || err != nil {
		t.Errorf("Go's: %q, %v", got, err)
	}
}

// FuzzBuildID: an identifier is not longer than the file, and costs neither ten seconds nor a gigabyte.
func FuzzBuildID(f *testing.F) {
	for _, flags := range []string{"-Wl,--build-id=0xfeedbeef01", "-Wl,--build-id=none"} {
		bin := compile(f, source(f, "p.c", "int main(void) { return 0; }\n"), "gcc", flags, "-nostdlib", "-static", "-e", "main", "-s")
		data, err := os.ReadFile(bin)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(data))
		clear(data[0x28:0x30]) // e_shoff
		clear(data[0x3a:0x40]) // e_shentsize, e_shnum, e_shstrndx
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(allocated)
		before, start := allocated[0].Value.Uint64(), time.Now()
		id, err := idOf(bytes.NewReader(data))
		elapsed := time.Since(start)
		metrics.Read(allocated)
		if n := allocated[0].Value.Uint64() - before; elapsed > 10*time.Second || n > 1<<30 {
			t.Errorf("%d bytes take %v and %d bytes of memory", len(data), elapsed, n)
		}
		if err == nil && (id == "" || len(id) > 2*len(data)) {
			t.Errorf("%d bytes have the identifier %q", len(data), id)
		}
	})
}

// What a packed section becomes is what debug/elf makes of it.
func TestSectionUnpacked(t *testing.T) {
	kinds := [][]string{{"-gz=zlib"}, {"-gz=none"}}
	if runtime.GOARCH == "amd64" {
		kinds = append(kinds, []string{"-gz=zlib", "-m32", "-c"}) // its headers are others
	}
	for _, flags := range kinds {
		bin := compile(t, source(t, "p.c", program), "gcc", append(flags, "-g3")...)
		data, err := os.ReadFile(bin)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Open(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		packed := 0
		for _, s := range f.Sections {
			if !strings.HasPrefix(s.Name, ".debug_") {
				continue
			}
			if s.Flags&elf.SHF_COMPRESSED != 0 {
				packed++
			}
			want, err := s.Data()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := Section(s, 1<<20); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v: section %s: %d bytes, want %d; %v", flags, s.Name, len(got), len(want), err)
			}
			if s.Flags&elf.SHF_COMPRESSED != 0 {
				clear(data[s.Offset+24 : s.Offset+s.FileSize]) // 24: after the header of zlib, too
				if _, err := Section(s, 1<<20); err == nil {
					t.Errorf("%v: section %s is read though it is damaged", flags, s.Name)
				}
			}
		}
		if (packed > 0) != (flags[0] == "-gz=zlib") {
			t.Errorf("%v: %d sections are packed", flags, packed)
		}
	}
}
