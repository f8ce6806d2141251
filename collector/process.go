package collector

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/objfile"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// How often the mappings of a process are read again when an address was not
// found in them: at once for the first, as a program that has just begun has no libraries yet
// and may live for milliseconds; soon, for libraries being loaded; and ever more seldom where
// that does not help, as with code outside of any mapped file.
const (
	firstRefresh = 50 * time.Millisecond
	lastRefresh  = 30 * time.Second
)

// process is what is known of one address space: its executable mappings,
// each with the file behind it held open, so that symbols can be read when
// the target is gone or lives in another mount namespace.
type process struct {
	pid       int
	via       int       // its first thread, or if that has exited another one: whose /proc has memory and files
	files     heldFiles // of all processes
	command   string
	mappings  []*mapping // by start address
	regions   []region   // of all memory, as last read
	unknown   bool       // an address was not found since the last refresh
	read      time.Time
	readings  int // of the mappings
	refreshIn time.Duration
	pause     time.Duration // besides, for what the last reading took
	probed    []*mapping    // as of the last look for allocators
	group     *group        // nil unless its threads share slots
	came      int           // threads so far
	spaces    spaces        // of its memory, for what is the same in other processes; the merger's
	cpu       []cpuPoint
	began     uint64 // CPU time when it was first seen, ns
	ran       uint64 // since then, when last read
	gone      uint64 // of it, that of threads which are no longer sampled, ns
	copies    copies
	jit       *os.File // symbols of generated code, nil if there are none
	jitError  error    // why not, of one that is there
}

type mapping struct {
	model.Mapping
	file  *heldFile // nil if there is none
	image []byte    // of the vdso
	code  *code     // of either

	loads []elf.ProgHeader // of the file, for data; nil if not yet read
}

// identify gives the mapping the build ID of what is mapped, if that has one. A server may take its
// time to give it: it is for the end of the session.
func (m *mapping) identify() {
	if m.BuildID != "" || m.code.binary == nil {
		return
	}
	if m.code.buildID == "" {
		m.code.buildID = noBuildID
		if f, err := objfile.Open(m.code.binary); err == nil {
			if id, err := objfile.BuildID(f); err == nil {
				m.code.buildID = id
			}
		}
	}
	if m.code.buildID != noBuildID {
		m.BuildID = m.code.buildID
	}
}

const noBuildID = "-"

func newProcess(pid int, files heldFiles) *process {
	now := sampler.Monotonic()
	p := &process{pid: pid, via: pid, files: files, copies: copies{seen: now, read: now}}
	p.began, _ = cpuTime(pid)
	return p
}

// look reads what there is to know of the process. Of one that the target has
// started that is put off until a thread of it is held: most may end before, and a
// look takes longer than many live.
func (p *process) look() {
	if p.looked() {
		return
	}
	p.via = ptrace.Living(p.pid)
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.via)); err == nil {
		p.command = strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
	}
	p.readMappings()
}

// followVia turns to a living thread where the one by which memory and files were reached has exited: a process
// goes on without its first thread, but /proc/PID has neither then.
func (s *Session) followVia() {
	gone := s.locate.Gone()
	if gone == 0 {
		return
	}
	for _, p := range s.processes {
		if p.via != gone {
			continue
		}
		if via := ptrace.Living(p.pid); via != gone {
			s.locate.Forget(gone)
			p.via = via
			s.locate.Prepare(via)
		}
	}
}

func (p *process) looked() bool { return !p.read.IsZero() }

// readTime reads how long all threads of the process have run.
func (p *process) readTime() {
	if now, ok := cpuTime(p.pid); ok && now >= p.began {
		p.ran = now - p.began
	}
}

// total is how long the process has run. Of one that has exited its threads' sources tell what was not read in time.
func (p *process) total() uint64 { return max(p.ran, p.gone) }

// ranTime is the CPU time of the target's processes in ns, what they do in the
// kernel included.
func (s *Session) ranTime() uint64 {
	sum := s.unseenRan
	for _, p := range s.allProcesses() {
		sum += p.total()
	}
	return sum
}

// childrenTime is the CPU time in ns of the child processes of a program that was started and has exited, as
// far as it has waited for them.
func (s *Session) childrenTime() uint64 {
	var ru unix.Rusage
	if s.cfg.Follow || s.child == 0 || !s.exit.Exited || unix.Getrusage(unix.RUSAGE_CHILDREN, &ru) != nil {
		return 0
	}
	// Its own is that of its last moment, and of the time before it was the program, besides.
	all, own := uint64(ru.Utime.Nano()+ru.Stime.Nano()), s.ranTime()
	if all < 2*own+uint64(childrenMatter) {
		return 0
	}
	return all - own
}

// childrenMatter that ran for so long, and longer than the program.
const childrenMatter = 300 * time.Millisecond

// note makes sure that the addresses will be found in the mappings.
func (p *process) note(addresses ...uint64) {
	p.look()
	for _, a := range addresses {
		if p.find(a) == nil {
			p.unknown = true
		}
	}
}

// refresh reads the mappings again if an address was missing in them.
func (p *process) refresh() {
	if !p.unknown || time.Since(p.read) < max(p.refreshIn, p.pause) {
		return
	}
	before := p.regions
	p.readMappings()
	if slices.Equal(p.regions, before) {
		p.refreshIn = min(max(2*p.refreshIn, firstRefresh), lastRefresh)
	}
	// A process may have very many mappings. A reading that others came into is soon forgotten.
	p.pause = min(100*time.Since(p.read), lastRefresh)
	if p.jit == nil {
		p.openJIT()
	}
}

// openJIT opens /tmp/perf-PID.map as the target sees it, PID too. The file is
// held open: it grows, and may outlive the process or not.
func (p *process) openJIT() {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return
	}
	inner := strconv.Itoa(p.pid)
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if f := strings.Fields(ids); len(f) > 0 {
				inner = f[len(f)-1]
			}
		}
	}
	root, err := safeopen.Of(p.via)
	if err != nil {
		return // exited
	}
	defer root.Close()
	if p.jit, err = root.Open("/tmp/perf-"+inner+".map", root.Owners()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.jitError = err
	}
}

func (p *process) find(pc uint64) *mapping { return findMapping(p.mappings, pc) }

func findMapping(mappings []*mapping, pc uint64) *mapping {
	i := sort.Search(len(mappings), func(i int) bool { return mappings[i].Limit > pc })
	if i < len(mappings) && mappings[i].Start <= pc {
		return mappings[i]
	}
	return nil
}

// readMappings keeps the mappings already known: code that was unmapped since
// is still named in the stacks of before.
func (p *process) readMappings() {
	p.read, p.unknown = time.Now(), false
	p.readings++
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.via))
	if err != nil || len(b) == 0 {
		return // exited
	}
	p.regions = parseRegions(bytes.NewReader(b))
	for _, m := range executable(p.regions) {
		if old := p.find(m.Start); old != nil && old.Start == m.Start && old.Limit >= m.Limit && old.File == m.File && old.Offset == m.Offset {
			continue
		}
		p.insert(p.open(m))
	}
}

// insert puts a mapping in place of those it overlaps, in a list of its own:
// the old one may be in use to unwind stacks. Their files stay open
// in the locations that name them only until the process is closed.
func (p *process) insert(m *mapping) {
	kept := p.mappings[:0:0]
	for _, old := range p.mappings {
		if old.Limit <= m.Start || old.Start >= m.Limit {
			kept = append(kept, old)
		} else {
			p.release(old)
		}
	}
	i := sort.Search(len(kept), func(i int) bool { return kept[i].Start > m.Start })
	kept = append(kept, nil)
	copy(kept[i+1:], kept[i:])
	kept[i] = m
	p.mappings = kept
}

// open holds on to what is mapped. A mapping whose file can't be opened
// keeps its addresses, without names.
func (p *process) open(mm model.Mapping) *mapping {
	m := &mapping{Mapping: mm, code: new(code)}
	switch {
	case m.File == "[vdso]":
		if mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.via)); err == nil {
			image := make([]byte, m.Limit-m.Start)
			if _, err := mem.ReadAt(image, int64(m.Start)); err == nil {
				m.image = image
				m.code = &code{binary: bytes.NewReader(image)}
			}
			mem.Close()
		}
	case strings.HasPrefix(m.File, "/"):
		// map_files leads to the very file that is mapped, deleted or not.
		name := fmt.Sprintf("/proc/%d/map_files/%x-%x", p.via, m.Start, m.Limit)
		f, err := p.files.hold(name)
		if err != nil {
			f, err = p.files.holdNamed(p.via, m.File)
		}
		if err == nil {
			m.file, m.code = f, &f.code
		}
	}
	return m
}

func (p *process) release(m *mapping) {
	if m.file != nil {
		p.files.release(m.file)
		m.file = nil
	}
}

func (p *process) close() {
	for _, m := range p.mappings {
		p.release(m)
	}
	if p.jit != nil {
		p.jit.Close()
	}
}

// executable are the mappings of the regions that hold code.
func executable(regions []region) []model.Mapping {
	var out []model.Mapping
	for _, r := range regions {
		if r.executable {
			out = append(out, model.Mapping{Start: r.start, Limit: r.limit, Offset: r.offset, File: r.file})
		}
	}
	return out
}

// Open returns the file behind a mapping of the profile, as it was mapped.
// It is valid until the session is closed.
func (s *Session) Open(m *model.Mapping) (*Binary, error) {
	for _, p := range s.allProcesses() {
		for _, own := range p.mappings {
			if &own.Mapping != m {
				continue
			}
			switch {
			case own.file != nil:
				return &Binary{own.file}, nil
			case own.image != nil:
				return &Binary{bytes.NewReader(own.image)}, nil
			}
			return nil, fmt.Errorf("open mapping %s: %w", m.File, fs.ErrNotExist)
		}
	}
	return nil, fmt.Errorf("open mapping %s: not one of this session", m.File)
}

// Binary is the image of a mapping. Closing it is the session's business.
type Binary struct{ io.ReaderAt }

func (*Binary) Close() error { return nil }

// PerfMap returns the table of symbols that a JIT compiler of the target has
// written, fs.ErrNotExist if there is none.
func (s *Session) PerfMap() (io.ReadCloser, error) {
	err := fs.ErrNotExist
	for _, p := range s.allProcesses() {
		if p.jit == nil {
			p.openJIT()
		}
		if p.jit != nil {
			return io.NopCloser(io.NewSectionReader(p.jit, 0, math.MaxInt64)), nil
		}
		if p.jitError != nil {
			err = p.jitError
		}
	}
	return nil, err
}
