package web

// Needs Chromium.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// TestMembers: data objects are shown with the members of their structs, and the variables of stacks, that the profile tells; each
// has rdx top --by data's numbers. A chosen member filters all pages.
func TestMembers(t *testing.T) {
	x := example(t, "list.pb.gz")
	p, err := report.Ready(x.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t)
	url := serve(t, testSource(t), x)
	for _, c := range p.Caches {
		b.show(url, fmt.Sprintf("page=data&size=%d", c.Size), "data")
		b.await(fmt.Sprintf("document.querySelector('[data-test=size]').textContent === %q", report.Bytes(float64(c.Size))+" ("+c.Level+")"))
		b.await("document.querySelector('table.objects .part')")
		var rows [][]string // class, then share, misses, per access, seen, accesses, miss ratio, data
		b.eval("[...document.querySelectorAll('table.objects tbody tr')].map((r) => [r.className.split(' ')[0], ...[...r.querySelectorAll('td')].map((c) => c.textContent.trim())])", &rows)
		m, err := report.FindMetric(p, strings.ToLower(c.Level))
		if err != nil {
			t.Fatal(err)
		}
		shown, whole, parts := map[string]string{}, "", 0
		for _, r := range rows {
			said := strings.Join([]string{r[1], r[2], r[5]}, " ")
			switch r[0] {
			case "whole":
				whole = r[7]
				shown[whole] = said
			case "part":
				parts++
				shown[whole+": "+r[7]] = said
			case "rest":
				shown[whole] = said // rdx top has no sum of the parts
			}
		}
		list := report.TopData(p, m, 1000)
		for _, d := range list.Objects {
			if want := strings.Join([]string{report.Percent(d.Share, 1), report.Amount(d.Value), report.Amount(d.Accesses)}, " "); shown[d.Data] != want && d.Accesses > 0 {
				t.Errorf("%s: rdx top prints %q of %s, the page %q", c.Level, want, d.Data, shown[d.Data])
			}
		}
		if parts < 2 || shown["nodes: node.next, offset 0 of 48"] == "" {
			t.Errorf("%d members: %q", parts, rows)
		}
	}
	b.accessible("members")
	b.shoot("members")
	b.eval("[...document.querySelectorAll('table.objects button')].find((e) => e.textContent.startsWith('node.key')).click()", nil)
	b.await("document.querySelector('.filters').textContent.includes('nodes: node.key, offset 8 of 48')")
	key := 0.0
	for i := range p.Records {
		if r := &p.Records[i]; shown(r) && strings.HasPrefix(r.Member(), "node.key") {
			key += r.Accesses
		}
	}
	b.eval("location.hash += '&weight=accesses'", nil)
	b.click(".tabs a:nth-of-type(2)")
	b.await(fmt.Sprintf("document.querySelector('[data-test=flame-total]')?.textContent === %q", report.Amount(key)))
	b.clean()
}

// TestMemberSquares: the band of a whole is that of all its parts' samples together.
func TestMemberSquares(t *testing.T) {
	x := example(t, "list.pb.gz")
	p, err := report.Ready(x.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(x.Raw, "list", "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	nodes := -1
	for i, w := range d.Objects.Whole {
		if d.Strings[d.Objects.Name[i]] == "nodes" && int(w) == i {
			nodes = i
		}
	}
	if nodes < 0 {
		t.Fatal("no nodes")
	}
	sq := make([]float64, len(d.Sizes))
	for k, c := range d.Caches {
		accesses, sum := 0.0, 0.0
		var records []*model.Record
		for i := range p.Records {
			r := &p.Records[i]
			if r.Kind != model.Lost {
				accesses += r.Accesses
			}
			if shown(r) && r.Data != nil && r.Data.Name == "nodes" {
				records = append(records, r)
				sum += r.Misses[k]
			}
		}
		want := p.PerAccess(records, func(r *model.Record) float64 { return r.Misses[k] }, accesses, p.Holds(), 0.05)
		unit := d.rest().Wholes.values(nodes, sq)[c.At] / sum
		low, high := model.CountBand(sum / unit)
		if low = low * unit / accesses; !(sum > 0) || low < want.Low*0.999 || low > want.Low*1.001 || high*unit/accesses > want.High*1.001 {
			t.Errorf("%s: %g to %g, PerAccess has %g to %g", c.Level, low, high*unit/accesses, want.Low, want.High)
		}
	}
}

// TestTouched: how an instruction touches memory stands at the pair, and how an object is touched at the object, as rdx why says it.
func TestTouched(t *testing.T) {
	x := example(t, "list.pb.gz")
	b := openBrowser(t)
	url := serve(t, testSource(t), x)
	b.show(url, "page=pairs&q=find&weight=accesses", "pairs")
	b.click("table.pairs tbody tr")
	b.await("document.querySelector('.touched')")
	chase := 0
	for i := range x.Raw.Touches {
		if x.Raw.Touches[i].Manner == model.MannerChase {
			chase++
		}
	}
	if chase == 0 {
		t.Fatal("the profile has no pointers that are followed: nothing is tested")
	}
	if s := b.text(".touched"); !strings.Contains(s, "load of nodes: pointer chase") {
		t.Errorf("the pair says %q", s)
	}
	b.accessible("touched")
	b.shoot("touched")
	b.show(url, "page=data", "data")
	b.await("document.querySelector('table.objects .small')?.textContent.includes('of 64 bytes of a fetched line are used')")
	d, err := New(x.Raw, "list", "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range d.Touched {
		var all []*model.Touch
		for i := range x.Raw.Touches {
			u := &x.Raw.Touches[i]
			q := report.PlaceOf(u.Use)
			if g.Place < 0 && u.Data != nil && u.Data.Name == g.Data || g.Place >= 0 && u.Op.String() == g.Op && d.Strings[d.PlaceTable.Function[g.Place]] == q.Function && int(d.PlaceTable.Line[g.Place]) == q.Line {
				all = append(all, u)
			}
		}
		class, step, kept := model.StrideOf(all)
		used, fetches := 0.0, 0.0
		for _, u := range all {
			used, fetches = used+u.Used, fetches+u.Fetches
		}
		if g.Stride != class.String() || g.Step != step || g.Kept != kept || g.Fetches != fetches || fetches > 0 && g.Used != used/fetches {
			t.Errorf("%+v, of %d touches: %s %d %g, %g bytes of %g", g, len(all), class, step, kept, used, fetches)
		}
	}
	b.clean()
}

// TestChooseLine: a chosen line of source filters contexts and pairs; a chosen frame what the source's gutter counts, and the file
// that is shown.
func TestChooseLine(t *testing.T) {
	x := example(t, "list.pb.gz")
	p, err := report.Ready(x.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	at := map[int]float64{} // accesses of pairs with an end at a line
	all := 0.0
	for i := range p.Records {
		r := &p.Records[i]
		if !shown(r) {
			continue
		}
		all += r.Accesses
		use := report.PlaceOf(r.Use)
		at[use.Line] += r.Accesses
		if q := report.PlaceOf(r.Reuse); r.Kind == model.Reuse && q.Line != use.Line {
			at[q.Line] += r.Accesses
		}
	}
	b := openBrowser(t)
	url := serve(t, testSource(t), x)
	b.show(url, "page=code&weight=accesses", "code")
	b.await("document.querySelector('.lines .no button')")
	var lines []int
	b.eval("[...document.querySelectorAll('.lines .no button')].map((e) => Number(e.textContent))", &lines)
	if len(lines) < 2 {
		t.Fatalf("lines %v can be chosen", lines)
	}
	for _, n := range lines[:2] {
		b.click(fmt.Sprintf("tr[data-line='%d'] .no button", n))
		b.await(fmt.Sprintf("document.querySelector('.filters')?.textContent.includes('list.c:%d')", n))
		b.await(fmt.Sprintf("document.querySelector('[data-test=flame-total]').textContent === %q", report.Amount(at[n])+" of the chosen line"))
		b.await(fmt.Sprintf("((r) => r.length > 0 && r.every((e) => e.textContent.includes('list.c:%d')))([...document.querySelectorAll('table.pairs tbody tr')])", n))
		var left int
		b.eval("document.querySelectorAll('.lines .no button').length", &left)
		if left != len(lines) {
			t.Errorf("with line %d chosen %d lines can be chosen, without %d", n, left, len(lines))
		}
	}
	b.accessible("line")
	b.shoot("line")
	b.click(".filters button")
	b.await(fmt.Sprintf("document.querySelector('[data-test=flame-total]').textContent === %q", report.Amount(all)))
	b.show(url, "page=code&weight=accesses&view=tree", "code")
	b.eval("[...document.querySelectorAll('[role=treeitem]')].find((e) => e.querySelector('.name').textContent.endsWith('fill'))?.click()", nil)
	b.eval("[...document.querySelectorAll('[role=treeitem]')].find((e) => e.querySelector('.name').textContent.endsWith('find'))?.click()", nil)
	b.await("location.hash.includes('node=')")
	b.await("[...document.querySelectorAll('.lines .hot')].length > 0 && [...document.querySelectorAll('.lines .hot')].every((e) => e.dataset.line >= 22 && e.dataset.line <= 34)")
	b.clean()
}
