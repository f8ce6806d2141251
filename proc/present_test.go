// Needs: nothing.
package proc

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Memory that is touched is present, also where it was only read.
func TestPresent(t *testing.T) {
	const size = 64 << 20
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	before, ok := Present(os.Getpid())
	if !ok || before <= 0 {
		t.Fatalf("%d bytes, %v", before, ok)
	}
	sum := byte(0)
	for i := 0; i < size/2; i += 4096 {
		sum += b[i]
	}
	for i := size / 2; i < size*3/4; i += 4096 {
		b[i] = 1 + sum
	}
	after, _ := Present(os.Getpid())
	if more := after - before; more < size*6/10 || more > size {
		t.Errorf("%d MiB more after %d MiB were touched", more>>20, size*3/4>>20)
	}
	if _, ok := Present(1 << 30); ok {
		t.Error("a process that is not there has memory")
	}
}

// Mappings of a page each that follow each other are looked at by a few reads.
func TestPresentOfManyMappings(t *testing.T) {
	const many, readsEach = 20_000, 0.1
	page := os.Getpagesize()
	b, err := unix.Mmap(-1, 0, many*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	for i := 0; i < many; i += 2 {
		if err := unix.Mprotect(b[i*page:(i+1)*page], unix.PROT_READ); err != nil {
			t.Fatal(err)
		}
	}
	before := reads(t)
	if _, ok := Present(os.Getpid()); !ok {
		t.Fatal("not known")
	}
	if n := reads(t) - before; float64(n) > readsEach*many {
		t.Errorf("%d reads for %d mappings", n, many)
	}
}

// reads is how many calls that read this process has made.
func reads(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	found := regexp.MustCompile(`syscr: (\d+)`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no reads in %q", text)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What is touched for the first time was mapped by then, also where it is given back before anybody looks.
func TestMapped(t *testing.T) {
	const size = 8 << 20
	before, ok := Mapped(os.Getpid())
	if !ok || before <= 0 {
		t.Fatalf("%d bytes, %v", before, ok)
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += 4096 {
		b[i] = 1
	}
	if err := unix.Munmap(b); err != nil {
		t.Fatal(err)
	}
	after, ok := Mapped(os.Getpid())
	if more := after - before; !ok || more < size {
		t.Errorf("%d bytes more, %v, after %d were touched", more, ok, size)
	}
	if _, ok := Mapped(1 << 30); ok {
		t.Error("a process that is not there has memory")
	}
}
