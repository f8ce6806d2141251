package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdx-profiler/rdx/trace"
)

// Where in a line a program's stack begins depends on how long its arguments and
// its environment are, and on who starts it, the kernel or the engine. Which
// data share a line depends on that: of openssl's lines up to a tenth of the
// histogram. So all runs have a variable more, as long as it takes for the stack
// to begin with a line.

// lineBytes is the size of a line.
const lineBytes = 64

// padded is the environment in which the program begins its stack with a line.
func (b *bench) padded(argv []string, stack func(argv, env []string) (uint64, error)) ([]string, error) {
	env := append(pinned[:len(pinned):len(pinned)], "RDX_ENGINE="+b.engine())
	pad := "PAD="
	for range 2 {
		with := append(env[:len(env):len(env)], pad)
		at, err := stack(argv, with)
		if err != nil {
			return nil, fmt.Errorf("find the stack of %s: %w", argv[0], err)
		}
		if at%lineBytes == 0 {
			return with, nil
		}
		pad += strings.Repeat("x", int(at%lineBytes))
	}
	return nil, fmt.Errorf("the stack of %s does not move with its environment", argv[0])
}

func (b *bench) engine() string { return filepath.Join(filepath.Dir(b.rdx), "valgrind") }

// bareStack is the stack pointer with which the kernel starts a program.
func (b *bench) bareStack(argv, env []string) (sp uint64, err error) {
	runtime.LockOSThread() // whose child is traced
	defer runtime.UnlockOSThread()
	c := exec.Command("setarch", append([]string{"-R"}, argv...)...)
	c.Dir, c.Env = b.dir, env
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := c.Start(); err != nil {
		return 0, err
	}
	defer c.Wait()
	defer c.Process.Kill()
	for range 2 { // setarch's start and the program's
		if sp != 0 {
			if err := syscall.PtraceCont(c.Process.Pid, 0); err != nil {
				return 0, err
			}
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(c.Process.Pid, &status, 0, nil); err != nil {
			return 0, err
		}
		if !status.Stopped() || status.StopSignal() != syscall.SIGTRAP {
			return 0, fmt.Errorf("it did not start: %#x", uint32(status))
		}
		if sp, err = startStack(c.Process.Pid); err != nil {
			return 0, err
		}
	}
	return sp, nil
}

// startStack is where a process's stack began, field 28 of its stat.
func startStack(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	if len(fields) < 26 {
		return 0, fmt.Errorf("%d fields after the name in /proc/%d/stat: want 26 and more", len(fields), pid)
	}
	return strconv.ParseUint(fields[25], 10, 64)
}

// engineStack is the stack pointer with which the engine starts a program: the
// dynamic linker's first instructions store a return address below it, and
// nothing before.
func (b *bench) engineStack(argv, env []string) (uint64, error) {
	l := trace.StartLive(context.Background(), trace.Command{Args: argv, Env: env, Dir: b.dir}, trace.Options{Engine: b.engine()})
	defer l.Close()
	if !l.Next() {
		if err := l.Err(); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("it made no access")
	}
	first, _ := l.Record()
	if first.Size != 8 {
		return 0, fmt.Errorf("its first access is of %d bytes, not a return address", first.Size)
	}
	return first.Addr + 8, nil
}
