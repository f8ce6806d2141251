// Needs: root and /dev/fuse for a file system that stops answering.
package safeopen

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/sampler/safeopen/stallfs"
)

func TestPatientReading(t *testing.T) {
	want := make([]byte, 3<<20+17)
	for i := range want {
		want[i] = byte(i * i >> 3)
	}
	name := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(name, want, 0o600))
	f, err := NewPatience(10*time.Second).Open(0, func() (*os.File, error) { return os.Open(name) })
	must(t, err)
	defer f.Close()
	for _, r := range []struct{ off, size int }{{0, 1}, {0, 64}, {5, 16000}, {65530, 100}, {1 << 20, 1 << 20}, {0, len(want)}, {len(want) - 5, 5}, {70000, 10}} {
		b := make([]byte, r.size)
		if n, err := f.ReadAt(b, int64(r.off)); n != r.size || err != nil && err != io.EOF || !bytes.Equal(b, want[r.off:r.off+r.size]) {
			t.Errorf("%d bytes at %d: %d, %v", r.size, r.off, n, err)
		}
	}
	for _, off := range []int{len(want) - 3, len(want), len(want) + 100} {
		b := make([]byte, 10)
		n, err := f.ReadAt(b, int64(off))
		if n != max(len(want)-off, 0) || err != io.EOF {
			t.Errorf("at %d of %d: %d, %v", off, len(want), n, err)
		}
	}
}

func TestStalledFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	content := bytes.Repeat([]byte("rdx "), 1<<18)
	fs, err := stallfs.Mount(dir, map[string][]byte{"a": content, "b": content})
	if err != nil {
		t.Skipf("needs fuse: %v", err)
	}
	defer fs.Close()
	root := below(t, dir)
	const each = 300 * time.Millisecond
	p := NewPatience(each)
	open := func(name string, known uint64) (*File, error) {
		return p.Open(known, func() (*os.File, error) { return root.Open(name, nil) })
	}
	f, err := open("a", 0)
	must(t, err)
	defer f.Close()
	var b [16]byte
	if n, err := f.ReadAt(b[:], 4); n != len(b) || err != nil || string(b[:4]) != "rdx " {
		t.Fatalf("%d, %v, %q", n, err, b)
	}
	if n := fs.Polled(); n > 0 {
		t.Errorf("the poller has asked for the file %d times: while there is no answer nothing of rdx runs", n)
	}
	fs.Stall()
	start := time.Now()
	soon(t, "open", func() {
		if _, err := open("b", 0); !errors.Is(err, ErrStalled) {
			t.Errorf("open: %v, want that it stalls", err)
		}
	})
	soon(t, "read", func() {
		if _, err := f.ReadAt(make([]byte, 4096), 900000); !errors.Is(err, ErrStalled) {
			t.Errorf("read: %v, want that it stalls", err)
		}
	})
	// From now on it is known.
	if elapsed := time.Since(start); elapsed < 2*each {
		t.Errorf("given up after %v", elapsed)
	}
	start = time.Now()
	for range 100 {
		if _, err := f.ReadAt(make([]byte, 4096), 900000); !errors.Is(err, ErrStalled) {
			t.Errorf("read again: %v", err)
		}
		if _, err := open("b", f.Device); !errors.Is(err, ErrStalled) {
			t.Errorf("open again: %v", err)
		}
	}
	if elapsed := time.Since(start); elapsed > 5*time.Second {
		t.Errorf("a file system that is known to stall was waited for, for %v", elapsed)
	}
	if fs.Asked() == 0 {
		t.Error("the file system was asked for nothing")
	}
}
