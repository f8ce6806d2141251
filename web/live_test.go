package web

// Needs Chromium.

import (
	"strconv"
	"testing"
)

// TestLive: pages that are open fill while profiles come in, what is chosen stays chosen, and the end is told.
func TestLive(t *testing.T) {
	s := NewServer(nil, testSource(t))
	s.Set(nil, true)
	url := start(t, s)
	b := openBrowser(t)
	b.eval("location.href = "+strconv.Quote(url), nil)
	b.await("document.body?.textContent.includes('The first samples are being taken')")
	x := example(t, "words.pb.gz")
	part := *x.Raw
	part.Records = x.Raw.Records[:2*len(x.Raw.Records)/3]
	s.Set([]Profile{{"live.pb.gz", &part}}, true)
	b.await("document.querySelector('.live') && document.querySelector('.curve canvas')")
	b.show(url, "page=pairs&weight=accesses", "pairs")
	b.click("table.pairs tbody tr")
	b.await("document.querySelector('tr.chosen')")
	chosen := b.text("tr.chosen td:nth-last-child(2)") + b.text("tr.chosen td:last-child")
	seen := b.text("table.pairs caption")
	s.Set([]Profile{{"live.pb.gz", x.Raw}}, true)
	b.await("document.querySelector('table.pairs caption').textContent !== " + strconv.Quote(seen))
	b.await("document.querySelector('tr.chosen')")
	if got := b.text("tr.chosen td:nth-last-child(2)") + b.text("tr.chosen td:last-child"); got != chosen {
		t.Errorf("%q was chosen, then %q", chosen, got)
	}
	s.Set([]Profile{{"live.pb.gz", x.Raw}}, false)
	b.await("!document.querySelector('.live') && document.querySelector('tr.chosen')")
	b.clean()
}
