package ahead

import (
	"bytes"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Pages come in one call, up to the first that is not there, and the stack with them where all are; of a process that may
// have a userfaultfd none does.
func TestReadPages(t *testing.T) {
	area, err := unix.Mmap(-1, 0, 5*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(area)
	for i := range area {
		area[i] = byte(i/pageSize + 1)
	}
	if err := unix.Mprotect(area[3*pageSize:4*pageSize], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	at := uint64(uintptr(unsafe.Pointer(&area[0])))
	m := &targetMemory{pid: unix.Getpid()}
	m.userfault.pid, m.userfault.scan = m.pid, &fdScan{}
	defer m.userfault.close()
	m.userfault.scan.running.Store(true) // nobody looks
	stack := make([]byte, 100)
	for _, c := range []struct {
		pages     []uint64
		userfault bool
		want      int
		stack     int
	}{
		{[]uint64{0, 1, 4}, false, 3, 100}, // the first two are one piece of memory
		{[]uint64{4, 2, 0}, false, 3, 100},
		{[]uint64{1, 2, 3, 4}, false, 2, 0},
		{[]uint64{3, 0}, false, 0, 0},
		{[]uint64{0, 1}, true, 0, 0},
	} {
		m.userfault.scan.used.Store(c.userfault)
		var addrs []uint64
		var bufs []*[4096]byte
		for _, p := range c.pages {
			addrs, bufs = append(addrs, at+p*pageSize), append(bufs, new([4096]byte))
		}
		clear(stack)
		m.stack, m.stackAt, m.stackRead = stack, at+4*pageSize-50+pageSize/2, 0
		if c.stack > 0 {
			m.stackAt = at + 2*pageSize - 50
		}
		n := m.ReadPages(addrs, bufs)
		if n != c.want || m.stackRead != c.stack {
			t.Errorf("%v, userfaultfd %v: %d pages and %d bytes of the stack, want %d and %d", c.pages, c.userfault, n, m.stackRead, c.want, c.stack)
		}
		for i := range n {
			if want := byte(c.pages[i] + 1); bytes.Count(bufs[i][:], []byte{want}) != pageSize {
				t.Errorf("%v: page %d is not what it was", c.pages, i)
			}
		}
		if want := append(bytes.Repeat([]byte{2}, 50), bytes.Repeat([]byte{3}, 50)...); c.stack > 0 && !bytes.Equal(stack, want) {
			t.Errorf("%v: stack %v", c.pages, stack)
		}
	}
}

// Reading ends where memory is slow.
func TestPageTime(t *testing.T) {
	var page [pageSize]byte
	at := uint64(uintptr(unsafe.Pointer(&page[0])))
	for _, c := range []struct {
		spent time.Duration
		ok    bool
	}{
		{0, true},
		{leastTime + 1, true},
		{1000*pageTime - 1, true},
		{1000*pageTime + 1, false},
	} {
		var m targetMemory
		m.begin(unix.Getpid(), 1000)
		defer m.userfault.close()
		m.userfault.pid, m.userfault.scan = m.pid, &fdScan{}
		m.userfault.scan.running.Store(true) // nobody looks
		m.spent = c.spent
		err := m.ReadPage(at&^(pageSize-1), new([pageSize]byte))
		if c.ok != (err == nil) || !c.ok && err != errPages {
			t.Errorf("after %v: %v", c.spent, err)
		}
	}
	var m targetMemory
	if m.begin(1, 1); m.most != leastTime {
		t.Errorf("a page may take %v", m.most)
	}
}

// Pages in steps count half, and take time as others do.
func TestReadStepped(t *testing.T) {
	area, err := unix.Mmap(-1, 0, 16*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(area)
	at := uint64(uintptr(unsafe.Pointer(&area[0])))
	var addrs []uint64
	var bufs []*[4096]byte
	for i := range uint64(8) {
		area[2*i*pageSize] = byte(i + 1)
		addrs, bufs = append(addrs, at+2*i*pageSize), append(bufs, new([4096]byte))
	}
	var m targetMemory
	m.begin(unix.Getpid(), 100)
	defer m.userfault.close()
	m.userfault.pid, m.userfault.scan = m.pid, &fdScan{}
	m.userfault.scan.running.Store(true) // nobody looks
	spent := time.Duration(0)
	for _, c := range []struct{ pages, want, left int }{
		{100, 8, 96},
		{9, 8, 5},
		{2, 4, 0},
		{0, 0, 0},
	} {
		m.pages = c.pages
		m.spent = 0 // beside load the first alone may take all the time
		for _, b := range bufs {
			b[0] = 0
		}
		if n := m.ReadStepped(addrs, bufs); n != c.want || m.pages != c.left {
			t.Errorf("%+v: %d, %d left", c, n, m.pages)
		}
		for i, b := range bufs {
			if want := byte(i + 1); i < c.want && b[0] != want || i >= c.want && b[0] != 0 {
				t.Errorf("%+v: page %d has %d", c, i, b[0])
			}
		}
		spent += m.spent
	}
	if spent <= 0 || m.calls != 3 {
		t.Errorf("%v in %d calls", spent, m.calls)
	}
	// One is not there any more: it ends before, and makes none.
	for _, c := range []struct{ gone, step, want int }{{3, 2, 3}, {0, 2, 0}, {7, 2, 7}, {5, -2, 2}, {-1, -2, 8}} {
		for i := range area {
			area[i] = 1
		}
		if c.gone >= 0 {
			if err := unix.Madvise(area[2*c.gone*pageSize:(2*c.gone+1)*pageSize], unix.MADV_DONTNEED); err != nil {
				t.Fatal(err)
			}
		}
		row := slices.Clone(addrs)
		if c.step < 0 {
			slices.Reverse(row)
		}
		m.pages, m.spent = 100, 0
		if n := m.ReadStepped(row, bufs); n != c.want || m.pages != 100-(n+1)/2 {
			t.Errorf("%+v: %d pages, %d left", c, n, m.pages)
		}
		if c.gone >= 0 && m.userfault.present(addrs[c.gone]/pageSize) {
			t.Errorf("%+v: the page was made", c)
		}
	}
	far := []uint64{addrs[0], addrs[1], addrs[0] + 4096*wholeRow*pageSize}
	if n := m.userfault.presentOf(unix.Getpid(), far); n != 2 {
		t.Errorf("of far pages %d are there", n)
	}
	if m.pages, m.spent = 100, m.most+1; m.ReadStepped(addrs, bufs) != 0 {
		t.Error("read when the time was over")
	}
}
