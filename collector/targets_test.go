package collector

import (
	"os/exec"
	"testing"
)

// What rdx itself has run before, to measure what a hold costs, is no child of the program.
func TestChildrenBefore(t *testing.T) {
	if err := exec.Command("sh", "-c", "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	s := newTargets()
	s.cfg, s.child, s.exit = &Config{}, 1, ExitStatus{Exited: true}
	if s.childrenTime() == 0 {
		t.Fatal("a child that used more than 0.3 s of CPU time is not seen: the test tells nothing")
	}
	s.waitedFor = waitedFor()
	if ns := s.childrenTime(); ns != 0 {
		t.Errorf("%d ns of children that were waited for before the program began", ns)
	}
}
