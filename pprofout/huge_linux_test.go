package pprofout

import (
	"os"
	"os/exec"
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
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Fatalf("%v: %s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	}
	return false
}

// TestHuge: memory that was asked for in large pages is in these, whole or not, where the kernel has any.
func TestHuge(t *testing.T) {
	if !alone(t) {
		return
	}
	const enabled = "/sys/kernel/mm/transparent_hugepage/enabled"
	if b, err := os.ReadFile(enabled); err != nil || strings.Contains(string(b), "[never]") {
		t.Skipf("needs large pages: %s: %.40s %v", enabled, b, err)
	}
	total := func() (kb string) {
		b, err := os.ReadFile("/proc/self/smaps_rollup")
		if err != nil {
			t.Skip(err)
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "AnonHugePages:"); ok {
				kb = strings.TrimSpace(v)
			}
		}
		return kb
	}
	before := total()
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
	if after := total(); before == after {
		t.Errorf("large pages: %s before and after", before)
	}
	if s[len(s)-1][1] != 1 {
		t.Error("what was written is not there")
	}
}

// TestHugeAhead: memory is taken before anyone writes to it, and what was written stays.
func TestHugeAhead(t *testing.T) {
	page := unix.Getpagesize()
	if !alone(t) {
		return
	}
	probe, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(probe)
	if err := unix.Madvise(probe, unix.MADV_POPULATE_WRITE); err != nil {
		t.Skipf("needs Linux 5.14: %v", err)
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
