package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Needs: root, bpf, watchpoint, sh. Of a shell that starts 40 others the profile counts all stops, five for
// each, and tells what they took.
func TestStopsAreToldOf(t *testing.T) {
	needRoot(t)
	const children = 40
	s := rdx(t, "run", "-q", "--follow", "--period", "1ms", "--", "sh", "-c",
		fmt.Sprintf("n=0; while [ $n -lt %d ]; do sh -c 'i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done'; n=$((n+1)); done", children))
	profile := s.profile()
	if n := profile.CountOf(model.OtherStops); n < 5*children || n > 5*children+30 {
		t.Errorf("%d stops, want 5 for each of %d processes, and for the first those of Go's threads that it begins with", n, children)
	}
	told := ""
	for _, c := range profile.Comments {
		if strings.HasPrefix(c, "stops at fork, exec, ") {
			told = c
		}
	}
	if told == "" {
		t.Errorf("nothing is told of what stops took: %q", profile.Comments)
	}
	t.Log(told)
}
