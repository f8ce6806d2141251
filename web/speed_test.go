package web

// Needs Chromium; TestPython gcc, make, valgrind and python3, and takes a minute.

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
)

// inTime demands times where RDX_WEB_TIMES is set: on a machine that is busy with other things they say nothing.
func (b *browser) inTime(what string, got, most float64) {
	b.t.Helper()
	if os.Getenv("RDX_WEB_TIMES") != "" && !(got <= most) {
		b.t.Errorf("%s: %.0f ms, at most %.0f may it take", what, got, most)
	}
}

// dragged moves the size for that long by the mouse, and returns how long a frame took on average, in ms, by the browser's own
// trace, and how much CPU time of the tab's process, in all threads.
func (b *browser) dragged(length time.Duration) (frame, cpu float64) {
	b.t.Helper()
	pid, _ := b.tab()
	var drawn []float64 // ms
	done := make(chan struct{})
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	chromedp.ListenTarget(ctx, func(e any) {
		switch e := e.(type) {
		case *tracing.EventDataCollected:
			for _, v := range e.Value {
				var x struct {
					Name string
					TS   float64 `json:"ts"`
				}
				if json.Unmarshal(v, &x) == nil && x.Name == "DrawFrame" {
					drawn = append(drawn, x.TS/1000)
				}
			}
		case *tracing.EventTracingComplete:
			close(done)
		}
	})
	b.run(page.BringToFront()) // others get no frames
	var r struct{ X, Y, W, H float64 }
	b.eval("(() => { const r = document.querySelector('.curve .u-over').getBoundingClientRect(); return {X: r.x, Y: r.y, W: r.width, H: r.height} })()", &r)
	at := func(kind input.MouseType, f float64) chromedp.Action {
		return input.DispatchMouseEvent(kind, r.X+f*r.W, r.Y+r.H/2).WithButton(input.Left).WithButtons(1).WithClickCount(1)
	}
	before := cpuOf(pid)
	b.run(at(input.MousePressed, 0.1), tracing.Start().WithTraceConfig(&tracing.TraceConfig{IncludedCategories: []string{"devtools.timeline.frame", "disabled-by-default-devtools.timeline.frame"}}))
	for i, end := 0, time.Now().Add(length); time.Now().Before(end); i++ {
		b.run(at(input.MouseMoved, 0.1+0.8*math.Abs(math.Sin(float64(i)/40))))
	}
	b.run(tracing.End(), at(input.MouseReleased, 0.3))
	select {
	case <-done:
	case <-time.After(patience):
		b.t.Fatal("the browser gives no trace")
	}
	if len(drawn) < 3 { // another browser's names, or a machine too busy to tell
		return math.NaN(), math.NaN()
	}
	frames := float64(len(drawn) - 1)
	return (drawn[len(drawn)-1] - drawn[0]) / frames, (cpuOf(pid) - before) / frames
}

// cpuOf is the CPU time of a process so far, in ms; proc(5) counts it in hundredths of a second.
func cpuOf(pid int64) float64 {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return math.NaN()
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return 10 * float64(user+system)
}

// tab is the process of the largest of the browser's tabs, and how much memory it has taken at most, in bytes.
func (b *browser) tab() (pid, most int64) {
	b.t.Helper()
	var all []*systeminfo.ProcessInfo
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		all, err = systeminfo.GetProcessInfo().Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		return err
	}))
	for _, p := range all {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.ID))
		if err != nil || p.Type != "renderer" {
			continue
		}
		for line := range strings.Lines(string(status)) {
			var kb int64
			if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); err == nil {
				if kb<<10 > most {
					pid, most = p.ID, kb<<10
				}
			}
		}
	}
	if most == 0 {
		b.t.Fatal("the browser tells of no tab")
	}
	return pid, most
}

// shown opens the overview, with the tools closed that keep a copy of all that is loaded, and returns how long after it was asked for it was there, in ms.
func (b *browser) shown(url string) (first float64) {
	b.t.Helper()
	b.run(network.Disable())
	b.show(url, "page=overview", "overview")
	b.await("document.querySelector('.curve canvas') && performance.getEntriesByName('rdx-shown').length")
	b.eval("performance.getEntriesByName('rdx-shown')[0].startTime", &first)
	return first
}

// TestManySamples: a profile of 10^5 samples is shown, and can be dragged.
func TestManySamples(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	b := openBrowser(t)
	raw := written(t, large(n, 6))
	own := int64(os.Getpid())
	before := cpuOf(own)
	url := serve(t, Options{}, Profile{"large", raw})
	first := b.shown(url)
	server := cpuOf(own) - before
	pid, _ := b.tab()
	tab := cpuOf(pid)
	b.run(chromedp.Navigate("about:blank"))
	again := b.shown(url) // as for who opens the URL some time after it was printed
	b.show(url, "page=code", "code")
	b.await("document.querySelector('.flame canvas')")
	frame, cpu := b.dragged(3 * time.Second)
	b.await("document.querySelectorAll('table.pairs tbody tr').length === 50") // all of them, once it lies still
	_, memory := b.tab()
	t.Logf("%d samples: first picture %.0f ms after the page was asked for, with %.0f ms of the server's CPU time and %.0f ms of the tab's, its start included; %.0f ms once the server has it ready; dragging %.1f ms a frame, %.1f ms of CPU time; %d MB", n, first, server, tab, again, frame, cpu, memory>>20)
	b.inTime("first picture", first, 1000)
	b.inTime("a frame", frame, 1000.0/30)
	b.clean()
}

// TestMillionSamples: a profile of 10^6 samples is shown, in less than a gigabyte of the browser.
func TestMillionSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	b := openBrowser(t)
	p := large(100_000, 6)
	one := p.Records
	for k := range 9 {
		for _, r := range one {
			r.Time += uint64(k)
			r.Hold += uint64((k + 1) * len(one))
			p.Records = append(p.Records, r)
		}
	}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	url := serve(t, Options{}, Profile{"million", p})
	get(t, url+"data?profile=0&stack=", nil) // however long that takes
	b.show(url, "page=pairs", "pairs")
	b.await("document.querySelectorAll('table.pairs tbody tr').length === 50")
	_, memory := b.tab()
	t.Logf("%d MB", memory>>20)
	if memory > 1<<30 {
		t.Errorf("the browser took %d MB", memory>>20)
	}
	b.clean()
}

// interpreter is python3 itself: what is found by that name may be a script that goes on as another program.
func interpreter(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// python is a profile of rdx exact of python3, which has more than a million samples, or that of RDX_WEB_PROFILE.
func python(t *testing.T) string {
	t.Helper()
	if f := os.Getenv("RDX_WEB_PROFILE"); f != "" {
		return f
	}
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	for _, f := range []string{"gcc", "make", "valgrind", "python3"} {
		if _, err := exec.LookPath(f); err != nil {
			t.Skipf("needs %s: %v", f, err)
		}
	}
	if _, err := os.Stat("/usr/include/valgrind/pub_tool_basics.h"); err != nil {
		t.Skipf("needs valgrind's headers: %v", err)
	}
	dir := t.TempDir()
	rdx, out := filepath.Join(dir, "rdx"), filepath.Join(dir, "python.pb.gz")
	for _, c := range [][]string{{"go", "build", "-o", rdx, "../cmd/rdx"}, {"make", "-s", "-C", "../trace/valgrind", "OUT=" + dir},
		{rdx, "exact", "--engine", dir, "-o", out, "--", interpreter(t), "-I", "-c", "import json; json.loads(json.dumps(list(range(1000))))"}} {
		if b, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", c, err, b)
		}
	}
	return out
}

// TestPython: an exact profile of python3 is opened, dragged, searched, filtered and saved, and its numbers are those of the
// commands.
func TestPython(t *testing.T) {
	b := openBrowser(t)
	name := python(t)
	own := int64(os.Getpid())
	start, before := time.Now(), cpuOf(own)
	raw, err := pprofout.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	read, reading := time.Since(start), cpuOf(own)-before
	if os.Getenv("RDX_WEB_PROFILE") == "" && len(raw.Records) < 1_000_000 {
		t.Fatalf("%d samples: that is not what python3 does", len(raw.Records))
	}
	before = cpuOf(own)
	url := serve(t, Options{}, Profile{"python", raw})
	first := b.shown(url)
	working := cpuOf(own) - before
	b.accessible("python overview")
	p, err := report.Ready(raw, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Caches {
		size := uint64(c.Size)
		b.show(url, fmt.Sprintf("page=pairs&size=%d", size), "pairs")
		curve, err := p.MissRatios([]uint64{size / uint64(p.Block)}, model.CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b.await(fmt.Sprintf("document.querySelector('[data-test=size]').textContent === %q", report.Bytes(float64(size))+" ("+c.Level+")"))
		if got, want := b.text("[data-test=ratio]"), report.Percent(curve.Points[0].MissRatio, 1); !strings.Contains(got, want) {
			t.Errorf("at %s the page says %q, rdx mrc %q", c.Level, got, want)
		}
		m, err := report.FindMetric(p, strings.ToLower(c.Level))
		if err != nil {
			t.Fatal(err)
		}
		// What is told apart of so many samples are the large ones.
		sum := 0.0
		for _, q := range report.Pairs(p, m.Value) {
			sum += q.Value
		}
		if got, want := b.text("table.pairs caption"), report.Amount(sum)+" in all"; !strings.Contains(got, want) {
			t.Errorf("at %s the page says %q, rdx top %q", c.Level, got, want)
		}
	}
	for _, page := range pagesOf {
		b.show(url, "page="+page, page)
		b.await("document.querySelector('main').textContent.length > 0")
		b.shoot("python-" + page)
		b.clean()
	}
	b.show(url, "page=pairs&q=no+such+function", "pairs")
	b.await("document.body.textContent.includes('Nothing is found')")
	b.show(url, "page=code", "code")
	b.await("document.querySelector('.flame canvas')")
	pid, _ := b.tab()
	opened := cpuOf(pid)
	frame, cpu := b.dragged(3 * time.Second)
	_, memory := b.tab()
	t.Logf("%d samples: read in %v, with %.0f ms of CPU time, first picture %.0f ms after the page was asked for, with %.0f ms of the server's, all pages take %.0f ms of the tab's CPU time; dragging %.1f ms a frame, %.1f ms of CPU time; %d MB in the browser",
		len(raw.Records), read.Round(time.Millisecond), reading, first, working, opened, frame, cpu, memory>>20)
	if memory > 1<<30 {
		t.Errorf("the browser took %d MB", memory>>20)
	}
	b.inTime("from the file to the first picture", first+float64(read.Milliseconds()), 5000)
	b.inTime("a frame", frame, 1000.0/30)
	b.clean()
}
