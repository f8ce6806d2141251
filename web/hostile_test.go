package web

// Needs Chromium.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// hostile is a profile that has a script wherever it can have a text.
func hostile() *model.Profile {
	names := []string{
		"<script>window.owned=1</script>", `"><img src=x onerror=window.owned=1>`, "</template></script><script>window.owned=1</script>",
		"javascript:window.owned=1", "${window.owned=1}", "{{constructor.constructor('window.owned=1')()}}", "'-alert(1)-'", "__proto__", "constructor", "a\u202eb\x00\x1b[2J", "<svg onload=window.owned=1>",
	}
	p := renamed(names...)
	p.Command = names[0]
	p.Comments = append(p.Comments, names...)
	for i := range p.Records {
		r := &p.Records[i]
		n := names[i%len(names)]
		r.Use = []*model.Location{{Address: uint64(i), Mapping: &model.Mapping{Start: 0, Limit: 1 << 20, File: n, BuildID: n}, Lines: []model.Line{{Function: n, SystemName: n, File: n, Line: 1 + i%3}}}}
		r.Data = &model.Data{Name: n}
		r.TID = 1 + i%4
		r.Stack = model.StackPrivate
		if i%5 == 0 {
			r.Kind = model.Invalidated
			r.SetWords(model.Words{EndTID: 2, Address: 64, Written: 72})
		}
	}
	return p
}

// written is a profile as it is read from a file.
func written(t *testing.T, p *model.Profile) *model.Profile {
	t.Helper()
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pprofout.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	out, err := pprofout.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestHostileNames: what programs are called runs nowhere, neither from a server nor in a file.
func TestHostileNames(t *testing.T) {
	b := openBrowser(t)
	owned := func() *model.Profile {
		p := written(t, hostile())
		p.Caches[0].Level = `L1d"><script>window.owned=1</script>` // no rdx writes that, but one may read it
		return p
	}
	all := []Profile{{`<img src=x onerror=window.owned=1>`, owned()}, {"</script><script>window.owned=1</script>", owned()}}
	name := filepath.Join(t.TempDir(), "report.html")
	var file bytes.Buffer
	if err := WriteFile(&file, all, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{serve(t, testSource(t), all...), "file://" + name} {
		for _, page := range pagesOf {
			b.show(url, "page="+page+"&profile=0&other=1&view=tree&pair=0&q=%3Cscript%3Ewindow.owned%3D1", page)
			b.await("document.querySelector('main').textContent.length > 0")
			var owned bool
			b.eval("'owned' in window", &owned)
			if owned {
				t.Fatalf("%s: a name was run as a script", page)
			}
		}
		if !strings.Contains(b.text("body"), "window.owned") {
			t.Error("the names are not to be seen: nothing was tested")
		}
	}
	b.clean()
}

// large is a profile of n samples that has some hundred places.
func large(n, depth int) *model.Profile {
	p := renamed()
	rng := rand.New(rand.NewPCG(1, 2))
	var locs []*model.Location
	for i := range 400 {
		f := fmt.Sprintf("function_%d", i)
		locs = append(locs, &model.Location{Address: uint64(0x1000 + 16*i), Mapping: &model.Mapping{Start: 0x1000, Limit: 0x9000, File: "prog"},
			Lines: []model.Line{{Function: f, SystemName: f, File: fmt.Sprintf("file%d.c", i%20), Line: 10 + i}}})
	}
	stack := func() []*model.Location {
		s := []*model.Location{locs[rng.IntN(len(locs))]}
		for k := range depth {
			s = append(s, locs[(k*7+rng.IntN(2))%len(locs)])
		}
		return s
	}
	for i := range n {
		t := uint64(1) << rng.IntN(28)
		t += uint64(rng.IntN(int(t)))
		r := model.Record{Kind: model.Reuse, Use: stack(), Ending: model.Ending{Reuse: stack()}, TID: 1 + i%8, Epoch: i * 40 / n, Timing: model.Timing{Time: t, Native: t}, Cluster: model.Cluster{Hold: uint64(i/4 + 1)}, Weight: model.Weight{Observations: 1, Accesses: float64(1000 + rng.IntN(9000))}}
		if t < 3000 {
			r.Exact, r.Distinct = true, 1+t/3
		}
		p.Records = append(p.Records, r)
	}
	return p
}

// TestDeepStacks: ten thousand frames are a picture, too.
func TestDeepStacks(t *testing.T) {
	b := openBrowser(t)
	p := large(40, 10_000)
	b.show(serve(t, Options{}, Profile{"deep", p}), "page=code", "code")
	b.await("document.querySelector('.flame canvas')")
	if h := b.text(".contexts"); h == "" {
		t.Error("no contexts")
	}
	b.clean()
}

// TestHostileFiles: call stacks that go round in circles make pages, and a file that was cut off anywhere gives one line that says
// so.
func TestHostileFiles(t *testing.T) {
	p := large(200, 0)
	var ring []*model.Location
	for _, r := range p.Records[:5] {
		ring = append(ring, r.Use[0])
	}
	ring[0].Lines = append(ring[0].Lines, ring[0].Lines[0], ring[0].Lines[0]) // inlined into itself
	for i := range p.Records {
		for range 400 {
			p.Records[i].Use = append(p.Records[i].Use, ring...)
		}
	}
	all := []Profile{{"ring", written(t, p)}}
	var page bytes.Buffer
	if err := WriteFile(&page, all, Options{}); err != nil || !strings.Contains(page.String(), "</html>") {
		t.Errorf("stacks in circles: %v, %d bytes", err, page.Len())
	}
	for _, sub := range []string{"", "top", "flamegraph"} {
		if code, body, _ := get(t, serve(t, Options{}, all...)+"pprof/0/"+sub, nil); code != 200 {
			t.Errorf("pprof/0/%s: %d %.100s", sub, code, body)
		}
	}
	programs := pprofPrograms{known: map[string]*profile.Mapping{}}
	for _, f := range []string{"/bin/\x1b[2J\r\u202e", "/a/b", "/c/b"} {
		if name := programs.add(&profile.Mapping{File: f}); strings.ContainsAny(name, "\x1b\r\u202e/") {
			t.Errorf("pprof may write %q to the terminal", name)
		}
	}
	if len(programs.known) != 3 {
		t.Errorf("programs of one name are one: %d", len(programs.known))
	}
	var file bytes.Buffer
	if err := pprofout.Write(&file, all[0].Raw); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		at := file.Len() * i / 50
		if _, err := pprofout.Read(bytes.NewReader(file.Bytes()[:at])); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "not an rdx profile") {
			t.Errorf("cut off at byte %d: %v", at, err)
		}
	}
}
