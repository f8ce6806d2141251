// Needs: gcc on x86-64.
package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAVX512Warning(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 alone has AVX-512")
	}
	src := filepath.Join(t.TempDir(), "p.c")
	if err := os.WriteFile(src, []byte("float a[4096], b[4096];\n__attribute__((noinline)) void add_all(void) { for (int i = 0; i < 4096; i++) a[i] = a[i] * b[i] + b[i]; for (int i = 0; i < 4096; i++) b[i] -= a[i] / 3; }\nint main(void) { add_all(); return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags string
		warns bool
	}{
		{"-O3 -mavx512f -mprefer-vector-width=512", true}, {"-O3 -mavx512f -mprefer-vector-width=512 -s", true},
		{"-O3 -mavx2 -mfma", false}, {"-O3", false}, {"-O3 -s", false},
	} {
		bin := filepath.Join(t.TempDir(), "p")
		if out, err := exec.Command("gcc", append(strings.Fields(c.flags), "-o", bin, src)...).CombinedOutput(); err != nil {
			t.Skipf("gcc: %v: %s", err, out)
		}
		var said bytes.Buffer
		warnEngine(&said, bin)
		if got := strings.Contains(said.String(), "AVX-512"); got != c.warns || got && strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%s: %q", c.flags, said.String())
		}
		if c.warns && !strings.Contains(c.flags, "-s") && !strings.Contains(said.String(), "in add_all") {
			t.Errorf("%s: %q does not say where", c.flags, said.String())
		}
	}
	// A pipe is not opened, which would wait for whoever writes to it.
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		warnEngine(io.Discard, pipe)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("a pipe is waited for")
	}
	// Programs that everybody has.
	for _, name := range []string{"/bin/ls", "/usr/bin/sort", "/usr/bin/python3", "/usr/bin/perl"} {
		var said bytes.Buffer
		if warnEngine(&said, name); said.Len() > 0 {
			t.Errorf("%s: %s", name, said.String())
		}
	}
}
