package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/fleet"
)

type losses map[string]int

func testSpool(t *testing.T, c SpoolConfig) (*Spool, losses) {
	t.Helper()
	lost := losses{}
	s, err := openSpool(c, func(reason string, n int) { lost[reason] += n })
	if err != nil {
		t.Fatal(err)
	}
	return s, lost
}

func TestSpool(t *testing.T) {
	c := SpoolConfig{Dir: t.TempDir(), Size: 100, Age: time.Hour}
	s, lost := testSpool(t, c)
	now := time.Now()
	for i := range 7 { // the fifth and sixth are the oldest
		at := now.Add(time.Duration((i+3)%7) * time.Minute)
		if err := s.Put(at, []byte(fmt.Sprintf("%020d", (i+3)%7))); err != nil {
			t.Fatal(err)
		}
	}
	if n, bytes := s.Held(); n != 5 || bytes != 100 || lost[dropFull] != 2 {
		t.Errorf("%d windows of %d bytes, dropped %v", n, bytes, lost)
	}
	if err := s.Put(now, make([]byte, 101)); err == nil {
		t.Error("more than there is room for is taken")
	}
	done := s.Mark(Key{1, 2})
	s.Mark(Key{3, 4})()

	// Another agent takes over, after the first was killed while a session went on and while it wrote.
	if err := os.WriteFile(filepath.Join(c.Dir, "5-1-1.push.tmp"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "garbage.push"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, lost = testSpool(t, c)
	if n, _ := s.Held(); n != 5 || lost[dropKilled] != 1 {
		t.Errorf("%d windows, dropped %v", n, lost)
	}
	done()
	last := ""
	for range 5 {
		name, b := s.Oldest()
		if string(b) <= last {
			t.Errorf("%s after %s", b, last)
		}
		last = string(b)
		s.Done(name)
	}
	if name, _ := s.Oldest(); name != "" {
		t.Errorf("%s is left", name)
	}
	if err := s.Put(now, []byte("old")); err != nil {
		t.Fatal(err)
	}
	s.clock = func() time.Duration { return 61 * time.Minute }
	if name, _ := s.Oldest(); name != "" || lost[dropOld] != 1 {
		t.Errorf("%q is left after an hour, dropped %v", name, lost)
	}
	if err := s.Put(now.Add(time.Hour), []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(c.Dir, s.files[0].name), 3); err != nil {
		t.Fatal(err)
	}
	if name, _ := s.Oldest(); name != "" || lost[dropDamaged] != 1 {
		t.Errorf("a damaged window: %q, dropped %v", name, lost)
	}
}

// Needs: root. A disk that is full costs windows, which are counted, and nothing else.
func TestSpoolOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	defer unix.Unmount(dir, 0)
	s, _ := testSpool(t, SpoolConfig{Dir: dir, Size: 1 << 20, Age: time.Hour})
	failed := 0
	for i := range 20 {
		if err := s.Put(time.Now().Add(time.Duration(i)), make([]byte, 8<<10)); errors.Is(err, unix.ENOSPC) {
			failed++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := s.Held(); failed == 0 || n+failed != 20 {
		t.Errorf("%d held, %d failed of 20", n, failed)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"+tempSuffix))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	name, _ := s.Oldest()
	s.Done(name)
	if err := s.Put(time.Now(), make([]byte, 4<<10)); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// answers is a server that gives these, the last for ever.
type answers struct {
	list []error
	sent []string
}

func (a *answers) PushRequest(_ context.Context, request []byte) error {
	err := a.list[0]
	if len(a.list) > 1 {
		a.list = a.list[1:]
	}
	if err == nil {
		a.sent = append(a.sent, string(request))
	}
	return err
}

func status(code int) error { return &fleet.StatusError{Status: code, Message: "said"} }

func TestPusher(t *testing.T) {
	gone := errors.New("connection refused")
	for name, c := range map[string]struct {
		answers []error
		sent    string
		lost    losses
		pauses  int
	}{
		"works":              {[]error{nil}, "a b c", losses{}, 0},
		"gone once":          {[]error{gone, gone, nil}, "a b c", losses{}, 2},
		"5xx":                {[]error{status(503), nil}, "a b c", losses{}, 1},
		"refused":            {[]error{status(400), nil}, "b c", losses{dropRefused: 1}, 0},
		"a proxy's":          {[]error{&fleet.StatusError{Status: 400, Foreign: true}, nil}, "a b c", losses{}, 1},
		"no token":           {[]error{status(401), status(403), nil}, "a b c", losses{}, 2},
		"throttled":          {[]error{status(429), status(429), status(429), status(429), status(429), nil}, "b c", losses{dropThrottle: 1}, 5},
		"throttled a little": {[]error{status(429), status(429), nil}, "a b c", losses{}, 2},
		"too large":          {[]error{status(http.StatusRequestEntityTooLarge), nil}, "b c", losses{dropRefused: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := testSpool(t, SpoolConfig{Dir: t.TempDir(), Size: 1 << 20, Age: time.Hour})
			for i, r := range []string{"a", "b", "c"} {
				if err := s.Put(time.Now().Add(time.Duration(i)*time.Millisecond), []byte(r)); err != nil {
					t.Fatal(err)
				}
			}
			m := newMetrics("test")
			server := &answers{list: c.answers}
			p := newPusher(s, m, zap.NewNop(), server)
			ctx, cancel := context.WithCancel(t.Context())
			pauses, longest := 0, time.Duration(0)
			p.wait = func(_ context.Context, d time.Duration, wake <-chan struct{}) {
				if wake != nil { // nothing is left
					cancel()
					return
				}
				pauses++
				longest = max(longest, d)
			}
			p.run(ctx)
			if got := strings.Join(server.sent, " "); got != c.sent || pauses != c.pauses {
				t.Errorf("sent %q with %d pauses, want %q with %d", got, pauses, c.sent, c.pauses)
			}
			if longest > longestPause {
				t.Errorf("a pause of %v", longest)
			}
			for _, reason := range []string{dropRefused, dropThrottle} {
				if got := value(t, m, "rdx_agent_windows_dropped_total", reason); int(got) != c.lost[reason] {
					t.Errorf("%s: %v, want %d", reason, got, c.lost[reason])
				}
			}
		})
	}
}

// An hour without a server: pauses grow to minutes, and what the spool can't hold is counted.
func TestServerGoneForAnHour(t *testing.T) {
	s, lost := testSpool(t, SpoolConfig{Dir: t.TempDir(), Size: 1000, Age: time.Hour})
	now := time.Now()
	start := now
	s.clock = func() time.Duration { return now.Sub(start) }
	p := newPusher(s, newMetrics("test"), zap.NewNop(), &answers{list: []error{errors.New("no route to host")}})
	ctx, cancel := context.WithCancel(t.Context())
	tries, put := 0, 0
	p.wait = func(_ context.Context, d time.Duration, _ <-chan struct{}) {
		tries++
		for end := now.Add(d); now.Before(end); now = now.Add(time.Minute) {
			if s.Put(now, make([]byte, 50)) == nil {
				put++
			}
		}
		if put >= 60 {
			cancel()
		}
	}
	if err := s.Put(now, make([]byte, 50)); err != nil {
		t.Fatal(err)
	}
	p.run(ctx)
	n, _ := s.Held()
	if tries > 40 || n != 20 || lost[dropFull]+lost[dropOld] != put+1-20 {
		t.Errorf("%d tries, %d held of %d, dropped %v", tries, n, put, lost)
	}
}

// What waits lies on disk, and not in memory.
func TestSpoolTakesNoMemory(t *testing.T) {
	s, _ := testSpool(t, SpoolConfig{Dir: t.TempDir(), Size: 100 << 20, Age: time.Hour})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 60 {
		if err := s.Put(time.Now().Add(time.Duration(i)), make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n, bytes := s.Held(); n != 60 || bytes != 60<<20 {
		t.Errorf("%d windows of %d bytes are held", n, bytes)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("60 MiB on disk take %d bytes of memory", grown)
	}
}

// value is a metric's with a label of this value.
func value(t *testing.T, m *metrics, name, label string) float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, x := range f.GetMetric() {
			if label == "" || len(x.GetLabel()) > 0 && x.GetLabel()[0].GetValue() == label {
				return x.GetCounter().GetValue() + x.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// A clock that is set, by a day forth or back, makes no window old, and the order in which they are sent stays that of their times. One
// that waits on disk is as old as the clock says when the agent starts, but never younger than new.
func TestSpoolClockIsSet(t *testing.T) {
	c := SpoolConfig{Dir: t.TempDir(), Size: 1000, Age: time.Hour}
	s, lost := testSpool(t, c)
	var passed time.Duration
	s.clock = func() time.Duration { return passed }
	now := time.Now()
	for i, set := range []time.Duration{24 * time.Hour, 0, -24 * time.Hour} {
		if err := s.Put(now.Add(set), []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	passed = 59 * time.Minute
	if _, b := s.Oldest(); len(b) != 1 || b[0] != 2 || len(lost) > 0 {
		t.Errorf("%v is next, dropped %v", b, lost)
	}
	again, lostAgain := testSpool(t, c)
	if n, _ := again.Held(); n != 2 || lostAgain[dropOld] != 1 {
		t.Errorf("%d are held by the next agent, dropped %v", n, lostAgain)
	}
	again.clock = func() time.Duration { return 61 * time.Minute }
	if again.Expire(); lostAgain[dropOld] != 3 {
		t.Errorf("one of a time to come never gets old: %v", lostAgain)
	}
	passed = 61 * time.Minute
	if s.Expire(); lost[dropOld] != 3 {
		t.Errorf("after an hour %v are dropped", lost)
	}
}
