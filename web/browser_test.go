package web

// Needs Chromium.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
)

// patience is how long a condition may take to come true on a machine that is busy.
const patience = 60 * time.Second

// browser is a tab.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string
	asked  []string // URLs
}

// shared is one Chromium for all tests.
var shared struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	name := ""
	for _, n := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(n); err == nil {
			name = p
			break
		}
	}
	if name == "" {
		t.Skip("needs chromium (apt-get install chromium)")
	}
	shared.once.Do(func() {
		o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(name), chromedp.DisableGPU, chromedp.WindowSize(1440, 900),
			chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience))
		if os.Geteuid() == 0 {
			o = append(o, chromedp.NoSandbox)
		}
		a, stopAll := chromedp.NewExecAllocator(context.Background(), o...)
		ctx, stop := chromedp.NewContext(a, chromedp.WithBrowserOption(chromedp.WithDialTimeout(patience)))
		shared.ctx, shared.stop = ctx, func() { stop(); stopAll() }
		shared.err = chromedp.Run(ctx)
	})
	if shared.err != nil {
		t.Fatalf("chromium does not start: %v", shared.err)
	}
	ctx, stop := chromedp.NewContext(shared.ctx)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(e any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			b.errors = append(b.errors, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError {
				b.errors = append(b.errors, fmt.Sprintf("console: %s", e.Args[0].Value))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				b.errors = append(b.errors, e.Entry.Text+" "+e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			b.asked = append(b.asked, e.Request.URL)
		}
	})
	// The tab lives as long as the context of its first run.
	if err := chromedp.Run(ctx, runtime.Enable(), log.Enable(), network.Enable(), page.BringToFront()); err != nil {
		t.Fatalf("browser: %v", err)
	}
	return b
}

func (b *browser) run(a ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, a...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// eval is the value of an expression.
func (b *browser) eval(js string, out any) {
	b.t.Helper()
	b.run(chromedp.Evaluate(js, out))
}

func (b *browser) text(selector string) (s string) {
	b.t.Helper()
	b.eval(fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector), &s)
	return s
}

// await waits until an expression is true.
func (b *browser) await(js string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ok := false
		b.eval("!!("+js+")", &ok)
		if ok {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("never true: %s; the page says: %.800s", js, b.text("body"))
		}
	}
}

func (b *browser) click(selector string) {
	b.t.Helper()
	b.await(fmt.Sprintf("document.querySelector(%q)", selector))
	b.eval(fmt.Sprintf("document.querySelector(%q).click()", selector), nil)
}

// show goes to a state of the pages.
func (b *browser) show(url, hash, page string) {
	b.t.Helper()
	var at string
	b.eval("location.href", &at)
	if base, _, _ := strings.Cut(at, "#"); base == url {
		b.eval(fmt.Sprintf("location.hash = %q", hash), nil)
	} else {
		b.run(chromedp.Navigate(url + "#" + hash))
	}
	b.await(fmt.Sprintf("document.querySelector('main[data-page=%s]')", page))
	if v, _ := neturl.ParseQuery(hash); v.Get("profile") != "" {
		b.await(fmt.Sprintf("document.querySelector('main').dataset.number === %q", v.Get("profile")))
	}
}

// clean fails the test if the page has said that anything is wrong.
func (b *browser) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		b.t.Errorf("the browser says: %s", e)
	}
	b.errors = nil
}

// shoot keeps a picture, in the folder of RDX_WEB_SHOTS if there is one.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("RDX_WEB_SHOTS")
	if dir == "" {
		dir = b.t.ArtifactDir()
	}
	var png []byte
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Error(err)
	}
}

// drag presses at one part of the curve, from 0 to 1, and moves to another.
func (b *browser) drag(from, to float64) {
	b.t.Helper()
	b.run(page.BringToFront()) // others get no frames
	var r struct{ X, Y, W, H float64 }
	b.eval("(() => { const r = document.querySelector('.curve .u-over').getBoundingClientRect(); return {X: r.x, Y: r.y, W: r.width, H: r.height} })()", &r)
	at := func(kind input.MouseType, f float64) chromedp.Action {
		return input.DispatchMouseEvent(kind, r.X+f*r.W, r.Y+r.H/2).WithButton(input.Left).WithButtons(1).WithClickCount(1)
	}
	b.run(at(input.MousePressed, from))
	for i := range 8 {
		b.run(at(input.MouseMoved, from+(to-from)*float64(i+1)/8))
	}
	b.run(input.DispatchMouseEvent(input.MouseReleased, r.X+to*r.W, r.Y+r.H/2).WithButton(input.Left).WithClickCount(1))
}

// readAxe is axe-core's text, which npm brings where it is not there yet.
var readAxe = sync.OnceValues(func() ([]byte, error) {
	const axe = "ui/node_modules/axe-core/axe.min.js"
	if b, err := os.ReadFile(axe); err == nil {
		return b, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--silent", "--no-audit", "--no-fund")
	npm.Dir = "ui"
	if out, err := npm.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm: %w %.200s", err, out)
	}
	return os.ReadFile(axe)
})

// accessible fails if axe finds a violation.
func (b *browser) accessible(where string) {
	b.t.Helper()
	axe, err := readAxe()
	if err != nil {
		b.t.Run("accessibility", func(t *testing.T) { t.Skipf("%s: needs axe-core (cd web/ui && npm ci): %v", where, err) })
		return
	}
	b.eval(string(axe)+"; 0", nil)
	var found string
	b.run(chromedp.Evaluate(`axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations.map((v) => [v.id, v.help, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' + n.failureSummary)]), null, 1))`,
		&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if found != "[]" {
		b.t.Errorf("%s: axe: %s", where, found)
	}
}

// example is a profile of testdata.
func example(t *testing.T, name string) Profile {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := pprofout.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return Profile{name, p}
}

// serve starts a server and says where.
func serve(t *testing.T, o Options, profiles ...Profile) string {
	t.Helper()
	return start(t, NewServer(profiles, o))
}

// start has a server serve, and says where.
func start(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s.URL(l.Addr())
}

func testSource(t *testing.T) Options {
	t.Helper()
	s, err := NewSource([]string{"testdata", "../demo"})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Source: s}
}

var pagesOf = []string{"overview", "code", "pairs", "data", "threads", "time", "compare"}

// TestPages opens every page of real profiles, dark and light: nothing is wrong with any.
func TestPages(t *testing.T) {
	b := openBrowser(t)
	url := serve(t, testSource(t), example(t, "bad.pb.gz"), example(t, "good.pb.gz"), example(t, "words.pb.gz"))
	for _, scheme := range []string{"light", "dark"} {
		b.run(chromedp.ActionFunc(func(ctx context.Context) error { return setScheme(ctx, scheme) }))
		for i, page := range pagesOf {
			profile := 2
			if scheme == "dark" {
				profile = i % 2
			}
			hash := fmt.Sprintf("page=%s&profile=%d", page, profile)
			if page == "compare" {
				profile = i % 2
				hash = fmt.Sprintf("page=%s&profile=%d", page, profile)
				hash += fmt.Sprintf("&other=%d", 1-profile%2)
			}
			b.show(url, hash, page)
			switch page {
			case "code":
				b.await("document.querySelector('.lines .code') && document.querySelector('.flame canvas')")
				b.click("table.pairs tbody tr")
				b.await("document.querySelector('tr.chosen') && document.querySelector('.lines tr.end')")
			case "pairs":
				b.click("table.pairs tbody tr")
				b.await("document.querySelector('.hist')")
			case "compare":
				b.await("document.querySelectorAll('main table').length >= 2")
			}
			b.accessible(scheme + " " + page)
			b.shoot(scheme + "-" + page)
			b.clean()
		}
	}
}

// TestNumbers compares what pages show at the machine's caches with what rdx mrc and rdx top print.
func TestNumbers(t *testing.T) {
	b := openBrowser(t)
	all := []Profile{example(t, "bad.pb.gz"), example(t, "words.pb.gz")}
	url := serve(t, testSource(t), all...)
	for i, x := range all {
		p, err := report.Ready(x.Raw, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Caches {
			b.show(url, fmt.Sprintf("page=pairs&profile=%d&size=%d", i, c.Size), "pairs")
			b.await(fmt.Sprintf("document.querySelector('main').dataset.profile === %q", x.Name))
			b.await(fmt.Sprintf("document.querySelector('[data-test=size]').textContent === %q", report.Bytes(float64(c.Size))+" ("+c.Level+")"))
			curve, err := p.MissRatios([]uint64{uint64(c.Size) / uint64(p.Block)}, model.CurveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			q := curve.Points[0]
			want := fmt.Sprintf("[%s, %s]", report.Percent(q.Low, 1), report.Percent(q.High, 1))
			if q.Quote == model.Quoted {
				want = report.Percent(q.MissRatio, 1) + " " + want
			}
			if got := b.text("[data-test=ratio]"); !strings.Contains(got, want) {
				t.Errorf("%s at %s: the page says %q, rdx mrc %q", x.Name, c.Level, got, want)
			}
			m, err := report.FindMetric(p, strings.ToLower(c.Level))
			if err != nil {
				t.Fatal(err)
			}
			pairs := report.Pairs(p, m.Value)
			var rows [][]string
			b.eval("[...document.querySelectorAll('table.pairs tbody tr')].map((r) => [...r.querySelectorAll('td')].map((c) => c.textContent.trim()))", &rows)
			if len(rows) != min(len(pairs), 50) {
				t.Fatalf("%s at %s: %d pairs are shown, rdx top has %d", x.Name, c.Level, len(rows), len(pairs))
			}
			shown := map[string]bool{}
			for _, r := range rows {
				// share, misses, seen, accesses, time, distance
				shown[strings.Join([]string{r[0], r[2], r[4], r[5], r[6], r[7]}, " ")] = true
			}
			for _, q := range pairs[:len(rows)] {
				accesses, native, distance, bound := "-", "-", "-", ""
				if q.BelowResolution {
					bound = "<"
				} else if q.Kind == "censored" || q.Kind == "pruned" {
					bound = ">"
				}
				if q.Kind != "cold" {
					accesses, native = bound+report.Amount(float64(q.Time)), bound+report.Nanoseconds(float64(*q.Nanoseconds))
				}
				if q.Distance != nil {
					distance = report.Bytes(*q.Distance)
				}
				want := strings.Join([]string{report.Percent(q.Share, 1), report.Amount(q.Value), fmt.Sprint(q.Observations), accesses, native, distance}, " ")
				if !shown[want] {
					t.Errorf("%s at %s: rdx top prints %q of %v -> %v, the page has %v", x.Name, c.Level, want, q.Use, q.Reuse, rows)
				}
			}
		}
	}
	b.clean()
}

// TestBands: the band beside each pair is that of model.PerAccess.
func TestBands(t *testing.T) {
	b := openBrowser(t)
	x := example(t, "words.pb.gz")
	p, err := report.Ready(x.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	b.show(serve(t, Options{}, x), fmt.Sprintf("page=pairs&size=%d", p.Caches[0].Size), "pairs")
	b.await("document.querySelector('table.pairs .band').textContent !== ''")
	var rows []string
	b.eval("[...document.querySelectorAll('table.pairs tbody tr')].map((r) => [3, 8, 9].map((i) => r.querySelectorAll('td')[i].textContent.trim()).join('|'))", &rows)
	accesses := 0.0
	groups := map[string][]*model.Record{}
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind != model.Lost {
			accesses += r.Accesses
		}
		if shown(r) {
			name := func(stack []*model.Location) string {
				q := report.PlaceOf(stack)
				return q.Function + filepath.Base(q.File) + ":" + fmt.Sprint(q.Line)
			}
			end := "[" + r.Kind.String() + "]"
			if r.Kind == model.Reuse {
				end = name(r.Reuse)
			}
			k := name(r.Use) + "|" + end
			groups[k] = append(groups[k], r)
		}
	}
	found := 0
	for k, records := range groups {
		q := p.PerAccess(records, func(r *model.Record) float64 { return r.Misses[0] }, accesses, p.Holds(), 0.05)
		if want := fmt.Sprintf("%s [%s, %s]|%s", report.Percent(q.Value, 1), report.Percent(q.Low, 1), report.Percent(q.High, 1), k); slices.Contains(rows, want) {
			found++
		}
	}
	if found != len(rows) || found == 0 {
		t.Errorf("of %d pairs the page shows %d have the band of model.PerAccess: %q", len(groups), found, rows)
	}
	b.clean()
}

// TestFormat holds the browser's way to write numbers against ours.
func TestFormat(t *testing.T) {
	b := openBrowser(t)
	b.show(serve(t, Options{}, example(t, "bad.pb.gz")), "page=overview", "overview")
	var values []float64
	for f := 1e-4; f < 1e19; f *= 1.37 {
		values = append(values, f)
	}
	values = append(values, 0, 1, 999.4, 999.6, 1000, 1023, 1024, 1023.9, 1048575, 31.96, 3.195)
	list, _ := json.Marshal(values)
	var got [][]string
	b.eval(fmt.Sprintf("%s.map((v) => [rdxFormat.amount(v), rdxFormat.bytes(v), rdxFormat.nanoseconds(v), rdxFormat.percent(Math.min(v, 1e12) / 1e6, 1)])", list), &got)
	for i, v := range values {
		want := []string{report.Amount(v), report.Bytes(v), report.Nanoseconds(v), report.Percent(min(v, 1e12)/1e6, 1)}
		for k := range want {
			if got[i][k] != want[k] {
				t.Errorf("%g: the browser writes %s, rdx %s", v, got[i][k], want[k])
			}
		}
	}
}

// TestDrag drags the size, of a program with a working set, of a matrix multiply and of threads that share lines: the numbers are
// those of that size. Then it searches.
func TestDrag(t *testing.T) {
	for _, name := range []string{"words.pb.gz", "bad.pb.gz", "sharing.pb.gz"} {
		t.Run(name, func(t *testing.T) { drag(t, example(t, name)) })
	}
}

func drag(t *testing.T, x Profile) {
	b := openBrowser(t)
	url := serve(t, testSource(t), x)
	b.show(url, "page=code", "code")
	b.await("document.querySelector('.curve .u-over') && document.querySelector('.flame canvas')")
	const to = 0.2
	b.drag(0.5, to)
	// It is over when the line is where the pointer was let go, and the address has its size: on the way a busy machine has others in both.
	b.await(fmt.Sprintf("(() => { const o = document.querySelector('.curve .u-over').getBoundingClientRect(), l = document.querySelector('.curve .at-size').getBoundingClientRect(), s = rdxView.d.sizes; "+
		"const at = (l.x + l.width / 2 - o.x) / o.width, size = Number(new URLSearchParams(location.hash.slice(1)).get('size')); "+
		"return size > 0 && Math.abs(at - %v) < 0.02 && Math.abs(at - Math.log(size / s[0]) / Math.log(s[s.length - 1] / s[0])) < 0.002; })()", to))
	var size int64
	b.eval("Number(new URLSearchParams(location.hash.slice(1)).get('size'))", &size)
	p, err := report.Ready(x.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	weights, err := model.MissWeights(p, size, func([]*model.Location) int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	b.await(fmt.Sprintf("document.querySelector('[data-test=flame-total]').textContent.startsWith(%q)", report.Amount(weights[0])))
	// The line is where the size is.
	var at, want float64
	b.eval("(() => { const o = document.querySelector('.curve .u-over').getBoundingClientRect(), l = document.querySelector('.curve .at-size').getBoundingClientRect(); return (l.x + l.width / 2 - o.x) / o.width; })()", &at)
	b.eval(fmt.Sprintf("(() => { const s = rdxView.d.sizes; return Math.log(%d / s[0]) / Math.log(s[s.length - 1] / s[0]); })()", size), &want)
	if math.Abs(at-want) > 0.002 {
		t.Errorf("the line is at %.4f of the width, want %.4f", at, want)
	}
	// A step by key goes to the next size.
	b.run(chromedp.Focus(".sizebar input[type=range]"), chromedp.KeyEvent(kb.ArrowRight))
	b.await(fmt.Sprintf("document.querySelector('[data-test=size]').textContent !== %q", report.Bytes(float64(size))))
	function := report.PlaceOf(p.Records[0].Use).Function
	for q, found := range map[string]bool{function: true, "no such function": false} {
		b.show(url, fmt.Sprintf("page=pairs&weight=accesses&size=%d&q=%s", size, neturl.QueryEscape(q)), "pairs")
		b.await(fmt.Sprintf("document.querySelector('#search').value === %q", q))
		b.await(fmt.Sprintf("((r) => (r.length > 0) === %v && r.every((e) => e.textContent.includes(%q)))([...document.querySelectorAll('table.pairs tbody tr')])", found, q))
	}
	b.clean()
}

// TestWalk: however the size got to where it is, the browser's sums are the same floating point numbers that all misses at that
// size add up to here.
func TestWalk(t *testing.T) {
	b := openBrowser(t)
	raw := written(t, large(5000, 3))
	d, err := New(raw, "large", "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, Options{}, Profile{"large", raw})
	b.show(url, "page=overview", "overview")
	b.await("window.rdxView")
	const thread = 3
	type sums struct {
		Total, OfThread     float64
		Pairs, Places, Uses []float64
		Tree                float64 // at the root, whose sum has another order
	}
	var walk []int
	for i := range 3 * len(d.Sizes) {
		walk = append(walk, i*i*7%len(d.Sizes), min(i, len(d.Sizes)-1), max(len(d.Sizes)-1-i, 0))
	}
	walk = walk[:600]
	steps, _ := json.Marshal(walk)
	var got []sums
	b.eval(fmt.Sprintf(`%s.map((c, i) => { const v = rdxView, all = {tid: -1, object: -1};
		if (i %% 50 === 7) v.total(c, 'accesses', all); // something else in between
		const OfThread = v.total(c, 'misses', {tid: %d, object: -1, at: ''});
		return {Total: v.total(c, 'misses', all), OfThread, Pairs: [...v.pairs(c, 'misses', all)], Places: i %% 9 ? [] : [...v.places(c, 'misses', all)],
			Uses: i %% 9 ? [] : [...v.uses(c, 'misses', all)], Tree: v.treeSums('miss', c, 'misses', all, -1).total[0]}; })`, steps, thread), &got)
	out := make([]float64, len(d.Sizes))
	table := make([][]float64, len(d.Cells.Use))
	for i := range table {
		table[i] = slices.Clone(d.Cells.Misses.values(i, out))
	}
	for i, c := range walk {
		want := sums{Pairs: make([]float64, len(d.Pairs.Use)), Places: make([]float64, len(d.PlaceTable.Line)), Uses: make([]float64, len(d.PlaceTable.Line))}
		for k := range table {
			v := table[k][c]
			want.Total += v
			if d.Cells.TID[k] == thread {
				want.OfThread += v
			}
			pair := d.Cells.Pair[k]
			where := d.Pairs.Use[pair]
			want.Uses[where] += v
			if d.Pairs.Reuse[pair] >= 0 {
				where = d.Pairs.Reuse[pair] // all are reuses
			}
			want.Pairs[pair] += v
			want.Places[where] += v
		}
		g := got[i]
		if g.Total != want.Total || g.OfThread != want.OfThread || !slices.Equal(g.Pairs, want.Pairs) || math.Abs(g.Tree-want.Total) > 1e-9*want.Total ||
			i%9 == 0 && (!slices.Equal(g.Places, want.Places) || !slices.Equal(g.Uses, want.Uses)) {
			t.Fatalf("step %d, at %d bytes: the browser has %g, and %g of thread %d, want %g and %g; its tree %g", i, d.Sizes[c], g.Total, g.OfThread, thread, want.Total, want.OfThread, g.Tree)
		}
	}
	b.clean()
}

// TestChoose searches, filters, sorts, and chooses in one pane what all show.
func TestChoose(t *testing.T) {
	b := openBrowser(t)
	url := serve(t, testSource(t), example(t, "words.pb.gz"))
	b.show(url, "page=pairs", "pairs")
	b.await("document.querySelectorAll('table.pairs tbody tr').length > 1")
	b.run(chromedp.SendKeys("#search", "no such function"))
	b.await("document.querySelectorAll('table.pairs tbody tr').length === 0 && document.body.textContent.includes('Nothing is found')")
	b.eval("(() => { const e = document.querySelector('#search'); e.value = 'count'; e.dispatchEvent(new Event('input', {bubbles: true})); })()", nil)
	b.await("[...document.querySelectorAll('table.pairs tbody tr')].length > 0 && [...document.querySelectorAll('table.pairs tbody tr')].every((r) => r.textContent.includes('count'))")
	b.eval("(() => { const e = document.querySelector('#search'); e.value = ''; e.dispatchEvent(new Event('input', {bubbles: true})); })()", nil)
	b.eval("[...document.querySelectorAll('th button')].find((e) => e.textContent.startsWith('distance')).click()", nil)
	b.await("document.querySelector('th[aria-sort=descending]').textContent.startsWith('distance')")
	b.show(url, "page=threads", "threads")
	b.click("main tbody button")
	b.await("document.querySelector('.filters')")
	b.show(url, "page=code&view=tree", "code")
	b.await("document.querySelector('[role=treeitem]')")
	b.eval("[...document.querySelectorAll('[role=treeitem]')].pop().click()", nil)
	b.await("document.querySelector('[role=treeitem].chosen') && location.hash.includes('node=')")
	b.await("document.body.textContent.includes('pairs through the chosen frame')")
	b.click("table.pairs tbody tr")
	b.await("document.querySelector('.arc path') && document.querySelectorAll('.lines tr.end').length > 0")
	// What is in the URL is what another sees.
	var at string
	b.eval("location.href", &at)
	b.await("document.querySelector('tr.chosen .band').textContent !== ''")
	chosen := b.text("tr.chosen")
	c := openBrowser(t)
	c.run(chromedp.Navigate(at))
	c.await(fmt.Sprintf("document.querySelector('tr.chosen')?.textContent === %q", chosen))
	b.clean()
	c.clean()
}

// TestFlameKeys goes through call stacks without a mouse.
func TestFlameKeys(t *testing.T) {
	b := openBrowser(t)
	b.show(serve(t, Options{}, example(t, "words.pb.gz")), "page=code", "code")
	b.await("document.querySelector('.flame canvas')")
	b.run(chromedp.Focus(".flame canvas"))
	for range 3 {
		b.run(chromedp.KeyEvent(kb.ArrowDown))
	}
	b.await("document.querySelector('#flame-said').textContent.includes(': ')")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.await("location.hash.includes('node=')")
	b.run(chromedp.Focus(".flame canvas"), chromedp.KeyEvent(kb.Escape))
	b.await("!location.hash.includes('node=')")
	b.clean()
}

// TestReportFile opens the one file from a disk, without a network: it asks for nothing, and shows what the
// server does.
func TestReportFile(t *testing.T) {
	b := openBrowser(t)
	all := []Profile{example(t, "bad.pb.gz"), example(t, "words.pb.gz")}
	o := testSource(t)
	name := filepath.Join(t.TempDir(), "report.html")
	var file bytes.Buffer
	if err := WriteFile(&file, all, o); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	url := serve(t, o, all...)
	f := openBrowser(t)
	f.run(chromedp.ActionFunc(goOffline))
	for _, page := range pagesOf {
		b.show(url, "page="+page+"&profile=1&other=0", page)
		f.show("file://"+name, "page="+page+"&profile=1&other=0", page)
		// Both fill by and by.
		var one, two string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			one, two = b.text(saying(page)), f.text(saying(page))
			if one == two && !strings.Contains(one, "reading …") {
				break
			}
		}
		if one != two || len(one) < 100 {
			t.Errorf("%s: the file says %q, the server's page %q", page, two, one)
		}
	}
	f.shoot("file")
	f.mu.Lock()
	for _, u := range f.asked {
		if !strings.HasPrefix(u, "file://"+name) && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
			t.Errorf("the file asks for %s", u)
		}
	}
	f.mu.Unlock()
	f.clean()
	b.clean()
}

// saying is what of a page does not depend on how far it is scrolled.
func saying(page string) string {
	if page == "code" {
		return ".metrics"
	}
	return "main"
}
