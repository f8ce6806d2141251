package web

// Needs Chromium.

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// outside are elements that are cut off at the right, where nothing scrolls: what has a scroll bar of its own
// may be wider.
const outside = `[...document.querySelectorAll('body *')].filter((e) => {
	if (e.closest('.scroll, .lines, .flame, .unseen, .skip, svg, option, .u-wrap, .tip, .fit')) return false;
	const r = e.getBoundingClientRect();
	return r.width > 0 && r.right > document.documentElement.clientWidth + 1;
}).slice(0, 3).map((e) => e.outerHTML.slice(0, 120))`

// TestWindows: on a telephone, a small window, a usual one and one of 4k all pages have their room, and axe finds nothing.
func TestWindows(t *testing.T) {
	b := openBrowser(t)
	url := serve(t, testSource(t), example(t, "sharing.pb.gz"), example(t, "words.pb.gz"))
	for _, w := range []struct {
		name          string
		width, height int64
	}{{"phone", 360, 640}, {"small", 800, 600}, {"usual", 1366, 768}, {"4k", 3840, 2160}} {
		b.run(emulation.SetDeviceMetricsOverride(w.width, w.height, 1, w.width < 500), page.BringToFront())
		for _, name := range pagesOf {
			hash := "page=" + name + "&profile=1&other=0"
			if name == "threads" {
				hash = "page=threads"
			}
			b.show(url, hash, name)
			switch name {
			case "code":
				b.await("document.querySelector('.lines .code') && document.querySelector('.flame canvas')")
			case "pairs":
				b.click("table.pairs tbody tr")
				b.await("document.querySelector('.hist')")
			case "compare":
				b.await("document.querySelectorAll('main table').length >= 2")
			}
			var cut []string
			b.eval(outside, &cut)
			for _, e := range cut {
				b.t.Errorf("%s %s: cut off: %s", w.name, name, e)
			}
			var wide, most float64
			b.eval("document.documentElement.scrollWidth", &wide)
			b.eval("innerWidth", &most)
			if wide > most {
				t.Errorf("%s %s: the page is %.0f wide, the window %.0f", w.name, name, wide, most)
			}
			if w.name == "usual" || w.name == "4k" {
				b.fits(w.name+" "+name, name)
			}
			b.accessible(w.name + " " + name)
			b.shoot(w.name + "-" + name)
		}
	}
	b.clean()
}

// fits fails if pages of panes that scroll by themselves leave room below them, or need more than the window has.
func (b *browser) fits(where, page string) {
	b.t.Helper()
	if page != "code" && page != "pairs" {
		return
	}
	var below, over float64
	b.eval("innerHeight - document.querySelector('main').lastElementChild.getBoundingClientRect().bottom", &below)
	b.eval("document.documentElement.scrollHeight - innerHeight", &over)
	if below < 0 || below > 30 || over > 0 {
		b.t.Errorf("%s: the panes end %.0f pixels above the window's end, %.0f are below it", where, below, over)
	}
}

// TestOneScreen: all of the overview is to be seen at once, in a window of a usual screen.
func TestOneScreen(t *testing.T) {
	b := openBrowser(t)
	for _, name := range []string{"words.pb.gz", "bad.pb.gz", "list.pb.gz", "sharing.pb.gz"} {
		url := serve(t, testSource(t), example(t, name))
		b.run(emulation.SetDeviceMetricsOverride(1440, 900, 1, false), page.BringToFront())
		b.show(url, "page=overview", "overview")
		b.await("document.querySelector('.curve canvas')")
		var over float64
		b.eval("document.documentElement.scrollHeight - innerHeight", &over)
		if over > 0 {
			t.Errorf("%s: %.0f pixels of the overview are out of sight", name, over)
		}
		b.shoot("screen-" + name)
	}
	b.clean()
}

// reach goes through a page by Tab, and returns what could be reached.
func (b *browser) reach() (reached int, missed, unseen []string) {
	b.t.Helper()
	// What can be used, and can be seen, must come by.
	b.eval(`(() => {
		window.wanted = new Set([...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')].filter((e) => e.getClientRects().length > 0 && !e.disabled));
		window.was = new Set();
		document.activeElement?.blur();
		window.scrollTo(0, 0);
	})()`, nil)
	for range 400 {
		b.run(chromedp.KeyEvent(kb.Tab))
		var r struct {
			New, Ends bool // by way of no element it goes on at the beginning
			Bare      string
		}
		b.eval(`(() => {
			const e = document.activeElement;
			if (!e || e === document.body || window.was.has(e)) return {New: false, Ends: window.was.has(e), Bare: ''};
			window.was.add(e);
			const s = getComputedStyle(e);
			return {New: true, Ends: false, Bare: s.outlineStyle === 'none' || parseFloat(s.outlineWidth) === 0 ? e.outerHTML.slice(0, 120) : ''};
		})()`, &r)
		if r.Ends {
			break
		}
		if !r.New {
			continue
		}
		reached++
		if r.Bare != "" {
			unseen = append(unseen, r.Bare)
		}
	}
	b.eval("[...window.wanted].filter((e) => e.isConnected && !window.was.has(e)).slice(0, 5).map((e) => e.outerHTML.slice(0, 120))", &missed)
	return reached, missed, unseen
}

// press moves the focus to an element, as Tab would, and presses a key there.
func (b *browser) press(selector, key string) {
	b.t.Helper()
	b.await(fmt.Sprintf("document.querySelector(%q)", selector))
	b.run(chromedp.Focus(selector, chromedp.ByQuery), chromedp.KeyEvent(key))
}

// TestKeyboard does without a mouse what can be done with one: each page by its number, all that can be used by Tab, seen
// to have the focus, and chosen by Enter.
func TestKeyboard(t *testing.T) {
	b := openBrowser(t)
	url := serve(t, testSource(t), example(t, "sharing.pb.gz"), example(t, "words.pb.gz"))
	b.show(url, "page=overview&other=1", "overview")
	b.await("document.querySelector('.curve canvas')")
	b.run(page.BringToFront())
	for i, name := range pagesOf {
		b.eval("document.activeElement?.blur()", nil)
		b.run(chromedp.KeyEvent(fmt.Sprint(i + 1)))
		b.await(fmt.Sprintf("document.querySelector('main[data-page=%s]')", name))
		if name == "compare" {
			b.await("document.querySelectorAll('main table').length >= 2")
		}
		reached, missed, bare := b.reach()
		for _, e := range missed {
			t.Errorf("%s: Tab does not come to %s", name, e)
		}
		for _, e := range bare {
			t.Errorf("%s: the focus is not to be seen on %s", name, e)
		}
		if reached < 15 {
			t.Errorf("%s: Tab comes to %d elements", name, reached)
		}
	}
	b.show(url, "page=pairs", "pairs")
	was := b.text("[data-test=size]")
	b.eval("document.activeElement?.blur()", nil)
	b.run(chromedp.KeyEvent("["))
	b.await(fmt.Sprintf("document.querySelector('[data-test=size]').textContent !== %q", was))
	b.run(chromedp.KeyEvent("]"))
	b.await(fmt.Sprintf("document.querySelector('[data-test=size]').textContent === %q", was))
	b.press("table.pairs tbody button", kb.Enter)
	b.await("document.querySelector('tr.chosen') && document.querySelector('.hist')")
	b.press("th:last-child button", kb.Enter)
	b.await("document.querySelector('th[aria-sort=descending]').textContent.includes('reuse')")
	b.eval("document.activeElement?.blur()", nil)
	b.run(chromedp.KeyEvent("/"))
	b.await("document.activeElement.id === 'search'")
	b.run(chromedp.KeyEvent("take"), chromedp.KeyEvent(kb.Escape))
	b.await("document.activeElement.id !== 'search' && [...document.querySelectorAll('table.pairs tbody tr')].every((r) => r.textContent.includes('take'))")
	for _, name := range []string{"data", "threads"} {
		b.show(url, "page="+name, name)
		b.press("main tbody button", kb.Enter)
		b.await("document.querySelector('.filters button') && document.querySelector('tr.chosen')")
		b.press(".filters button", kb.Enter)
		b.await("!document.querySelector('.filters')")
	}
	b.show(url, "page=code&view=tree", "code")
	b.press("[role=treeitem]", kb.ArrowDown)
	b.await("document.activeElement.getAttribute('aria-level') === '2'")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.await("document.querySelector('[role=treeitem].chosen') && location.hash.includes('node=')")
	b.show(url, "page=overview", "overview")
	b.press(".caches tbody button", kb.Enter)
	b.await("document.querySelector('.caches tr.chosen').textContent.startsWith('L1d')")
	b.press("section[aria-label=pairs] li button", kb.Enter)
	b.await("document.querySelector('main[data-page=code]') && document.querySelector('tr.chosen')")
	b.clean()
}

// TestTimes: the tree of contexts has the share of the CPU time beside the misses, of functions as the samples of CPU time say.
func TestTimes(t *testing.T) {
	b := openBrowser(t)
	x := example(t, "sharing.pb.gz")
	p, err := report.Ready(x.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	all, of := 0.0, map[string]float64{} // by the leaf's function: none of them calls another
	for i := range p.Moments {
		m := &p.Moments[i]
		all += m.Nanoseconds
		seen := map[string]bool{}
		for _, l := range m.Stack {
			for _, line := range l.Lines {
				if !seen[line.Function] {
					of[line.Function] += m.Nanoseconds
				}
				seen[line.Function] = true
			}
		}
	}
	b.show(serve(t, testSource(t), x), "page=code&view=tree&count=accesses&weight=accesses", "code")
	b.await("document.querySelector('.tree.timed')")
	for range 20 { // all is opened
		b.eval("[...document.querySelectorAll('[role=treeitem][aria-expanded=false] .twist')].forEach((e) => e.click())", nil)
	}
	text := ""
	b.eval("JSON.stringify([...document.querySelectorAll('[role=treeitem]')].map((e) => [e.querySelector('.name').textContent.replace(/^[▾▸·]/, ''), e.querySelectorAll('.num')[2].textContent]))", &text)
	var rows [][2]string
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, r := range rows {
		var v float64
		if _, err := fmt.Sscanf(strings.TrimPrefix(r[1], "<"), "%f%%", &v); err != nil {
			t.Fatalf("%q: %v", r, err)
		}
		sums[r[0]] += v
	}
	compared := 0
	for name, ns := range of {
		if got, ok := sums[name]; ok {
			compared++
			if want := 100 * ns / all; math.Abs(got-want) > 0.3 {
				t.Errorf("%s: the tree has %.1f %% of the CPU time, the samples of CPU time %.1f", name, got, want)
			}
		}
	}
	if compared < 3 || sums["[all]"] != 100 {
		t.Errorf("%d functions compared, of all %v", compared, sums["[all]"])
	}
	b.clean()
}

// TestPhases: the heat map has each stretch of a thread's run by stack distance, as its samples say; several profiles stand below it
// with rdx phases' numbers.
func TestPhases(t *testing.T) {
	b := openBrowser(t)
	raw := written(t, large(8000, 3))
	p, err := report.Ready(raw, "")
	if err != nil {
		t.Fatal(err)
	}
	const thread, epochs = 5, 40
	var sum, all [epochs]float64
	want := map[[2]int]float64{} // by epoch, and the logarithm of the distance in bytes
	for i := range p.Records {
		r := &p.Records[i]
		if r.TID != thread || !shown(r) {
			continue
		}
		level, weight := math.MaxInt, r.Accesses
		if d, ok := r.MeanDistance(); ok {
			level, weight = max(int(math.Floor(math.Log2(max(d, 1)))), 6), r.Reuses
		}
		want[[2]int{r.Epoch, level}] += weight
		all[r.Epoch] += weight
	}
	words := []Profile{example(t, "words.pb.gz"), example(t, "sharing.pb.gz")}
	url := serve(t, Options{}, Profile{"large", raw})
	b.show(url, fmt.Sprintf("page=time&tid=%d", thread), "time")
	b.await("document.querySelector('.heatmap td')")
	var rows [][]string
	b.eval("[...document.querySelectorAll('.heatmap tr')].map((r) => [r.querySelector('th').textContent, ...[...r.querySelectorAll('td')].map((c) => c.title)])", &rows)
	for _, r := range rows {
		level := math.MaxInt
		if low, _, ok := strings.Cut(r[0], " to "); ok {
			for k := 7; k < 50; k++ {
				if report.Bytes(math.Exp2(float64(k))) == low {
					level = k
				}
			}
		} else if r[0] != "never reused" {
			level = 6
		}
		if len(r) != epochs+1 {
			t.Fatalf("%d stretches, want %d", len(r)-1, epochs)
		}
		for i, title := range r[1:] {
			share := want[[2]int{i, level}] / all[i]
			sum[i] += share
			if said := fmt.Sprintf("part %d: %s at %s", i+1, report.Percent(share, 1), r[0]); title != said {
				t.Errorf("the page says %q, the samples %q", title, said)
			}
		}
	}
	for i, v := range sum {
		if math.Abs(v-1) > 1e-9 {
			t.Errorf("stretch %d adds up to %g", i+1, v)
		}
	}
	b.accessible("phases")
	b.shoot("phases")
	b.show(serve(t, Options{}, words...), "page=time", "time")
	b.await("document.querySelectorAll('section[aria-label=windows] tbody tr').length === 2")
	for i, x := range words {
		q, err := report.Ready(x.Raw, "")
		if err != nil {
			t.Fatal(err)
		}
		c, err := q.MissRatios([]uint64{uint64(q.Caches[0].Size) / uint64(q.Block)}, model.CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		said := report.Percent(c.Points[0].MissRatio, 1)
		if row := b.text(fmt.Sprintf("section[aria-label=windows] tbody tr:nth-child(%d)", i+1)); !strings.Contains(row, said) || !strings.Contains(row, x.Name) {
			t.Errorf("window %d says %q, rdx mrc %q", i+1, row, said)
		}
	}
	b.clean()
}
