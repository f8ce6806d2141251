package web

// Needs Chromium; TestPython gcc, make, valgrind and python3, and takes a minute.

import (
	"bufio"
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

func (b *browser) processes() (all []*systeminfo.ProcessInfo) {
	b.t.Helper()
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		all, err = systeminfo.GetProcessInfo().Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		return err
	}))
	return all
}

// tab is the process of the largest of the browser's tabs, and how much memory it has taken at most, in bytes.
func (b *browser) tab() (pid, most int64) {
	b.t.Helper()
	for _, p := range b.processes() {
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

// python is a profile of rdx exact of python3, which has more than a million samples, or that of RDX_WEB_PROFILE; rdx is the command.
func python(t *testing.T, rdx string) string {
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
	out := filepath.Join(dir, "python.pb.gz")
	for _, c := range [][]string{{"make", "-s", "-C", "../trace/valgrind", "OUT=" + dir},
		{rdx, "exact", "--engine", dir, "-o", out, "--", interpreter(t), "-I", "-c", "import json; json.loads(json.dumps(list(range(1000))))"}} {
		if b, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", c, err, b)
		}
	}
	return out
}

// command is rdx, which is built.
func command(t *testing.T) string {
	t.Helper()
	rdx := filepath.Join(t.TempDir(), "rdx")
	if out, err := exec.Command("go", "build", "-o", rdx, "../cmd/rdx").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return rdx
}

// opened starts rdx web, and says how long after that the browser, which is open, has the curve with its numbers, and all the
// rest of the overview, in ms; and how much memory all of the browser has then, in bytes.
func (b *browser) opened(rdx, file string) (first, all float64, memory int64) {
	b.t.Helper()
	b.run(network.Disable())
	start := time.Now()
	cmd := exec.Command(rdx, "web", file)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.t.Fatalf("rdx web gives no URL: %v", err)
	}
	since := func() float64 { return float64(time.Since(start).Microseconds()) / 1000 }
	b.run(chromedp.Navigate(strings.TrimSpace(url)))
	b.await("document.querySelector('.curve canvas') && performance.getEntriesByName('rdx-shown').length")
	first = since()
	ratio := b.text("[data-test=ratio]")
	b.await("document.querySelector('main[data-page=overview]') && performance.getEntriesByName('rdx-samples').length")
	all = since()
	if last := b.text("[data-test=ratio]"); last != ratio || !strings.Contains(last, "%") {
		b.t.Errorf("the first picture has %q, the whole one %q", ratio, last)
	}
	b.await("globalThis.rdxView")
	memory = b.memory()
	b.run(chromedp.Navigate("about:blank")) // before the server is gone
	return first, all, memory
}

// memory is how much all of the browser's processes have taken, what they share counted once, in bytes.
func (b *browser) memory() (sum int64) {
	b.t.Helper()
	for _, p := range b.processes() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.ID))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(text)) {
			var kb int64
			if _, err := fmt.Sscanf(line, "Pss: %d kB", &kb); err == nil {
				sum += kb << 10
			}
		}
	}
	if sum == 0 {
		b.t.Fatal("the browser tells of no process")
	}
	return sum
}

// Opening a profile takes at most so many times as long as rdx mrc takes for its curve, and what a browser may need for a page.
const (
	mostOpening = 3
	pageTime    = 10_000 // ms
)

// TestPython: an exact profile of python3 is opened by rdx web in a browser, and in less than a gigabyte; it is dragged, searched,
// filtered and saved, and its numbers are those of the commands. That it is opened in time is checked by what rdx mrc takes on
// the same machine right before and after, the longer of the two: other things to do make both slower.
func TestPython(t *testing.T) {
	b := openBrowser(t)
	rdx := command(t)
	name := python(t, rdx)
	curve := func() float64 {
		start := time.Now()
		if out, err := exec.Command(rdx, "mrc", name).CombinedOutput(); err != nil {
			t.Fatalf("rdx mrc: %v\n%s", err, out)
		}
		return float64(time.Since(start).Milliseconds())
	}
	mrc := curve()
	opened, complete, browsers := b.opened(rdx, name)
	mrc = max(mrc, curve())
	t.Logf("from the start of rdx web %.0f ms to the first picture, %.0f ms to all of it, in %d MB of all the browser; rdx mrc takes %.0f ms", opened, complete, browsers>>20, mrc)
	if most := mostOpening*mrc + pageTime; opened > most {
		t.Errorf("the first picture is there after %.0f ms, rdx mrc takes %.0f: at most %.0f", opened, mrc, most)
	}
	if browsers > 1<<30 {
		t.Errorf("the browser took %d MB", browsers>>20)
	}
	b.inTime("from the file to the first picture", opened, 5000)
	raw, err := pprofout.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("RDX_WEB_PROFILE") == "" && len(raw.Records) < 1_000_000 {
		t.Fatalf("%d samples: that is not what python3 does", len(raw.Records))
	}
	url := serve(t, Options{}, Profile{"python", raw})
	b.shown(url)
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
	pages := cpuOf(pid)
	frame, cpu := b.dragged(3 * time.Second)
	_, memory := b.tab()
	t.Logf("%d samples: all pages take %.0f ms of the tab's CPU time; dragging %.1f ms a frame, %.1f ms of CPU time; %d MB in the tab", len(raw.Records), pages, frame, cpu, memory>>20)
	if memory > 1<<30 {
		t.Errorf("the browser took %d MB", memory>>20)
	}
	b.inTime("a frame", frame, 1000.0/30)
	b.clean()
}
