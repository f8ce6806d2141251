package web

// Needs Chromium.

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// drawnCurve is a curve of the chart: of a profile, in a stack, by a model.
type drawnCurve struct {
	name, stack, model string
	x                  Profile
}

// Curves of other profiles, of the other stack and by other models are drawn beside, each with a colour and a dash of its own,
// and what is said and saved of each is what rdx mrc prints.
func TestDrawnCurves(t *testing.T) {
	all := []Profile{example(t, "sharing.pb.gz"), example(t, "words.pb.gz"), example(t, "bad.pb.gz")}
	own := drawnCurve{"sharing.pb.gz, private stack", "private", "", all[0]}
	b := openBrowser(t)
	url := serve(t, Options{}, all...)
	b.exports(t, url, "page=overview", own)
	curves := []drawnCurve{own, {"words.pb.gz, private stack", "", "", all[1]}, {"bad.pb.gz", "", "", all[2]}, {"sharing.pb.gz, shared stack", "shared", "", all[0]}}
	beside := "1,2,shared"
	for _, m := range model.CurveModels[1:4] {
		curves = append(curves, drawnCurve{"model " + m, "private", m, all[0]})
		beside += "," + m
	}
	b.exports(t, url, "page=overview&beside="+beside, curves...)
	var dashes []string
	b.eval("[...document.querySelectorAll('.legend line')].map((e) => getComputedStyle(e).strokeDasharray + getComputedStyle(e).stroke)", &dashes)
	seen := map[string]bool{}
	for _, d := range dashes {
		if seen[d] {
			t.Errorf("two curves look alike: %q", dashes)
		}
		seen[d] = true
	}
	b.accessible("seven curves")
	b.shoot("seven-curves")
	// They are chosen by buttons, and are in the URL; what has no other stack offers none.
	b.show(url, "page=overview&profile=2", "overview")
	b.await("document.querySelectorAll('.legend .curve-name b').length === 1")
	b.eval("[...document.querySelectorAll('.besides button')].find((e) => e.textContent === 'statstack').click()", nil)
	b.await("location.hash.includes('beside=statstack') && document.querySelectorAll('.legend .curve-name b').length === 2")
	if s := b.text(".besides"); strings.Contains(s, "shared") || !strings.Contains(s, "words.pb.gz") {
		t.Errorf("what can be drawn beside bad.pb.gz: %q", s)
	}
	b.clean()
}

// TestExports: what is saved of a curve is what rdx mrc prints.
func TestExports(t *testing.T) {
	for _, name := range []string{"words.pb.gz", "bad.pb.gz", "list.pb.gz"} {
		x := example(t, name)
		b := openBrowser(t)
		p, err := report.Ready(x.Raw, "")
		if err != nil {
			t.Fatal(err)
		}
		said := x.Name
		if k := p.StackKinds(); len(k) == 1 && k[0] != model.StackOwn {
			said += ", " + k[0].String() + " stack"
		}
		b.exports(t, serve(t, Options{}, x), "page=overview", drawnCurve{said, "", "", x})
	}
}

// exports saves what is drawn, and compares that with these curves.
func (b *browser) exports(t *testing.T, url, hash string, curves ...drawnCurve) {
	t.Helper()
	b.show(url, hash, "overview")
	b.await(fmt.Sprintf("document.querySelectorAll('.exports button').length === 3 && document.querySelector('.curve canvas') && document.querySelectorAll('.legend .curve-name b').length === %d", len(curves)))
	// The page's policy lets nobody ask for a blob: what is made into one is kept.
	b.eval(`(() => { window.saved = {}; let last; const make = window.made ??= URL.createObjectURL; URL.createObjectURL = (x) => { last = x; return make.call(URL, x); };
		HTMLAnchorElement.prototype.click = function () { const n = this.download, x = last; if (n.endsWith('png')) window.saved[n] = x.type + ' ' + (x.size > 1000); else void x.text().then((t) => window.saved[n] = t); };
		for (const e of document.querySelectorAll('.exports button')) e.dispatchEvent(new MouseEvent('click', {bubbles: true})); })()`, nil)
	b.await("Object.keys(window.saved).length === 3")
	var saved map[string]string
	b.eval("window.saved", &saved)
	if saved["curve.png"] != "image/png true" {
		t.Errorf("png %q", saved["curve.png"])
	}
	if n, texts := drawing(t, saved["curve.svg"]); n != len(curves) {
		t.Errorf("the svg has %d curves, want %d", n, len(curves))
	} else {
		for _, c := range curves {
			if !strings.Contains(texts, c.name+"\n") {
				t.Errorf("the svg does not name %q: %q", c.name, texts)
			}
		}
	}
	rows, err := csv.NewReader(strings.NewReader(saved["curve.csv"])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for _, c := range curves {
		p, err := report.Ready(c.x.Raw, c.stack)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			if row[0] == c.name {
				of[c.name]++
				sameRow(t, p, c.model, row)
			}
		}
		if of[c.name] < 50 {
			t.Errorf("%d rows of %s, of %d in all", of[c.name], c.name, len(rows))
		}
	}
	b.clean()
}

// sameRow compares a row of the file with what rdx mrc has.
func sameRow(t *testing.T, p *model.Profile, by string, row []string) {
	t.Helper()
	var bytes, blocks uint64
	if _, err := fmt.Sscan(row[1]+" "+row[2], &bytes, &blocks); err != nil || len(row) != 7 {
		t.Fatalf("%q: %v", row, err)
	}
	c, err := p.MissRatios([]uint64{blocks}, model.CurveOptions{Model: by})
	if err != nil {
		t.Fatal(err)
	}
	q := c.Points[0]
	var low, high float64
	if _, err := fmt.Sscan(row[4]+" "+row[5], &low, &high); err != nil || math.Abs(low-q.Low) > 1e-9 || math.Abs(high-q.High) > 1e-9 || row[6] != q.Quote.String() {
		t.Errorf("%q, rdx mrc has %+v", row, q)
	}
}

// drawing says how many curves a well-formed picture has, and its texts, a line each.
func drawing(t *testing.T, svg string) (curves int, texts string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return curves, texts
		}
		if err != nil {
			t.Fatalf("%v in %.300q", err, svg)
		}
		switch k := token.(type) {
		case xml.StartElement:
			if k.Name.Local == "polyline" {
				curves++
			}
		case xml.CharData:
			texts += strings.TrimSpace(string(k)) + "\n"
		}
	}
}
