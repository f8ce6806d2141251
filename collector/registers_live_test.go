// Needs: root, bpf, watchpoint, gcc.
package collector

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// flaky is a register of which every third move fails.
type flaky struct {
	register
	moves  int
	closed *int
}

var errFlaky = errors.New("moves are made to fail")

func (f *flaky) Move(addr uint64, traps int) error {
	if f.moves++; f.moves%3 == 0 {
		return errFlaky
	}
	return f.register.Move(addr, traps)
}

func (f *flaky) Close() error {
	*f.closed++
	return f.register.Close()
}

// Needs: root, bpf, watchpoint, gcc. Where registers can't be moved the session goes on: what they should have watched counts as not
// watched, for that reason, and they are renewed and given back.
func TestMovesFail(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := filepath.Join(t.TempDir(), "sum")
	if out, err := exec.Command("gcc", "-O2", "-pthread", "-o", bin, "../cmd/rdx/testdata/safety/sum.c", "-lrt").CombinedOutput(); err != nil {
		t.Fatalf("compile sum.c: %v: %s", err, out)
	}
	cmd := exec.Command(bin, "20")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", cmd.Process.Pid)); len(tasks) > 20 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no twenty threads")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var session *Session
	moved, failed, missing := 0, 0, 0
	session, err = Start(Config{PID: cmd.Process.Pid, Source: Clock, Clock: CPUTime, Seed: 1, Stack: PrivateStack, Burst: AutoBurst, Overhead: .5, Period: 200 * time.Microsecond, Progress: func(Progress) {
		s := session.sampling
		s.tracing.tracer.Do(func() { moved, failed = s.watches.registers.moved, s.watches.registers.failed })
		if moved >= 10 && failed >= 5 {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	s := session.sampling
	opened, closed := 0, 0
	s.tracing.tracer.Do(func() {
		r := s.watches.registers
		open := r.open
		for slot := range r.of {
			for cpu, reg := range r.of[slot] {
				r.of[slot][cpu] = &flaky{register: reg, closed: &closed}
				opened++
			}
		}
		r.open = func(cpu, slot int, writes bool) (register, error) {
			reg, err := open(cpu, slot, writes)
			if err != nil {
				return nil, err
			}
			opened++
			return &flaky{register: reg, closed: &closed}, nil
		}
	})
	p, err := session.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	checkRecords(t, p)
	missing = int(p.CountOf(model.NotWatched.Of(model.RegisterFailed)))
	t.Logf("%d moved, %d failed, %d not watched for it; %d opened, %d closed; %v", moved, failed, missing, opened, closed, p.Comments)
	if moved < 10 || failed < 5 {
		t.Errorf("%d moved, %d failed", moved, failed)
	}
	if missing < failed {
		t.Errorf("%d observations count as not watched, of %d that failed", missing, failed)
	}
	if opened != closed {
		t.Errorf("%d registers taken, %d given back", opened, closed)
	}
	if err := unix.Kill(cmd.Process.Pid, 0); err != nil {
		t.Errorf("the target: %v", err)
	}
}
