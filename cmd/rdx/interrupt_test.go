// Needs: root, bpf.
package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rdx-profiler/rdx/collector"
)

// endsAfter is a context that ends when it was asked a number of times whether it has.
type endsAfter struct {
	context.Context
	left atomic.Int32
}

func (c *endsAfter) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Each time that a session looks for Ctrl-C before the program begins, it is not begun.
func TestInterruptedBeforeStart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for BPF and ptrace")
	}
	mark := filepath.Join(t.TempDir(), "ran")
	const looks = 2 // before it is launched, and before it is let go
	for n := range looks + 1 {
		ctx := &endsAfter{Context: t.Context()}
		ctx.left.Store(int32(n))
		s, err := collector.Start(collector.Config{Command: []string{"touch", mark}, Context: ctx, Source: collector.Clock, Burst: collector.AutoBurst, Overhead: .01, Seed: 1})
		if err == nil {
			_, err = s.Wait(t.Context())
			s.Close()
		}
		switch _, missing := os.Stat(mark); {
		case n < looks && (!errors.Is(err, collector.ErrInterrupted) || missing == nil):
			t.Errorf("interrupted at look %d: %v, and the program did not run: %v", n+1, err, missing)
		case n == looks && (err != nil || missing != nil):
			t.Errorf("not interrupted: %v, %v", err, missing)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for want, sent := range map[int][]os.Signal{130: nil, 143: {syscall.SIGTERM}} {
		end := ending{ctx: ended, passed: make(chan os.Signal, 1)}
		for _, s := range sent {
			end.passed <- s
		}
		if got := exitCode(end.interrupted(collector.ErrInterrupted)); got != want {
			t.Errorf("%v: exit code %d, want %d", sent, got, want)
		}
	}
}
