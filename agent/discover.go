package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Key is a process for as long as it lives: numbers are used again.
type Key struct {
	PID   int
	Start uint64 // ticks after boot
}

// Process is what /proc/PID/stat says of one.
type Process struct {
	Key
	Name    string // its main thread's
	Parent  int
	Kernel  bool
	Zombie  bool
	CPU     time.Duration // of all its threads, since its start
	Threads int
	// Executed: the kernel is done with executing its program. It puts down where the code ends when it has the environment, which
	// ends where it begins for a moment, as if there were none.
	Executed bool
}

// ticksPerSecond is USER_HZ, which is 100 on all architectures that rdx runs on.
const ticksPerSecond = 100

const kernelThread = 0x00200000 // PF_KTHREAD

// parseStat reads /proc/PID/stat. A name may hold brackets, blanks and line ends.
func parseStat(b []byte) (Process, error) {
	var p Process
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return p, errors.New("stat: no name")
	}
	p.Name = string(b[open+1 : end])
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return p, fmt.Errorf("stat: %d fields", len(f))
	}
	var err error
	number := func(i int) uint64 {
		n, e := strconv.ParseUint(f[i], 10, 64)
		err = errors.Join(err, e)
		return n
	}
	if p.PID, err = strconv.Atoi(strings.TrimSpace(string(b[:open]))); err != nil {
		return p, err
	}
	p.Zombie = f[0] == "Z" || f[0] == "X"
	p.Parent = int(number(1))
	p.Kernel = number(6)&kernelThread != 0
	p.CPU = time.Duration(number(11)+number(12)) * (time.Second / ticksPerSecond)
	p.Threads = int(number(17))
	p.Start = number(19)
	const endCode = 27 - 3 // of the fields behind the name, which is the second
	p.Executed = len(f) > endCode && f[endCode] != "0"
	return p, err
}

// A Proc reads one /proc.
type Proc struct {
	Dir string // "/proc"
}

// Process reads one process; it is fs.ErrNotExist where there is none any more.
func (r Proc) Process(pid int) (Process, error) {
	b, err := os.ReadFile(r.path(pid, "stat"))
	if errors.Is(err, unix.ESRCH) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return Process{}, err
	}
	return parseStat(b)
}

func (r Proc) path(pid int, file string) string {
	return filepath.Join(r.Dir, strconv.Itoa(pid), file)
}

// Processes lists all that can be read. Those that end meanwhile are left out.
func (r Proc) Processes() ([]Process, error) {
	d, err := os.Open(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []Process
	for _, n := range names {
		if n[0] < '0' || n[0] > '9' {
			continue
		}
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if p, err := r.Process(pid); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// Busy is the machine's CPU time so far, of user programs and the kernel.
func (r Proc) Busy() (time.Duration, error) {
	b, err := os.ReadFile(filepath.Join(r.Dir, "stat"))
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("%s/stat: no line of all CPUs", r.Dir)
	}
	var ticks uint64
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		n, err := strconv.ParseUint(f[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s/stat: %w", r.Dir, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / ticksPerSecond), nil
}

// Uptime is the time since boot in ticks, which Key.Start counts from.
func (r Proc) Uptime() (uint64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, err
	}
	return uint64(ts.Nano() / int64(time.Second/ticksPerSecond)), nil
}

// Details is what is read of a process that is to be sampled.
type Details struct {
	Exe    string // path as the process sees it
	Cgroup string // path
	Name   string
	// Env are the variables that labels are made of.
	Env    map[string]string
	Traced bool // by a debugger or another profiler
	Self   bool // it is rdx that runs
	// EnvUnread: the environment could not be read, or not to its end, so that it is not known
	// whether the process asks not to be sampled.
	EnvUnread error
}

const (
	mostEnviron = 8 << 20 // bytes; Linux has no more than a quarter of the stack's limit
	mostValue   = 4096    // of one variable that is kept
)

// Details reads them. They may change at any time, by exec, so that they hold for now only.
func (r Proc) Details(pid int, variables ...string) (*Details, error) {
	d := &Details{Env: map[string]string{}}
	status, err := readAtMost(r.path(pid, "status"), 1<<16)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(status)) {
		if name, ok := strings.CutPrefix(line, "Name:\t"); ok {
			d.Name = strings.TrimSuffix(name, "\n")
		}
		if tracer, ok := strings.CutPrefix(line, "TracerPid:"); ok {
			d.Traced = strings.TrimSpace(tracer) != "0"
		}
	}
	if d.Exe, err = os.Readlink(r.path(pid, "exe")); err != nil {
		return nil, err
	}
	d.Exe = strings.TrimSuffix(d.Exe, " (deleted)")
	d.Self = r.isSelf(pid, d.Exe)
	cgroup, err := readAtMost(r.path(pid, "cgroup"), 1<<16)
	if err != nil {
		return nil, err
	}
	d.Cgroup = cgroupPath(string(cgroup))
	env, err := r.environ(pid)
	d.EnvUnread = err
	for len(env) > 0 {
		var v []byte
		v, env, _ = bytes.Cut(env, []byte{0})
		for _, name := range variables {
			if len(v) > len(name) && v[len(name)] == '=' && string(v[:len(name)]) == name {
				d.Env[name] = string(v[len(name)+1:][:min(len(v)-len(name)-1, mostValue)])
			}
		}
	}
	return d, nil
}

// errExecuted: the program is just being executed, and the kernel has not put down yet where its environment is; it is
// read as empty then.
var errExecuted = errors.New("it is just being executed")

// environ is a process's environment, with an error where that is not known, or not to its end.
func (r Proc) environ(pid int) ([]byte, error) {
	env, err := readAtMost(r.path(pid, "environ"), mostEnviron)
	if err == nil && len(env) == 0 {
		// None, or not yet. Once the program is executed what is read is it.
		if p, err := r.Process(pid); err != nil || !p.Executed {
			return nil, errExecuted
		}
		env, err = readAtMost(r.path(pid, "environ"), mostEnviron)
	}
	if err == nil && len(env) == mostEnviron {
		err = fmt.Errorf("an environment of more than %d bytes", mostEnviron)
	}
	return env, err
}

// isSelf says whether a process runs this program's file. Others are not looked at: they may lie where
// that takes for ever.
func (r Proc) isSelf(pid int, exe string) bool {
	if self, err := os.Readlink("/proc/self/exe"); err != nil || strings.TrimSuffix(self, " (deleted)") != exe {
		return false
	}
	a, err := os.Stat(r.path(pid, "exe"))
	if err != nil {
		return false
	}
	b, err := os.Stat("/proc/self/exe")
	return err == nil && os.SameFile(a, b)
}

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// cgroupPath is the unified hierarchy's path, or without one that of the first which is not
// the root.
func cgroupPath(file string) string {
	found := "/"
	for line := range strings.Lines(file) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[0] == "0" && f[1] == "" && f[2] != "/" {
			return f[2]
		}
		if found == "/" {
			found = f[2]
		}
	}
	return found
}
