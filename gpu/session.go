package gpu

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/exact"
)

// Find is where rdx-gpu is: what $RDX_GPU names, or beside the program that runs.
func Find() (string, error) {
	const missing = "rdx-gpu is not there (consider: make rdx-gpu, and put it beside rdx, or name it in $RDX_GPU)"
	if path := os.Getenv("RDX_GPU"); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("$RDX_GPU: %w: %s", err, missing)
		}
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find rdx-gpu: %w", err)
	}
	if whole, err := filepath.EvalSymlinks(self); err == nil {
		self = whole
	}
	path := filepath.Join(filepath.Dir(self), "rdx-gpu")
	if _, err := os.Stat(path); err != nil {
		return "", errors.New(missing)
	}
	return path, nil
}

// Arguments of rdx-gpu.
const (
	ListArg  = "list"
	ServeArg = "serve"
)

// List is the devices there are.
func List() ([]Info, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	said := &tail{}
	cmd := exec.Command(path, ListArg)
	cmd.Stdout, cmd.Stderr = &out, said
	if err := cmd.Run(); err != nil {
		return nil, said.ended(err)
	}
	var all []Info
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		return nil, fmt.Errorf("rdx-gpu list: %w (consider: rdx and rdx-gpu of one build)", err)
	}
	return all, nil
}

// Session is an rdx-gpu at work. Its methods are for one goroutine.
type Session struct {
	Ready
	shared *Shared
	to     *gob.Encoder
	toPipe io.Closer
	wait   func() error // for its end, when it will not be asked any more

	free    chan int
	counted chan struct{}
	done    *exact.Counted
	found   func(dists, times []uint64)
	ended   chan struct{} // closed when nothing more is answered
	failed  error         // set before ended is closed

	sending sync.Mutex
}

// StartSession starts rdx-gpu. room is for how many touches it can answer at a time. found is called with what was found of
// each touch, in their order, on another goroutine; it must not keep it.
func StartSession(start Start, room int, found func(dists, times []uint64)) (*Session, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("rdx-gpu", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("start rdx-gpu: memory to share: %w", err)
	}
	file := os.NewFile(uintptr(fd), "rdx-gpu")
	defer file.Close()
	if err := file.Truncate(int64(sharedBytes(room))); err != nil {
		return nil, fmt.Errorf("start rdx-gpu: memory to share: %w", err)
	}
	shared, err := MapShared(fd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, ServeArg)
	cmd.ExtraFiles = []*os.File{file}
	said := &tail{}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start rdx-gpu: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start rdx-gpu: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	wait := func() error {
		if err := cmd.Wait(); err != nil {
			return said.ended(err)
		}
		return nil
	}
	return newSession(start, shared, in, out, wait, found)
}

func newSession(start Start, shared *Shared, in io.WriteCloser, out io.Reader, wait func() error, found func(dists, times []uint64)) (*Session, error) {
	s := &Session{shared: shared, to: gob.NewEncoder(in), toPipe: in, wait: wait, found: found,
		free: make(chan int, Slots), counted: make(chan struct{}, 1), ended: make(chan struct{})}
	for k := range Slots {
		s.free <- k
	}
	start.Protocol = Protocol
	ready := make(chan *Ready, 1)
	go s.read(gob.NewDecoder(out), ready)
	if err := s.ask(&Request{Start: &start}); err != nil {
		return nil, err
	}
	select {
	case r := <-ready:
		s.Ready = *r
		return s, nil
	case <-s.ended:
		return nil, s.failed
	}
}

// read takes the replies until there are no more.
func (s *Session) read(from *gob.Decoder, ready chan *Ready) {
	err := s.replies(from, ready)
	s.toPipe.Close()
	if ended := s.wait(); ended != nil && (err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		err = ended
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("rdx-gpu ended without an answer (consider: rdx and rdx-gpu of one build, or leaving --gpu out)")
	}
	s.failed = err
	close(s.ended)
}

func (s *Session) replies(from *gob.Decoder, ready chan *Ready) error {
	for {
		var r Reply
		if err := from.Decode(&r); err != nil {
			return err
		}
		switch {
		case r.Error != "":
			return errors.New(r.Error)
		case r.Ready != nil:
			ready <- r.Ready
		case r.Free > 0:
			s.free <- r.Free - 1
		case r.Counted:
			s.counted <- struct{}{}
		case r.Found > 0:
			dists, times, err := s.shared.Found(r.Found)
			if err != nil {
				return err
			}
			s.found(dists, times)
			if err := s.send(&Request{Taken: true}); err != nil {
				return err
			}
		case r.Done != nil:
			s.done = r.Done
			return nil
		}
	}
}

// send may be called on any goroutine. Where rdx-gpu has ended the error says why.
func (s *Session) send(r *Request) error {
	s.sending.Lock()
	err := s.to.Encode(r)
	s.sending.Unlock()
	if err != nil {
		return fmt.Errorf("rdx-gpu: %w", err)
	}
	return nil
}

// ask is send for who is not the reader of replies.
func (s *Session) ask(r *Request) error {
	if err := s.send(r); err != nil {
		<-s.ended
		if s.failed != nil {
			return s.failed
		}
		return err
	}
	return nil
}

// slot is a free slot.
func (s *Session) slot() (int, error) {
	select {
	case k := <-s.free:
		return k, nil
	case <-s.ended:
		return 0, s.failed
	}
}

// Touch analyses the next runs of touches, as in model.Touches. Errors may come late.
func (s *Session) Touch(blocks []uint64, runs []uint8) error {
	for len(blocks) > 0 {
		k, err := s.slot()
		if err != nil {
			return err
		}
		toBlocks, toRuns := s.shared.Slot(k)
		n := copy(toBlocks, blocks)
		copy(toRuns, runs[:n])
		blocks, runs = blocks[n:], runs[n:]
		if err := s.ask(&Request{Touch: &Touch{k, n}}); err != nil {
			return err
		}
	}
	return nil
}

// Count answers what is in Shared.Count.
func (s *Session) Count(n int, values uint32) error {
	if err := s.ask(&Request{Count: &Count{n, values}}); err != nil {
		return err
	}
	select {
	case <-s.counted:
		return nil
	case <-s.ended:
		return s.failed
	}
}

// Finish ends the session and returns what was counted.
func (s *Session) Finish() (*exact.Counted, error) {
	if err := s.ask(&Request{Finish: true}); err != nil {
		return nil, err
	}
	<-s.ended
	if s.failed != nil {
		return nil, s.failed
	}
	return s.done, nil
}

// Close ends the session; it is to be called in the end.
func (s *Session) Close() {
	s.toPipe.Close()
	<-s.ended
	s.shared.Close()
}

// tail keeps the beginning of what a program says on standard error.
type tail struct {
	mu   sync.Mutex
	said []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, b[:min(len(b), 4096-min(len(t.said), 4096))]...)
	return len(b), nil
}

// ended says how rdx-gpu ended: what it said itself, or that it crashed.
func (t *tail) ended(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, _, _ := strings.Cut(strings.TrimSpace(string(t.said)), "\n")
	var exit *exec.ExitError
	if said, ok := strings.CutPrefix(first, "rdx-gpu: "); ok && errors.As(err, &exit) && exit.ExitCode() == 1 {
		return errors.New(said)
	}
	if first != "" {
		first = ": " + first
	}
	return fmt.Errorf("rdx-gpu crashed, %w%s: most likely the GPU's driver did (consider: another version of it, another device of --gpu=list, or leaving --gpu out)", err, first)
}
