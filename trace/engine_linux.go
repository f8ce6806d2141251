package trace

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
)

// Command is the program to run.
type Command struct {
	Args   []string // the program and its arguments
	Env    []string // nil: that of this process
	Dir    string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Store says how the engine notices that a buffer is full.
type Store string

const (
	StoreGuarded   Store = "guard" // a protected page; Shen and Shaw, section 3, Algorithm 2
	StoreCheck     Store = "check" // one check and branch per segment
	StoreCheckEach Store = "each"  // one per access; Algorithm 1

	storeSampled Store = "sampled" // with a Skipper
)

// Kind says which engine runs the program.
type Kind string

const (
	Valgrind Kind = "valgrind" // threads in turn, every access whole
	QEMU     Kind = "qemu"     // threads in parallel, vector accesses in pieces of 8 bytes
)

// Options of a run. The zero value is what users want.
type Options struct {
	Kind     Kind   // "" is Valgrind
	Engine   string // folder of the built tool; "" to look for it, see FindEngine
	Children bool   // follow forks and execs too
	Store    Store  // "" is StoreGuarded
	// MaxProcesses bounds how many are recorded at a time; 0 is 256. Further
	// ones run unrecorded, and the result says so.
	MaxProcesses int
	// Ordered puts the accesses of threads that run in parallel into the order of their
	// time: see order_linux.go. It is for one process under QEMU, of whose accesses
	// memory holds orderedBytes.
	Ordered bool
	// Fast leaves out loads whose result the program overwrites unread within
	// one superblock; see docs/reference/access-model.md.
	Fast bool

	// Skipper says which accesses need not be seen; nil if all are to be. It is
	// for one process under Valgrind.
	Skipper Skipper

	online bool   // analysed while it runs
	room   uint64 // bytes that Ordered may take; 0 is orderedBytes
	spills bool   // show what valgrind stores on the stack for itself, as lackey does
	checks bool   // have valgrind check the code that the tool makes
}

// Skipper says between batches which accesses are of no use. The program waits
// for its answer and runs faster while they go by.
type Skipper interface {
	// Skip is how many of the next accesses need not be seen.
	Skip() uint64
	// Skipped is called when so many have gone by.
	Skipped(accesses uint64)
}

// Result is how a run ended and what became of its accesses.
type Result struct {
	ExitCode  int            // of the program; -1 if a signal ended it
	Signal    syscall.Signal // 0 if none
	Processes int            // that delivered accesses
	RawBytes  uint64         // of the engine's stream
	// Partial says why the accesses are not all there; empty if they are.
	Partial []string
	// Mappings is the code that the program itself had mapped, without that
	// of the processes it started.
	Mappings []*model.Mapping
}

const (
	toolName    = "rdx-amd64-linux"
	pluginName  = "librdx-qemu.so"
	tailBytes   = 1 << 16
	controlSize = 4096

	messageHello = 1
	messageFull  = 2
	// messageEntries is a full buffer of nothing but entries.
	messageEntries = 3
	messageBytes   = 24
)

// FindEngine looks for the built tool: in $RDX_ENGINE, or else beside the
// running program in valgrind/, bin/valgrind/ and ../lib/rdx/valgrind/, or else in
// the user's own folder, see UserEngines. Not in the current directory: it may be somebody else's, and rdx run by root.
func FindEngine() (dir string, err error) {
	if dir := findFile("valgrind", toolName); dir != "" {
		return dir, nil
	}
	return "", errNotBuilt
}

var errNotBuilt = errors.New("instrumentation engine not built: run `rdx engine build valgrind` (needs the packages valgrind, gcc and make), or set RDX_ENGINE to its folder")

// findFile looks where an engine of this kind may have been built.
func findFile(kind, name string) (dir string) {
	var dirs []string
	if d := os.Getenv("RDX_ENGINE"); d != "" {
		dirs = append(dirs, d)
	} else if exe, err := os.Executable(); err == nil {
		d := filepath.Dir(exe)
		dirs = append(dirs, filepath.Join(d, kind), filepath.Join(d, "bin", kind), filepath.Join(d, "../lib/rdx", kind))
		if d := ownEngines(); d != "" {
			dirs = append(dirs, filepath.Join(d, kind))
		}
	}
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, name)); err == nil {
			return d
		}
	}
	return ""
}

// launcher is valgrind's own program, which children that exec are started
// with. Debian wraps it in a shell script.
func launcher() (string, error) {
	for _, name := range []string{"valgrind.bin", "valgrind"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", errors.New("instrumentation engine: valgrind is not installed (apt-get install valgrind)")
}

func (cmd *Command) env() []string {
	env := cmd.Env
	if env == nil {
		env = os.Environ()
	}
	return env[:len(env):len(env)]
}

// getenv is the value of a variable of an environment as exec.Cmd hands it on: the last.
func getenv(env []string, name string) (value string) {
	for _, v := range env {
		if found, ok := strings.CutPrefix(v, name+"="); ok {
			value = found
		}
	}
	return value
}

// valgrindCommand is the program under the valgrind tool, which leaves its
// messages in tmp.
func valgrindCommand(ctx context.Context, program, tmp, socket string, cmd Command, opt Options) (*exec.Cmd, error) {
	dir := opt.Engine
	if dir == "" {
		d, err := FindEngine()
		if err != nil {
			return nil, err
		}
		dir = d
	} else if _, err := os.Stat(filepath.Join(dir, toolName)); err != nil {
		return nil, fmt.Errorf("engine %s: %w", dir, errNotBuilt)
	}
	vg, err := launcher()
	if err != nil {
		return nil, err
	}
	store := opt.Store
	if store == "" {
		store = StoreGuarded
	}
	if opt.Ordered {
		return nil, errors.New("engine valgrind: runs threads in turn, and has no order of its own to keep: take qemu")
	}
	if opt.Skipper != nil {
		if opt.Children || opt.Store != "" {
			return nil, errors.New("run: accesses can be skipped in one process only, with its own way of storing")
		}
		store = storeSampled
	}
	args := []string{
		"valgrind", "-q", "--command-line-only=yes", "--tool=rdx", "--vgdb=no", "--fair-sched=try",
		"--log-file=" + filepath.Join(tmp, "log.%p"), "--child-silent-after-fork=yes",
		"--rdx-socket=" + socket, "--rdx-store=" + string(store),
	}
	if opt.spills {
		args = append(args, "--rdx-spills=yes")
	}
	if opt.online {
		// Superblocks that end at jumps are translated once, not once for each way to get there: a start is a sixth
		// shorter, and loops are up to 3 % slower, which does not show where the program waits.
		args = append(args, "--rdx-buffers="+strconv.Itoa(fewBuffers), "--vex-guest-chase=no")
	}
	if opt.checks {
		args = append(args, "--rdx-checks=yes")
	}
	if !opt.Fast {
		args = append(args, "--px-default=allregs-at-each-insn", "--px-file-backed=allregs-at-each-insn")
	}
	env := append(cmd.env(), "VALGRIND_LAUNCHER="+vg)
	if opt.Children {
		args = append(args, "--trace-children=yes")
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("run: %w", err)
		}
		env = append(env, "VALGRIND_LIB="+abs)
	}
	c := exec.CommandContext(ctx, filepath.Join(dir, toolName))
	if getenv(env, "PATH") == os.Getenv("PATH") {
		program = cmd.Args[0] // valgrind looks for it there itself, and passes the name on as the program's argv[0]
	}
	c.Args = append(append(args, "--", program), cmd.Args[1:]...)
	c.Env = env
	return c, nil
}

// qemuCommand is the program under QEMU's user-mode emulator with the plugin.
func qemuCommand(ctx context.Context, program, socket string, cmd Command, opt Options) (*exec.Cmd, error) {
	if opt.Store != "" || opt.Fast || opt.Skipper != nil {
		return nil, errors.New("engine qemu: ways of storing, leaving out loads and skipping accesses are valgrind's alone")
	}
	qemu, err := exec.LookPath("qemu-x86_64")
	if err != nil {
		return nil, errors.New("instrumentation engine: QEMU is not installed (apt-get install qemu-user)")
	}
	dir := opt.Engine
	if dir == "" {
		dir = findFile("qemu", pluginName)
	}
	plugin, err := filepath.Abs(filepath.Join(dir, pluginName))
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if _, err := os.Stat(plugin); err != nil {
		return nil, errors.New("instrumentation engine not built: run `rdx engine build qemu` (needs the packages gcc and make), or set RDX_ENGINE to its folder")
	}
	load := "file=" + plugin + ",socket=" + socket
	if opt.Children {
		load += ",children=on"
	}
	if opt.Ordered {
		if opt.Children {
			return nil, errors.New("run: the order of threads is kept of one process only")
		}
		load += ",order=on"
	}
	args := []string{"-cpu", "max", "-plugin", load}
	run := interpreted(program)
	if len(run) == 1 {
		args = append(args, "-0", cmd.Args[0])
	}
	c := exec.CommandContext(ctx, qemu, slices.Concat(args, run, cmd.Args[1:])...)
	c.Env = cmd.env()
	return c, nil
}

// interpreted is what the kernel runs for a program: for a script, which QEMU does
// not run, the interpreter that its first line names, that line's argument and the script.
func interpreted(program string) []string {
	argv := []string{program}
	for range 4 { // as often as the kernel does
		if isProgram(argv[0]) != nil {
			break
		}
		f, err := os.Open(argv[0])
		if err != nil {
			break
		}
		head := make([]byte, 256)
		n, _ := io.ReadFull(f, head)
		f.Close()
		line, script := strings.CutPrefix(string(head[:n]), "#!")
		line, _, _ = strings.Cut(line, "\n")
		line = strings.Trim(line, " \t")
		if !script || line == "" {
			break
		}
		by := []string{line}
		if i := strings.IndexAny(line, " \t"); i > 0 { // all the rest is one argument
			by = []string{line[:i], strings.TrimLeft(line[i:], " \t")}
		}
		argv = append(by, argv...)
	}
	return argv
}

// isProgram says why a file can be none: opening a pipe would wait for whoever writes to it.
func isProgram(path string) error {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file, and so no program", path)
	}
	return nil
}

// source makes the sink for one process.
type source interface {
	open(pid int) (sink, error)
	// after calls f once the sinks read none of the words that they have been
	// given so far, on whatever goroutine.
	after(f func())
}

// run runs the program and feeds each process's stream to a sink. One buffer
// is decoded at a time, so sinks need no lock.
func run(ctx context.Context, cmd Command, opt Options, src source) (Result, error) {
	res := Result{}
	if len(cmd.Args) == 0 {
		return res, errors.New("run: no program given")
	}
	program, err := exec.LookPath(cmd.Args[0])
	if err == nil {
		err = isProgram(interpreted(program)[0])
	}
	if err != nil {
		return res, fmt.Errorf("run: %w", err)
	}
	tmp, err := os.MkdirTemp("", "rdx")
	if err != nil {
		return res, fmt.Errorf("run: %w", err)
	}
	defer os.RemoveAll(tmp)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(tmp, "engine"), Net: "unix"})
	if err != nil {
		return res, fmt.Errorf("run: %w", err)
	}
	defer l.Close()

	c, err := engineCommand(ctx, program, tmp, l.Addr().String(), cmd, opt)
	if err != nil {
		return res, err
	}
	e := newEngine(src, opt)
	if err := c.Start(); err != nil {
		return res, fmt.Errorf("run: %w", err)
	}
	accepted := make(chan struct{})
	go func() {
		e.accept(l)
		close(accepted)
	}()
	werr := c.Wait()
	if opt.Children {
		// A child that was forked last may not have connected yet.
		time.Sleep(50 * time.Millisecond)
	}
	if err := e.end(l, tmp); err != nil {
		return res, fmt.Errorf("run: %w", err)
	}
	<-e.over
	e.running.Wait()
	l.Close() // what comes now goes on unrecorded
	<-accepted
	if e.ordered {
		e.err = e.inOrder()
	}

	e.result(&res, c.ProcessState, opt.Children)
	if c.ProcessState == nil {
		return res, fmt.Errorf("run: %w", werr)
	}
	if ctx.Err() != nil {
		res.Partial = append(res.Partial, "stopped before the program's end")
	}
	if e.err != nil {
		return res, e.err
	}
	if e.processes == 0 {
		return res, fmt.Errorf("run %s: the engine did not start (%v): %s", program, c.ProcessState, logText(tmp))
	}
	return res, nil
}

// engineCommand is the program under the engine that opt names, ready to be started.
func engineCommand(ctx context.Context, program, tmp, socket string, cmd Command, opt Options) (c *exec.Cmd, err error) {
	switch opt.Kind {
	case "", Valgrind:
		c, err = valgrindCommand(ctx, program, tmp, socket, cmd, opt)
	case QEMU:
		c, err = qemuCommand(ctx, program, socket, cmd, opt)
	default:
		err = fmt.Errorf("engine %q: want %s or %s", opt.Kind, Valgrind, QEMU)
	}
	if err != nil {
		return nil, err
	}
	c.Dir, c.Stdin, c.Stdout, c.Stderr = cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	return c, nil
}

func newEngine(src source, opt Options) *engine {
	e := &engine{src: src, skipper: opt.Skipper, most: opt.MaxProcesses, pids: map[int]bool{}, came: map[int]int{}, late: map[int]bool{}, over: make(chan struct{}), threads: opt.Kind == QEMU, ordered: opt.Ordered, buffers: bufferCount, bytes: bufferBytes}
	if opt.Kind == QEMU {
		e.buffers, e.bytes = threadBuffers, threadBytes
	}
	if opt.Ordered {
		e.buffers, e.room = orderedBuffers, cmp.Or(opt.room, orderedBytes)
	}
	if e.most == 0 {
		e.most = 256
	}
	return e
}

// result sets how the program ended, and what became of its accesses. A state of nil is not known.
func (e *engine) result(res *Result, state *os.ProcessState, children bool) {
	res.Processes, res.RawBytes, res.Partial, res.Mappings = e.processes, e.raw, e.partial, e.mappings.all
	if e.refused > 0 {
		res.Partial = append(res.Partial, fmt.Sprintf("%d processes were not recorded: more than %d at a time", e.refused, e.most))
	}
	if children && !e.threads {
		for pid, n := range e.came {
			if n == 0 {
				e.late[pid] = true
			}
		}
	}
	if e.gone && !children {
		res.Partial = append(res.Partial, "it went on as another program, which was not recorded, as a script does that starts what it wraps: give that program's own name, or --children")
	}
	if len(e.late) > 0 {
		res.Partial = append(res.Partial, fmt.Sprintf("%d processes were not recorded: they began after the program's end, or executed another one and were not seen since", len(e.late)))
	}
	if state == nil {
		return
	}
	ws := state.Sys().(syscall.WaitStatus)
	res.ExitCode = state.ExitCode()
	if ws.Signaled() {
		res.Signal = ws.Signal()
	}
}

// logText is what valgrind had to say.
func logText(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "log.*"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && len(b) > 0 {
			return strings.Join(strings.Fields(string(b)), " ")
		}
	}
	return "no message"
}

type engine struct {
	src     source
	skipper Skipper
	most    int // processes at a time
	running sync.WaitGroup

	mu        sync.Mutex // held while a buffer is decoded
	err       error      // of a sink; no more is read
	now       int        // processes that are connected
	refused   int
	processes int
	threads   bool         // each connection is a thread's
	buffers   int          // of each connection
	bytes     int          // of each, without its tail
	pids      map[int]bool // then, the processes

	over chan struct{} // closed when all who connected before the program's end have been seen
	came map[int]int   // by process: connections, less those that ended by executing another program
	late map[int]bool  // processes that came after the program's end
	gone bool          // a process has gone on as another program

	room        uint64     // bytes of them
	ordered     bool       // buffers are kept until all have ended
	connections []*process // then, all of them

	raw      uint64
	partial  []string
	program  int // the first process
	mappings mappings
}

// endName is the address of the connection that comes after the program's.
const endName = "end"

// end lets accept see that the program has ended, after every process that has
// connected so far: connections are accepted in their order. Later ones, of children that outlive it, are
// turned away and go on unrecorded: they could come for ever, and one that nobody answers would wait for ever.
func (e *engine) end(l *net.UnixListener, tmp string) error {
	from := &net.UnixAddr{Name: filepath.Join(tmp, endName), Net: "unix"}
	c, err := net.DialUnix("unix", from, l.Addr().(*net.UnixAddr))
	if err != nil {
		l.Close()
		return err
	}
	return c.Close()
}

func (e *engine) accept(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		if from := c.RemoteAddr(); from != nil && filepath.Base(from.String()) == endName {
			c.Close()
			close(e.over)
			continue
		}
		pid := peer(c)
		e.mu.Lock()
		select {
		case <-e.over:
			e.late[pid] = true
			e.mu.Unlock()
			c.Close()
			continue
		default:
		}
		e.came[pid]++
		full := e.now >= e.most
		if full {
			e.refused++
		} else {
			e.now++
		}
		e.mu.Unlock()
		if full {
			c.Close()
			continue
		}
		e.running.Add(1)
		go func() {
			defer e.running.Done()
			defer func() {
				c.Close()
				e.mu.Lock()
				e.now--
				e.mu.Unlock()
			}()
			if err := e.serve(c); err != nil {
				e.mu.Lock()
				if e.err == nil {
					e.err = err
				}
				e.mu.Unlock()
			}
		}()
	}
}

// peer is the process at the other end of a connection.
func peer(c *net.UnixConn) (pid int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // it has been accepted just now, and cannot be closed
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// process is one connection: a program from its start or fork to its end or
// exec.
type process struct {
	pid     int
	region  []byte
	decoder decoder
	to      sink
	full    uint64         // buffers announced
	read    sync.WaitGroup // buffers that are being read
	kept    [][]uint64     // with Options.Ordered, all buffers in their order
}

// serve reads one process's buffers as they fill, and what is left in them
// when it has gone.
func (e *engine) serve(c *net.UnixConn) error {
	p, err := e.hello(c)
	if err != nil {
		return err
	}
	if !e.ordered {
		defer func() {
			p.read.Wait()
			unix.Munmap(p.region)
		}()
	}
	m := make([]byte, messageBytes)
	for messages := bufio.NewReaderSize(c, bufferCount*messageBytes); ; {
		if _, err := io.ReadFull(messages, m); err != nil {
			break
		}
		b := binary.LittleEndian.Uint32(m[4:])
		n := binary.LittleEndian.Uint64(m[8:])
		kind := binary.LittleEndian.Uint32(m)
		if kind != messageFull && kind != messageEntries || int(b) >= e.buffers || n > uint64(e.bytes+tailBytes)/8 {
			return fmt.Errorf("engine: process %d: bad message", p.pid)
		}
		p.full++
		p.decoder.entries = kind == messageEntries
		answer := [4]byte(m[4:8])
		// The answer fails once the process has gone; its last messages are still read.
		if err := e.decode(p, e.words(p, int(b), n), false, func() { c.Write(e.answer(answer[:])) }); err != nil {
			return err
		}
	}
	p.decoder.entries = false
	return e.rest(p)
}

// answer gives a buffer back.
func (e *engine) answer(buffer []byte) []byte {
	if e.skipper == nil {
		return buffer
	}
	return binary.LittleEndian.AppendUint64([]byte{buffer[0], buffer[1], buffer[2], buffer[3], 0, 0, 0, 0}, e.skipper.Skip())
}

// kind is that of the engine.
func (e *engine) kind() Kind {
	if e.threads {
		return QEMU
	}
	return Valgrind
}

func (e *engine) hello(c *net.UnixConn) (*process, error) {
	m := make([]byte, messageBytes)
	oob := make([]byte, 64)
	n, oobn, _, _, err := c.ReadMsgUnix(m, oob)
	if err != nil || n != messageBytes {
		return nil, fmt.Errorf("engine: bad greeting of %d bytes: %w", n, err)
	}
	cms, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(cms) != 1 {
		return nil, fmt.Errorf("engine: greeting without a buffer")
	}
	fds, err := unix.ParseUnixRights(&cms[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("engine: greeting without a buffer")
	}
	defer unix.Close(fds[0])
	region := controlSize + e.buffers*(e.bytes+tailBytes)
	version, size := binary.LittleEndian.Uint32(m[4:]), binary.LittleEndian.Uint64(m[8:])
	if binary.LittleEndian.Uint32(m) != messageHello || version != streamVersion || size != uint64(region) {
		return nil, fmt.Errorf("engine: version %d with %d bytes of buffers, this rdx reads version %d with %d: rebuild it (rdx engine build %s)",
			version, size, streamVersion, region, e.kind())
	}
	p := &process{pid: int(binary.LittleEndian.Uint64(m[16:]))}
	if e.skipper != nil {
		p.decoder.skipped = e.skipper.Skipped
	}
	p.region, err = unix.Mmap(fds[0], 0, region, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("engine: mapping the buffers: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.threads || !e.pids[p.pid] {
		e.processes++
	}
	e.pids[p.pid] = true
	if e.processes == 1 && e.program == 0 && !e.threads { // under QEMU they are those of QEMU
		e.program = p.pid
		e.mappings.refresh(p.pid)
	}
	if p.to, err = e.src.open(p.pid); err != nil {
		unix.Munmap(p.region)
		return nil, err
	}
	if e.ordered {
		e.connections = append(e.connections, p)
	}
	return p, nil
}

// words is a view of a buffer's first n words.
func (e *engine) words(p *process, b int, n uint64) []uint64 {
	at := controlSize + b*(e.bytes+tailBytes)
	return unsafe.Slice((*uint64)(unsafe.Pointer(&p.region[at])), n)
}

// decode gives the words of a buffer to the sink. free is called when they are
// no longer read.
func (e *engine) decode(p *process, w []uint64, last bool, free func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ordered && e.err == nil {
		return e.keep(p, w)
	}
	p.read.Add(1)
	defer e.src.after(func() {
		free()
		p.read.Done()
	})
	if e.err != nil {
		return nil
	}
	e.raw += uint64(len(w)) * 8
	if p.pid == e.program {
		e.mappings.refresh(p.pid)
	}
	left, err := p.decoder.buffer(w, last, p.to)
	if left != nil {
		e.cutShort(p, left)
	}
	if err != nil {
		return fmt.Errorf("engine: process %d: %w", p.pid, err)
	}
	return nil
}

// rest reads the buffers that a process that has gone did not announce.
func (e *engine) rest(p *process) error {
	// struct control of valgrind/stream.c
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(p.region[8*i:]) }
	cursor, base, inUse, retired, pending, pendingWords := word(0), word(2), word(3), word(4), int64(word(5)), word(6)
	at := base + controlSize + inUse*uint64(e.bytes+tailBytes)
	n := (cursor - at) / 8
	if inUse >= uint64(e.buffers) || cursor < at || n > uint64(e.bytes+tailBytes)/8 || pending >= int64(e.buffers) || pendingWords > uint64(e.bytes+tailBytes)/8 {
		return fmt.Errorf("engine: process %d: the control page it left is damaged", p.pid)
	}
	if pending >= 0 {
		p.full++
		if err := e.decode(p, e.words(p, int(pending), pendingWords), n == 0, func() {}); err != nil {
			return err
		}
	}
	if retired != p.full {
		e.lost(p, fmt.Sprintf("%d buffers of up to %d words lost", retired-p.full, e.bytes/8))
	}
	if err := e.decode(p, e.words(p, int(inUse), n), true, func() {}); err != nil {
		return err
	}
	if !e.ordered {
		e.mu.Lock()
		e.ended(p)
		e.mu.Unlock()
	}
	return nil
}

// cutShort says that an entry was left out.
func (e *engine) cutShort(p *process, left *segment) {
	e.partial = append(e.partial, fmt.Sprintf("process %d: ended inside a segment of up to %d accesses, which is left out",
		p.pid, left.most))
}

// ended notes how a process's stream ended.
func (e *engine) ended(p *process) {
	switch {
	case p.decoder.exec:
		e.gone = true
		e.came[p.pid]--
	case !p.decoder.ended:
		e.partial = append(e.partial, fmt.Sprintf("process %d: was killed", p.pid))
	}
}

func (e *engine) lost(p *process, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.partial = append(e.partial, fmt.Sprintf("process %d: %s", p.pid, why))
}
