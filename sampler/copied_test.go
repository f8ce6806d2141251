// Needs: nothing.
package sampler

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTransferredOf(t *testing.T) {
	const io = "rchar: 4292\nwchar: 100\nsyscr: 13\nsyscw: 7\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 8\n"
	if n, err := transferredOf([]byte(io)); n != 4392 || err != nil {
		t.Errorf("%d, %v; want 4392", n, err)
	}
	for _, bad := range []string{"", "rchar: 4292\n", "rchar: 4292\nwchar: x\n"} {
		if n, err := transferredOf([]byte(bad)); err == nil {
			t.Errorf("%q: %d", bad, n)
		}
	}
}

func TestFaultsOf(t *testing.T) {
	if n, err := faultsOf([]byte("1 (a) 3 4 b) R 1 2 3 4 -1 4194304 120 17 18 19 20 21\n")); n != 120 || err != nil {
		t.Errorf("%d, %v; want 120", n, err)
	}
	for _, bad := range []string{"", "1 (a) R 1 2 3 4 -1 4194304", "1 (a) R 1 2 3 4 -1 4194304 x"} {
		if n, err := faultsOf([]byte(bad)); err == nil {
			t.Errorf("%q: %d", bad, n)
		}
	}
}

// What a process writes and reads, and the new pages that it touches, are what it has copied.
func TestCopied(t *testing.T) {
	const size = 1 << 20
	fd, err := unix.MemfdCreate("rdx-copied", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	before, err := Copied(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err == nil {
		defer unix.Munmap(mem)
		err = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += os.Getpagesize() {
		mem[i] = 1
	}
	for range 2 {
		if n, err := unix.Pwrite(fd, mem, 0); n != size || err != nil {
			t.Fatal(n, err)
		}
	}
	if n, err := unix.Pread(fd, mem, 0); n != size || err != nil {
		t.Fatal(n, err)
	}
	after, err := Copied(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// Go's runtime may touch pages of its own beside.
	if n := after - before; n < 4*size || n > 12*size {
		t.Errorf("%d bytes copied, want %d and a little more", n, 4*size)
	}
	if n, err := Copied(1 << 30); err == nil {
		t.Errorf("process %d has copied %d bytes", 1<<30, n)
	}
}
