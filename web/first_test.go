package web

// TestBeforeSamples needs Chromium.

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
)

// TestFirst: what is there before the samples is what all of it has, and a server gives it.
func TestFirst(t *testing.T) {
	for _, name := range []string{"bad.pb.gz", "words.pb.gz", "sharing.pb.gz"} {
		x := example(t, name)
		var first *Data
		d, err := newData(x.Raw, x.Name, "", Options{}, func(f *Data) { first = f })
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first, d.first()) {
			t.Errorf("%s: first %+v, then %+v", name, first, d.first())
		}
		url := serve(t, Options{}, x)
		got := func(path string) (v struct {
			Value struct{ Curve, Rows, Sizes, Survey any }
		}) {
			_, body, _ := get(t, url+path+"?profile=0&stack=", nil)
			if len(body) < 8 {
				t.Fatalf("%s: %q", path, body)
			}
			n := binary.LittleEndian.Uint32([]byte(body[4:]))
			if err := json.Unmarshal([]byte(body[8:8+n]), &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
		if first, all := got("first"), got("data"); !reflect.DeepEqual(first, all) || first.Value.Curve == nil {
			t.Errorf("%s: the server gives first %v, then %v", name, first, all)
		}
	}
}

// TestBeforeSamples: before the samples are there the curve is, with its numbers; a size that is chosen meanwhile stays chosen.
func TestBeforeSamples(t *testing.T) {
	b := openBrowser(t)
	x := example(t, "words.pb.gz")
	url := serve(t, Options{}, x)
	var mu sync.Mutex
	var held []fetch.RequestID
	chromedp.ListenTarget(b.ctx, func(e any) {
		if e, ok := e.(*fetch.EventRequestPaused); ok {
			mu.Lock()
			defer mu.Unlock()
			held = append(held, e.RequestID)
		}
	})
	b.run(fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: "*/data?*"}}), chromedp.Navigate(url))
	b.await("document.querySelector('main[aria-busy] .curve canvas') && performance.getEntriesByName('rdx-shown').length")
	b.accessible("first picture")
	b.shoot("first")
	before := b.text("[data-test=size]")
	b.click(".sizebar .levels button[aria-pressed=false]")
	b.await(fmt.Sprintf("document.querySelector('[data-test=size]').textContent !== %q", before))
	size, ratio := b.text("[data-test=size]"), b.text("[data-test=ratio]")
	if page := b.text("main[data-page]"); page != "" {
		t.Errorf("before there are samples the page has %.200q", page)
	}
	mu.Lock()
	all := held
	mu.Unlock()
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		for _, id := range all {
			if err := fetch.ContinueRequest(id).Do(ctx); err != nil {
				return err
			}
		}
		return fetch.Disable().Do(ctx)
	}))
	b.await("document.querySelector('main[data-page=overview] .toplist li') && performance.getEntriesByName('rdx-samples').length")
	if at, got := b.text("[data-test=size]"), b.text("[data-test=ratio]"); at != size || got != ratio || !strings.Contains(got, "%") {
		t.Errorf("at %s it was %q, and then at %s %q", size, ratio, at, got)
	}
	b.clean()
}
