// Needs: nothing; root to read another process.
package ahead

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The vdso's data are found, in this process and in another one, and nothing else is taken for them.
func TestVVAR(t *testing.T) {
	pages := vvarOfRdx()
	if pages.start == 0 {
		t.Skip("this kernel maps no [vvar]")
	}
	var v vvars
	var b [4096]byte
	if err := v.read(os.Getpid(), pages.start, b[:]); err != nil || bytes.Equal(b[:], make([]byte, len(b))) {
		t.Fatalf("%v, or all zero", err)
	}
	for _, addr := range []uint64{pages.start - 4096, pages.limit, 0} {
		if err := v.read(os.Getpid(), addr, b[:]); err == nil {
			t.Errorf("%#x was read, which is not in %+v", addr, pages)
		}
	}
	for addr := pages.start; addr < pages.limit; addr += 4096 {
		_ = v.read(os.Getpid(), addr, b[:]) // not all need be there, but none may crash
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { other.Process.Kill(); other.Wait() }()
	theirs := vvarOf(strconv.Itoa(other.Process.Pid))
	for end := time.Now().Add(10 * time.Second); theirs.start == 0 && time.Now().Before(end); { // exec maps it after Start has returned
		theirs = vvarOf(strconv.Itoa(other.Process.Pid))
	}
	if theirs.start == 0 {
		t.Fatal("not found in another process")
	}
	var m targetMemory
	m.begin(other.Process.Pid, 10)
	m.userfault.of(m.pid)
	m.userfault.scan.used.Store(false)
	if err := m.ReadPage(theirs.start, &b); err != nil {
		t.Errorf("of another process: %v", err)
	}
	v.forget(os.Getpid())
	if len(v.of) != 0 {
		t.Error("is not forgotten")
	}
}

func TestUserfaultInMappings(t *testing.T) {
	const plain = "VmFlags: rd wr mr mw me ac sd \n"
	for text, want := range map[string]bool{
		"":    true, // not known
		plain: false,
		plain + "7f00-7f01 rw-p um\nSize: 4 kB\n" + plain:       false, // another line
		plain + "VmFlags: rd wr mr mw me um ac sd\n":            true,
		plain + "VmFlags: rd wr mr mw me ac uw\n" + plain:       true,
		strings.Repeat("x", 200_000) + "\n" + plain:             false,
		strings.Repeat(plain, 3000) + "VmFlags: rd mr mw me ui": true,
	} {
		if got := userfaultIn(strings.NewReader(text)); got != want {
			t.Errorf("%.80q: %v", text, got)
		}
	}
}
