package ptrace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// LaunchArg is the hidden first argument with which rdx starts itself to
// become the target: main must call RunLaunched when it sees it.
const LaunchArg = "__launch"

// Launched is a process that will run the target's program as soon as Go is
// called: in between it can be seized, so that nothing of it is missed.
type Launched struct {
	PID  int
	path string
	open *os.File
}

// NotRunError says that a program could not be started.
type NotRunError struct {
	Program string
	Err     error
}

func (e *NotRunError) Error() string { return fmt.Sprintf("run %s: %v", e.Program, e.Err) }
func (e *NotRunError) Unwrap() error { return e.Err }

// Found says whether there is such a program.
func (e *NotRunError) Found() bool {
	return !errors.Is(e.Err, exec.ErrNotFound) && !errors.Is(e.Err, fs.ErrNotExist)
}

// Launch starts command, looked up in PATH, with our own standard files. It
// does not begin to run before Go.
func Launch(command []string) (*Launched, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		err = errors.Unwrap(err)
		// The program is named already.
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, &NotRunError{command[0], err}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", command[0], err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", command[0], err)
	}
	defer r.Close()
	// The launched process waits at the first descriptor that the program does not inherit from whoever started us.
	files := []uintptr{0, 1, 2}
	for inherited(len(files)) {
		files = append(files, uintptr(len(files)))
	}
	argv := append([]string{self, LaunchArg, strconv.Itoa(len(files)), path}, command...)
	pid, err := syscall.ForkExec(self, argv, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: append(files, r.Fd()),
	})
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("run %s: %w", command[0], err)
	}
	return &Launched{pid, path, w}, nil
}

// inherited is whether what we start gets our descriptor fd.
func inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// Go lets the launched process run its program.
func (l *Launched) Go() error {
	defer l.open.Close()
	if _, err := l.open.Write([]byte{1}); err != nil {
		return fmt.Errorf("run %s: %w", l.path, err)
	}
	return nil
}

// Abandon ends the launched process, which has not yet become the program.
func (l *Launched) Abandon() {
	l.open.Close()
	_ = syscall.Kill(l.PID, syscall.SIGKILL)
	_, _ = syscall.Wait4(l.PID, nil, 0, nil)
}

// RunLaunched becomes the target's program. args are those after LaunchArg.
// It returns only if the program can't be run or the profiler is gone.
func RunLaunched(args []string) error {
	gate, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	args = args[1:]
	f := os.NewFile(uintptr(gate), "gate")
	if n, err := f.Read(make([]byte, 1)); n != 1 {
		return &NotRunError{args[1], fmt.Errorf("profiler is gone: %w", err)}
	}
	f.Close()
	return &NotRunError{args[1], advise(args[0], syscall.Exec(args[0], args[1:], os.Environ()))}
}

// advise says what the kernel's word for why it does not run a file comes from.
func advise(path string, err error) error {
	switch err {
	case syscall.ENOENT:
		if _, failed := os.Stat(path); failed == nil {
			return fmt.Errorf("%w: the file is there, what it is run by is not (the interpreter in a script's first line, or a program's dynamic loader)", err)
		}
	case syscall.ENOEXEC:
		return fmt.Errorf("%w (a program that is damaged or for another processor, or a script without a first line such as #!/bin/sh: rdx run -- sh %s)", err, path)
	}
	return err
}
