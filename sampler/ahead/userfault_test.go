package ahead

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of a process that may have a userfaultfd, what is there is read up to the first
// page that is not: a stack is copied as far as it goes.
func TestReadFirst(t *testing.T) {
	area, err := unix.Mmap(-1, 0, 4*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(area)
	area[0], area[pageSize], area[3*pageSize] = 1, 2, 4
	at := uint64(uintptr(unsafe.Pointer(&area[0])))

	m := &targetMemory{pid: unix.Getpid()}
	m.userfault.pid, m.userfault.scan = m.pid, &fdScan{}
	defer m.userfault.close()
	scan := m.userfault.scan
	scan.running.Store(true) // nobody looks
	buf := make([]byte, 4*pageSize)
	for _, c := range []struct {
		used      bool
		from, end int // of the area
		want      int
	}{
		{true, 0, 4 * pageSize, 2 * pageSize},
		{true, 100, 4 * pageSize, 2*pageSize - 100},
		{true, 100, 200, 100},
		{true, 2*pageSize + 8, 4 * pageSize, 0},
		{true, 3 * pageSize, 4 * pageSize, pageSize},
		{false, 0, 4 * pageSize, 4 * pageSize}, // last: page 2 is there after it
	} {
		scan.used.Store(c.used)
		b := buf[:c.end-c.from]
		n, err := m.readFirst(at+uint64(c.from), b)
		if n != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("userfaultfd %v: %d to %d: %d bytes, %v; want %d", c.used, c.from, c.end, n, err, c.want)
		}
		if c.used && c.want < len(b) {
			if _, err := m.read(at+uint64(c.from), b); !errors.Is(err, errUserfault) {
				t.Errorf("all of %d to %d is read: %v", c.from, c.end, err)
			}
		}
	}
}

// What is known of one process is not forgotten for another, until the process ends:
// until a look is through, all of them are taken to have a userfaultfd.
func TestUserfaultOfSeveral(t *testing.T) {
	var u userfault
	defer u.close()
	known := func(pid int, used bool) *fdScan {
		u.of(pid)
		scan := u.scan
		scan.running.Store(true) // nobody looks
		scan.used.Store(used)
		return scan
	}
	first, other := unix.Getpid(), unix.Getppid()
	known(first, false)
	known(other, true)
	if u.allows(first, 0, pageSize) != pageSize {
		t.Error("the first process's look is forgotten")
	}
	if u.allows(other, 0, pageSize) != 0 {
		t.Error("the other's memory is read at a risk")
	}
	u.forget(first)
	if u.of(first); len(u.scans) != 2 || !u.scan.used.Load() {
		t.Error("a process that has ended is remembered")
	}
}

// Needs: userfaultfd.
//
// The look at a process's files is left to tend as long as they are few; of many, or where nobody tends, a goroutine
// looks. Either finds a userfaultfd among them.
func TestScanTended(t *testing.T) {
	const userModeOnly = 1 // UFFD_USER_MODE_ONLY, from 5.11 on
	fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, userModeOnly|unix.O_CLOEXEC, 0, 0)
	if e == unix.EINVAL {
		fd, _, e = unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	}
	if e != 0 {
		t.Skip("no userfaultfd:", e)
	}
	fault := os.NewFile(fd, "userfaultfd")
	defer fault.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		files int // besides the usual three and the userfaultfd
		used  bool
	}{{0, false}, {0, true}, {2 * fewFiles, false}, {2 * fewFiles, true}} {
		cmd := exec.Command("sleep", "1000")
		for range c.files {
			cmd.ExtraFiles = append(cmd.ExtraFiles, null)
		}
		if c.used {
			cmd.ExtraFiles = append(cmd.ExtraFiles, fault)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s := newFDScan(cmd.Process.Pid)
		looked := func(how string) {
			t.Helper()
			for deadline := time.Now().Add(10 * time.Second); s.running.Load() || s.next.Load() == 0; runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatalf("%+v, %s: nobody looks", c, how)
				}
			}
			if s.used.Load() != c.used || s.few.Load() != (c.files == 0) || s.due != 0 {
				t.Errorf("%+v, %s: userfaultfd %v, few files %v, due %v", c, how, s.used.Load(), s.few.Load(), s.due)
			}
			s.next.Store(0)
			s.used.Store(!c.used)
		}
		if !s.used.Load() {
			t.Errorf("%+v: taken to have none before anybody has looked", c)
		}
		s.userfault()
		looked("at first")
		s.few.Store(true) // and it may have opened more
		s.userfault()
		s.due += time.Hour // however long this test is kept from running
		s.userfault()
		if s.running.Load() || s.next.Load() != 0 {
			t.Errorf("%+v: looks while a thread is held", c)
		}
		s.tend()
		if c.files == 0 && s.next.Load() == 0 {
			t.Errorf("%+v: not looked by tend itself", c)
		}
		looked("tended")
		s.few.Store(true)
		s.userfault()
		s.due = 1 // long ago
		s.userfault()
		looked("not tended")
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// Before a process is traced it is waited for that it is known whether it has a userfaultfd: none has, and so all of it
// can be read from the first hold on, even if nobody may look which pages are there.
func TestAwait(t *testing.T) {
	l := NewLocator()
	for range 2 {
		l.Await(os.Getpid(), 10*time.Second)
		if scan := l.memory.userfault.scan; scan.used.Load() || scan.next.Load() == 0 {
			t.Fatal("it is not known yet")
		}
	}
}
