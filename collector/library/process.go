package library

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// Process is what there is to know of a process besides its memory. It is asked for when the process
// is first seen, and again when code appears.
type Process struct {
	l        *Library
	pid, via int
	space    string // mount namespace and root

	mu      sync.Mutex
	root    *safeopen.Root // nil before it is known, and after the end
	tmp     *safeopen.Root // its /tmp, which is found there even if its namespace has ended
	inner   string         // its number, as it knows it
	command string
	maps    []*safeopen.File // perf maps, the latest first
	dumps   []*File          // jitdumps
	named   []*safeopen.File // opened by name
	noMap   error            // why a map that is there is not read
}

// Process asks for a process, reached by a living thread of it.
func (l *Library) Process(pid, via int) *Process {
	p := &Process{l: l, pid: pid, via: via, inner: strconv.Itoa(pid), space: spaceOf(via)}
	l.Do(p.begin)
	return p
}

// spaceOf tells apart where names mean different files. Reading these links asks no file system.
func spaceOf(pid int) string {
	namespace, err1 := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	root, err2 := os.Readlink(fmt.Sprintf("/proc/%d/root", pid))
	if err1 != nil || err2 != nil {
		return ""
	}
	return namespace + " " + root
}

func (p *Process) begin() {
	var command, status []byte
	var root, tmp, spare *safeopen.Root
	wants := p.l.wantsRoot(p.space)
	// The command line is memory of the process, which may be anywhere.
	if err := p.l.patience.Do(func() {
		command, _ = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.via))
		status, _ = os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		var err error
		if root, err = safeopen.Of(p.via); err != nil {
			return
		}
		tmp, _ = root.Directory("/tmp")
		if wants {
			spare, _ = safeopen.Of(p.via)
		}
	}); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.noMap = err
		return
	}
	p.l.keepRoot(p.space, spare)
	p.mu.Lock()
	p.command = strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
	p.root, p.tmp = root, tmp
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if f := strings.Fields(ids); len(f) > 0 {
				p.inner = f[len(f)-1]
			}
		}
	}
	p.mu.Unlock()
	p.look()
}

func (l *Library) wantsRoot(space string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return space != "" && l.roots[space] == nil && len(l.roots) < mostRoots
}

func (l *Library) keepRoot(space string, root *safeopen.Root) {
	if root == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.roots[space] != nil {
		root.Close()
		return
	}
	l.roots[space] = root
}

// anyRoot is the process's root, or that of another in the same place.
func (p *Process) anyRoot() *safeopen.Root {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	root := p.root
	p.mu.Unlock()
	if root != nil {
		return root
	}
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	return p.l.roots[p.space]
}

// Look has it looked for names of generated code.
func (p *Process) Look() { p.l.Do(p.look) }

// End is for a process that has ended: what it has left behind is looked for once more.
func (p *Process) End() {
	p.l.Do(func() {
		p.look()
		p.mu.Lock()
		root, tmp := p.root, p.tmp
		p.root, p.tmp = nil, nil
		p.mu.Unlock()
		for _, r := range []*safeopen.Root{root, tmp} {
			if r != nil {
				go r.Close()
			}
		}
	})
}

// look opens /tmp/perf-PID.map as the process sees it, PID too. The file is held open: it
// grows, and may outlive the process or not. One that has replaced another comes before it.
func (p *Process) look() {
	p.mu.Lock()
	root, tmp, inner := p.root, p.tmp, p.inner
	p.mu.Unlock()
	if root == nil {
		return
	}
	f, err := p.l.patience.Open(0, func() (*os.File, error) {
		file, err := root.Open("/tmp/perf-"+inner+".map", root.Owners())
		if err != nil && tmp != nil && os.IsNotExist(err) {
			file, err = tmp.Open("perf-"+inner+".map", root.Owners())
		}
		return file, err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if !os.IsNotExist(err) {
			p.noMap = err
		}
		return
	}
	for _, old := range p.maps {
		if old.Device == f.Device && old.Inode == f.Inode {
			f.Close()
			return
		}
	}
	const most = 4
	if len(p.maps) == most {
		p.maps[most-1].Close()
		p.maps = p.maps[:most-1]
	}
	p.maps = append([]*safeopen.File{f}, p.maps...)
}

var dumpRx = regexp.MustCompile(`/jit-\d+\.dump( \(deleted\))?$`)

// IsDump says of the name of a mapped file whether it is a jitdump, which a compiler maps as code for no
// other purpose than to be found.
func IsDump(name string) bool { return dumpRx.MatchString(name) }

// AddDump is for a jitdump that the process has mapped.
func (p *Process) AddDump(f *File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.dumps {
		if d == f {
			return
		}
	}
	p.dumps = append(p.dumps, f)
}

// Command line of the process, "" if it is not known.
func (p *Process) Command() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.command
}

// Generated are the tables of names of generated code, the best first, and why one that there is can't be
// read.
func (p *Process) Generated() (maps []*safeopen.File, dumps []*File, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(maps, p.maps...), append(dumps, p.dumps...), p.noMap
}

// Close lets its files go.
func (p *Process) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range append(p.maps, p.named...) {
		f.Close()
	}
	p.maps, p.named = nil, nil
	for _, r := range []*safeopen.Root{p.root, p.tmp} {
		if r != nil {
			go r.Close()
		}
	}
	p.root, p.tmp = nil, nil
}

// OpenNamed opens a file by the name that the process has it by, as long as somebody there is left
// to ask. It is the process's or root's.
func (p *Process) OpenNamed(name string) (*safeopen.File, error) {
	root := p.anyRoot()
	if root == nil {
		return nil, fs.ErrNotExist
	}
	f, err := p.l.patience.Open(0, func() (*os.File, error) { return root.Open(name, root.Owners()) })
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.named = append(p.named, f)
	}
	return f, err
}
