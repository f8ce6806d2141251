package web

// Needs Chromium; TestInstructions gcc.

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// TestSharing: the matrix of a profile of four threads that share lines, recorded with --stack both, has rdx threads' numbers, and
// the list below it rdx top --by invalidations'.
func TestSharing(t *testing.T) {
	b := openBrowser(t)
	x := example(t, "sharing.pb.gz")
	url := serve(t, testSource(t), x)
	b.show(url, "page=threads", "threads")
	b.await("document.querySelector('table.matrix tbody td')")
	raw := *x.Raw
	raw.Records = slices.Clone(x.Raw.Records)
	if err := raw.Derive(); err != nil {
		t.Fatal(err)
	}
	p, err := report.Ready(x.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Sharing []struct {
			Writer int     `json:"writer_tid"`
			Reader int     `json:"reader_tid"`
			True   float64 `json:"accesses_invalidated"`
			False  float64 `json:"accesses_falsely_shared"`
		}
	}
	text, err := json.Marshal(report.NewThreadList(&raw, p, mostThreads))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	var cells map[string]string
	b.eval(`(() => { const m = document.querySelector('table.matrix'), to = [...m.querySelectorAll('thead th')].slice(1).map((e) => e.textContent.trim());
		return Object.fromEntries([...m.querySelectorAll('tbody tr')].flatMap((r) => [...r.querySelectorAll('td')].map((c, i) => [r.querySelector('th').textContent.trim() + ' ' + to[i], c.textContent.trim()]))); })()`, &cells)
	if len(list.Sharing) < 6 || len(cells) != 16 {
		t.Fatalf("rdx threads has %d pairs of threads, the page %d: too few to see anything", len(list.Sharing), len(cells))
	}
	for _, s := range list.Sharing {
		at := fmt.Sprintf("%d %d", s.Writer, s.Reader)
		if want := report.Amount(s.True) + " / " + report.Amount(s.False); cells[at] != want {
			t.Errorf("%s: the page has %q, rdx threads %q", at, cells[at], want)
		}
	}
	l, err := report.NewInvalidationList(&raw, 5)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	b.eval("[...document.querySelectorAll('section[aria-label=invalidations] tbody tr')].map((r) => r.textContent)", &said)
	for i, v := range l.Pairs {
		if want := report.Percent(v.Share, 1) + report.Amount(v.Accesses) + fmt.Sprint(v.Observations) + v.Kind; i >= len(said) || !strings.HasPrefix(said[i], want) {
			t.Errorf("line %d of the invalidations: %q, want %q", i, said, want)
		}
	}
	b.accessible("sharing")
	b.shoot("sharing")
	b.clean()
}

// walking is a program without debug information whose function walk returns such an expression of a table and an index i.
func walking(t *testing.T, expression string) (prog string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs gcc: ", err)
	}
	prog = filepath.Join(t.TempDir(), "prog")
	cmd := exec.Command(gcc, "-O1", "-g0", "-Wl,--build-id=sha1", "-x", "c", "-o", prog, "-")
	cmd.Stdin = strings.NewReader("long table[100];\n__attribute__((noinline)) long walk(long i) { return " + expression + "; }\nint main(int n, char **a) { return (int)walk(n); }\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return prog
}

// TestInstructions: where there is no source the pane has the instructions of the program, by its build ID, with the misses of
// each. Of another build it has none and says so.
func TestInstructions(t *testing.T) {
	prog := walking(t, "table[i % 100]++ + table[(i + 7) % 100]")
	p := ofProgram(t, prog, "walk")
	source, err := NewSource([]string{filepath.Dir(prog)})
	if err != nil {
		t.Fatal(err)
	}
	other := ofProgram(t, prog, "walk")
	for i := range other.Records {
		other.Records[i].Use[0].Mapping.BuildID = strings.Repeat("ab", 20)
	}
	b := openBrowser(t)
	url := serve(t, Options{Source: source}, Profile{"same", written(t, p)}, Profile{"other", written(t, other)})
	b.show(url, "page=code", "code")
	b.await("document.querySelector('.lines[aria-label=instructions] tbody tr')")
	b.click("table.pairs tbody tr")
	b.await("document.querySelector('.lines tr.end')")
	if s := b.text(".lines[aria-label=instructions]"); !strings.Contains(s, "ret") || !strings.Contains(s, "prog") {
		t.Errorf("instructions: %.500s", s)
	}
	b.accessible("instructions")
	b.shoot("instructions")
	b.show(url, "page=code&profile=1", "code")
	b.click("table.pairs tbody tr")
	b.await("document.body.textContent.includes('its build ID is another')")
	b.clean()
}

// TestPprofDisasm: pprof's own pages have the instructions of programs below the roots, of the build that was profiled, with each one's
// samples; and of no others.
func TestPprofDisasm(t *testing.T) {
	prog := walking(t, "table[i % 100]++")
	source, err := NewSource([]string{filepath.Dir(prog)})
	if err != nil {
		t.Fatal(err)
	}
	named := func(p *model.Profile, build string) *model.Profile {
		for i := range p.Records {
			if l := p.Records[i].Use[0]; l.Mapping.File == prog {
				l.Lines = []model.Line{{Function: "walk", SystemName: "walk"}}
				if build != "" {
					l.Mapping.BuildID = build
				}
			}
		}
		return written(t, p)
	}
	url := serve(t, Options{Source: source}, Profile{"same", named(ofProgram(t, prog, "walk"), "")}, Profile{"other", named(ofProgram(t, prog, "walk"), strings.Repeat("ab", 20))})
	for _, index := range []string{"accesses", "l1d_misses"} {
		if code, body, _ := get(t, url+"pprof/0/disasm?f=walk&si="+index, nil); code != 200 || !strings.Contains(body, "ret") || !strings.Contains(body, "ROUTINE ======================== walk") {
			t.Errorf("%s: %d, %.1500s", index, code, body)
		}
	}
	if code, body, _ := get(t, url+"pprof/1/disasm?f=walk", nil); code == 200 && strings.Contains(body, "ret") {
		t.Errorf("another build's instructions: %.300s", body)
	}
}

// TestPprofInBrowser: pprof's pages run where they are, behind their policy.
func TestPprofInBrowser(t *testing.T) {
	b := openBrowser(t)
	url := serve(t, testSource(t), example(t, "bad.pb.gz"))
	b.show(url, "page=overview", "overview")
	var to string
	b.eval("document.querySelector('a.outside').href", &to)
	for path, want := range map[string]string{
		"":                                "[...document.querySelectorAll('#stack-chart *')].some((e) => e.textContent === 'bad')",
		"top?si=accesses":                 "[...document.querySelectorAll('tr')].some((e) => e.textContent.includes('bad'))",
		"source?f=bad&si=l1d_misses":      "document.body.textContent.includes('bad: b by columns')",
		"flamegraph?si=observations&f=ba": "[...document.querySelectorAll('#stack-chart *')].some((e) => e.textContent === 'bad')",
	} {
		b.eval("location.href = "+strconv.Quote(to+path), nil)
		b.await("location.href === " + strconv.Quote(to+path) + " && document.readyState === 'complete' && " + want)
	}
	b.shoot("pprof")
	b.clean()
}

// ofProgram is a profile of some instructions of a program's function.
func ofProgram(t *testing.T, name, function string) *model.Profile {
	t.Helper()
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err := objfile.BuildID(f)
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	k := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == function })
	seg := slices.IndexFunc(f.Progs, func(s *elf.Prog) bool { return s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 })
	if k < 0 || seg < 0 {
		t.Fatalf("%s has no %s", name, function)
	}
	const base = 0x400000
	s := f.Progs[seg]
	m := &model.Mapping{Start: base, Limit: base + s.Memsz, Offset: s.Off, File: name, BuildID: id}
	p := renamed()
	var stacks [][]*model.Location
	for i := range 3 {
		stacks = append(stacks, []*model.Location{{Address: base + symbols[k].Value - s.Vaddr + 4*uint64(i), Mapping: m}})
	}
	for i := range 60 {
		p.Records = append(p.Records, model.Record{Kind: model.Reuse, Use: stacks[i%3], Ending: model.Ending{Reuse: stacks[(i+1)%3]}, TID: 1,
			Timing: model.Timing{Time: uint64(1000 << (i % 8)), Native: uint64(1000 << (i % 8))}, Cluster: model.Cluster{Hold: uint64(i + 1)}, Weight: model.Weight{Observations: 1, Accesses: 1000}})
	}
	return p
}
