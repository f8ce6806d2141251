// Needs: nothing.
package proc

import (
	"os"
	"runtime"
	"testing"
)

// Memory that is touched becomes resident.
func TestResident(t *testing.T) {
	before, ok := Resident(os.Getpid())
	if !ok || before <= 0 {
		t.Fatalf("%d bytes, %v", before, ok)
	}
	const more = 64 << 20
	b := make([]byte, more)
	for i := 0; i < more; i += 4096 {
		b[i] = 1
	}
	if after, _ := Resident(os.Getpid()); after < before+more/2 {
		t.Errorf("%d bytes resident, before %d MiB were touched %d", after, more>>20, before)
	}
	runtime.KeepAlive(b)
	if _, ok := Resident(1 << 30); ok {
		t.Error("a process that is not there has memory")
	}
}
