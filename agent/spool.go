package agent

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Spool keeps requests on disk until the server has taken them: a file each, written beside
// and renamed. It holds so many bytes; the oldest give way and are counted.
type Spool struct {
	dir   string
	size  int64
	age   time.Duration
	clock func() time.Duration // that nobody sets

	mu      sync.Mutex
	files   []spooled // oldest first
	bytes   int64
	serial  int
	dropped func(reason string, n int)
}

type spooled struct {
	name string
	at   time.Time // of the window
	size int64
	till time.Duration // by the spool's clock: a clock that is set makes no window old
}

// Why a window was dropped.
const (
	dropFull     = "spool full"
	dropOld      = "older than the server takes"
	dropDisk     = "disk full or not writable"
	dropRefused  = "refused by the server"
	dropThrottle = "throttled by the server"
	dropKilled   = "agent killed in a session"
	dropDamaged  = "damaged on disk"
)

const (
	spoolSuffix = ".push"
	openSuffix  = ".open"
	tempSuffix  = ".tmp"
)

// openSpool takes over what an earlier agent has left. dropped is told of each loss.
func openSpool(c SpoolConfig, dropped func(reason string, n int)) (*Spool, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	began := time.Now()
	s := &Spool{dir: c.Dir, size: int64(c.Size), age: c.Age, clock: func() time.Duration { return time.Since(began) }, dropped: dropped}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		path := filepath.Join(c.Dir, name)
		switch {
		case strings.HasSuffix(name, tempSuffix):
			_ = os.Remove(path) // its window is counted by the mark of its session
		case strings.HasSuffix(name, openSuffix):
			if os.Remove(path) == nil {
				dropped(dropKilled, 1)
			}
		case strings.HasSuffix(name, spoolSuffix):
			nanos, _, _ := strings.Cut(name, "-")
			n, err := strconv.ParseInt(nanos, 10, 64)
			fi, err2 := e.Info()
			if err != nil || err2 != nil || !fi.Mode().IsRegular() {
				continue // none of ours
			}
			at := time.Unix(0, n)
			s.files = append(s.files, spooled{name, at, fi.Size(), s.age - max(began.Sub(at), 0)})
			s.bytes += fi.Size()
		}
	}
	slices.SortFunc(s.files, func(a, b spooled) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.name, b.name)) })
	s.Expire()
	return s, nil
}

// Mark notes on disk that a session goes on, so that its loss is counted if the agent is
// killed. The function that it returns ends that.
func (s *Spool) Mark(k Key) (done func()) {
	path := filepath.Join(s.dir, fmt.Sprintf("%d-%d%s", k.PID, k.Start, openSuffix))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return func() {} // the disk is full: what is lost then is counted as it is lost
	}
	f.Close()
	return func() { _ = os.Remove(path) }
}

// Put keeps a request whose window is of that time. Where it can't be written the error says why, and nothing
// has been kept.
func (s *Spool) Put(at time.Time, request []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(len(request))
	if n > s.size {
		return fmt.Errorf("spool: a window of %d bytes, the spool has %d", n, s.size)
	}
	for s.bytes+n > s.size && len(s.files) > 0 {
		s.remove(0)
		s.dropped(dropFull, 1)
	}
	s.serial++
	name := fmt.Sprintf("%d-%d-%d%s", at.UnixNano(), os.Getpid(), s.serial, spoolSuffix)
	if err := writeRenamed(filepath.Join(s.dir, name), request); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	f := spooled{name, at, n, s.clock() + s.age}
	i, _ := slices.BinarySearchFunc(s.files, f, func(a, b spooled) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.name, b.name)) })
	s.files = slices.Insert(s.files, i, f)
	s.bytes += n
	return nil
}

func writeRenamed(path string, data []byte) (err error) {
	temp := path + tempSuffix
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// Oldest is the next request to be sent, name "" if there is none.
func (s *Spool) Oldest() (name string, request []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	for len(s.files) > 0 {
		f := s.files[0]
		b, err := readAtMost(filepath.Join(s.dir, f.name), s.size+1)
		if err == nil && int64(len(b)) == f.size {
			return f.name, b
		}
		s.remove(0)
		s.dropped(dropDamaged, 1)
	}
	return "", nil
}

// Done takes a request out.
func (s *Spool) Done(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.files, func(f spooled) bool { return f.name == name }); i >= 0 {
		s.remove(i)
	}
}

// Expire drops what the server would not take any more.
func (s *Spool) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
}

func (s *Spool) expire() {
	now := s.clock()
	for i := len(s.files) - 1; i >= 0; i-- {
		if now > s.files[i].till {
			s.remove(i)
			s.dropped(dropOld, 1)
		}
	}
}

func (s *Spool) remove(i int) {
	_ = os.Remove(filepath.Join(s.dir, s.files[i].name))
	s.bytes -= s.files[i].size
	s.files = slices.Delete(s.files, i, i+1)
}

// Held is how many requests, and bytes, wait.
func (s *Spool) Held() (n int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files), s.bytes
}
