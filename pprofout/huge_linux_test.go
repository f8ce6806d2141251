package pprofout

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// alone goes on in a process of the test's own: memory that others have used before is written to when it is made.
func alone(t *testing.T) (is bool) {
	t.Helper()
	if os.Getenv("RDX_TEST_ALONE") != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "RDX_TEST_ALONE=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v: %s", err, out)
	}
	return false
}

const enabled = "/sys/kernel/mm/transparent_hugepage/enabled"

// TestHuge: memory is asked for in large pages. Whether the kernel has any is its affair: where memory is scarce there is none.
func TestHuge(t *testing.T) {
	if b, err := os.ReadFile(enabled); err != nil || strings.Contains(string(b), "[never]") {
		t.Skipf("needs large pages: %s: %.40s %v", enabled, b, err)
	}
	if !alone(t) {
		return
	}
	if s, _ := huge(make([]int64, 3, 1000)); len(s) != 3 || cap(s) != 1000 {
		t.Errorf("a small one has %d of %d", len(s), cap(s))
	}
	s, stop := huge(make([][3]byte, 5, leastHuge))
	defer stop()
	if len(s) != 5 || cap(s) != leastHuge {
		t.Fatalf("a large one has %d of %d", len(s), cap(s))
	}
	s = s[:cap(s)]
	for i := range s {
		s[i][1] = 1
	}
	if flags, pages := advised(t, uintptr(unsafe.Pointer(&s[len(s)/2]))); !slices.Contains(strings.Fields(flags), "hg") {
		t.Errorf("large pages are not asked for: %s", flags)
	} else {
		t.Logf("large pages: %s", pages)
	}
	if s[len(s)-1][1] != 1 {
		t.Error("what was written is not there")
	}
}

// TestLargePagesFor: what is taken while a large profile is shown comes in large pages, but no memory is taken for that, and
// none that was cleared is given to records.
func TestLargePagesFor(t *testing.T) {
	if b, err := os.ReadFile(enabled); err != nil || strings.Contains(string(b), "[never]") {
		t.Skipf("needs large pages: %s: %.40s %v", enabled, b, err)
	}
	if !alone(t) {
		return
	}
	const size = leastHuge
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	LargePagesFor(file + " is not there")
	LargePagesFor(file)
	asked := func(b []byte) (yes bool, kib int) {
		flags, pages := advised(t, uintptr(unsafe.Pointer(&b[len(b)/2])))
		fmt.Sscanf(pages, "%d kB", &kib)
		return slices.Contains(strings.Fields(flags), "hg"), kib
	}
	if yes, kib := asked(make([]byte, size)); !yes {
		t.Error("large pages are not asked for")
	} else if kib<<10 > 2*size { // it was cleared
		t.Errorf("%d KiB are taken for %d bytes", kib, size)
	}
	if yes, _ := asked(make([]byte, 2*takenPerByte*size)); yes {
		t.Error("what does not fit in begins in memory that was given back")
	}
}

// TestHugeAhead: memory is taken before anyone writes to it, and what was written stays.
func TestHugeAhead(t *testing.T) {
	page := unix.Getpagesize()
	probe, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(probe)
	if err := unix.Madvise(probe, unix.MADV_POPULATE_WRITE); err == unix.EINVAL {
		t.Skipf("needs Linux 5.14, of which MADV_POPULATE_WRITE is: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if !alone(t) {
		return
	}
	s, stop := huge(make([]byte, 3*leastHuge))
	defer stop()
	for i := range s {
		s[i] = byte(i)
	}
	for i := range s {
		if s[i] != byte(i) {
			t.Fatalf("byte %d is %d", i, s[i])
		}
	}
	s, stop = huge(make([]byte, 3*leastHuge))
	defer stop()
	last := s[(len(s)-1)/page*page-page:][:page]
	last = last[-uintptr(unsafe.Pointer(&last[0]))%uintptr(page):][:1]
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		there := []byte{0}
		if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&last[0])), 1, uintptr(unsafe.Pointer(&there[0]))); e != 0 {
			t.Fatal(e)
		}
		if there[0]&1 != 0 {
			break
		}
		if time.Since(start) > time.Minute {
			t.Fatal("nothing is taken")
		}
	}
}

// advised is what the kernel says of the mapping at an address: its flags, and how much of it is in large pages.
func advised(t *testing.T, at uintptr) (flags, pages string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	within := false
	for line := range strings.Lines(string(b)) {
		var start, end uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &start, &end); n == 2 {
			within = start <= at && at < end
		}
		if v, ok := strings.CutPrefix(line, "VmFlags:"); ok && within {
			flags = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "AnonHugePages:"); ok && within {
			pages = strings.TrimSpace(v)
		}
	}
	return flags, pages
}
