//go:build amd64

package ahead

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// holdsNothing is a handler that holds nothing.
type holdsNothing struct{ exited chan int }

func (holdsNothing) ThreadStarted(int, int)                    {}
func (w holdsNothing) ThreadMissed(int, error)                 {}
func (w holdsNothing) ThreadExited(tid int, _ unix.WaitStatus) { w.exited <- tid }
func (holdsNothing) Execed(int)                                {}
func (holdsNothing) Hold(int, unix.Signal) (bool, bool)        { return false, false }
func (holdsNothing) Pending() bool                             { return false }
func (holdsNothing) LetGo()                                    {}
func (holdsNothing) Repeats(int)                               {}

// startProgram compiles and starts a C program, which says that it is ready. Its standard input is a pipe.
func startProgram(t *testing.T, source string) (target *exec.Cmd, in io.Closer, out *bufio.Reader) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "target")
	cc := exec.Command("gcc", "-O2", "-o", bin, "-x", "c", "-")
	cc.Stdin = strings.NewReader(source)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Skipf("needs gcc: %v: %s", err, out)
	}
	target = exec.Command(bin)
	in, err := target.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := target.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	out = bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return target, in, out
}
