// Needs: nothing.
package proc

import (
	"os"
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
