// Needs: root, bpf, watchpoint, gcc. Sessions that end when a miss ratio is known.
package main_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
)

// A list through 8 MiB misses at 1 MiB at one of four accesses: a session of ten minutes ends as soon as that is known within half
// of it, and says so.
func TestUntil(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	p := start(t, compile(t, "rates", "-O2"), "far", "600")
	s := rdx(t, "attach", "-p", strconv.Itoa(p.pid), "--until", "50%", "--cache", "1M", "--overhead", "20", "-d", "10m")
	if code := s.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.stderr.String())
	}
	if said := s.stderr.String(); !strings.Contains(said, "rdx: misses at 1.00MiB: ") || !strings.Contains(said, ", within ") {
		t.Errorf("it says %q", said)
	}
}

// What can't be is said at once.
func TestUntilFlags(t *testing.T) {
	for _, c := range []struct{ flags, says string }{
		{"--until 0%", "such as 20%"},
		{"--cache 1M", "--until 20%"},
		{"--until 20% --cache big", "is not a size"},
		{"--until 20% --stack shared", "--stack own only"},
	} {
		s := rdx(t, append([]string{"attach", "-p", strconv.Itoa(1)}, strings.Fields(c.flags)...)...)
		if code := s.wait(); code != 2 || !strings.Contains(s.stderr.String(), c.says) {
			t.Errorf("%s: exit code %d, %q, want 2 and %q", c.flags, code, s.stderr.String(), c.says)
		}
	}
}
