package progress

import (
	"math"
	"os"
	"strings"
	"testing"
)

// A process that reads and writes what is known.
func TestOf(t *testing.T) {
	name := t.TempDir() + "/file"
	w, err := Of(os.Getpid(), func() error { return os.WriteFile(name, make([]byte, 1<<20), 0o600) })
	if err != nil {
		t.Fatal(err)
	}
	// What /proc/PID/io and the like take to read counts, too, as it is this process that does.
	if w.Bytes < 1<<20 || w.Bytes > 1<<20+64<<10 {
		t.Errorf("%d bytes, want a megabyte and little more", w.Bytes)
	}
	if w.Lasted <= 0 || w.Ran <= 0 {
		t.Errorf("lasted %v, ran %v", w.Lasted, w.Ran)
	}
	if c := w.Cost(); math.Abs(c.Wall*float64(w.Bytes)-w.Lasted.Seconds()) > 1e-9 {
		t.Errorf("%g s a byte of %d in %v", c.Wall, w.Bytes, w.Lasted)
	}
	if _, err := Of(1<<30, func() error { return nil }); err == nil || !strings.Contains(err.Error(), "no progress") {
		t.Errorf("of a process that there is not: %v", err)
	}
}

func TestOver(t *testing.T) {
	if c := (Cost{3, 6}).Over(Cost{1, 4}, Cost{3, 2}); c.Wall != 1.5 || c.CPU != 2 {
		t.Errorf("%v", c)
	}
	if s := Spread([]float64{3, 1, 2}); s != "x 2.0000, mean 2.0000 +- 0.5774, quartiles [1.0000, 2.0000]" {
		t.Error(s)
	}
}
