package fleet

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/fleet/backend"
	"github.com/rdx-profiler/rdx/model"
)

// startServers needs Pyroscope, which make pyroscope builds.
func startServers(t *testing.T, nodes int, o backend.Options) []*backend.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	all, err := backend.Start(ctx, t.TempDir(), nodes, o)
	if errors.Is(err, backend.ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Stop(all) })
	return all
}

func client(t *testing.T, url string) *Client {
	t.Helper()
	c, err := NewClient(Access{Server: url}, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// series of a window, as an agent pushes them.
func series(t *testing.T, w Window, labels ...Label) []Series {
	t.Helper()
	raw, err := w.Pack()
	if err != nil {
		t.Fatal(err)
	}
	people, err := w.People()
	if err != nil {
		t.Fatal(err)
	}
	labels = append(labels, Label{ConfigLabel, Config(w.Profile)})
	named := func(name string) []Label { return append([]Label{{"__name__", name}}, labels...) }
	return []Series{{named(PeopleName), people}, {named(RawName), raw}}
}

// What the server merges is what a local merge of the same packs is, sums and curve.
func TestServerMergesPacks(t *testing.T) { // needs Pyroscope
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	s := startServers(t, 1, backend.Options{})[0]
	c := client(t, s.URL)
	start := time.Now().Add(-20 * time.Minute).Truncate(time.Second)
	var local [][]byte
	for i, m := range someWindows {
		w := Window{Profile: m.Profile(), Weight: []float64{1, 3.5, 20}[i], Drawn: i == 2, Time: start.Add(time.Duration(i) * time.Minute)}
		labels := []Label{{"service_name", "checkout"}, {"host", []string{"a", "b", "a"}[i]}, {"version", []string{"41", "42", "42"}[i]}}
		for range 2 { // what is sent again is not counted twice
			if err := c.Push(t.Context(), series(t, w, labels...)); err != nil {
				t.Fatal(err)
			}
		}
		b, err := w.Pack()
		if err != nil {
			t.Fatal(err)
		}
		local = append(local, b)
	}
	other := Window{Profile: backend.Made{Name: "cart", Share: .5, Lines: 1 << 16, Seed: 9, N: 300}.Profile(), Weight: 1, Time: start}
	if err := c.Push(t.Context(), series(t, other, Label{"service_name", "cart"}, Label{"host", "a"})); err != nil {
		t.Fatal(err)
	}
	q := Query{Labels: []string{"service_name=checkout"}, From: start.Add(-time.Minute), To: time.Now()}
	got, err := c.Profile(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Unpack(local, false)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, want)

	// A range too long for one query, and asked for by version.
	q.From = time.Now().Add(-60 * time.Hour)
	if got, err = c.Profile(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	same(t, got, want)
	versions, err := c.Values(t.Context(), q, "version")
	if err != nil || len(versions) != 2 || versions[0] != "41" || versions[1] != "42" {
		t.Fatalf("versions %q: %v", versions, err)
	}
	if got, err = c.Profile(t.Context(), q.With("version", "41")); err != nil {
		t.Fatal(err)
	}
	if want, err = Unpack(local[:1], false); err != nil {
		t.Fatal(err)
	}
	same(t, got, want)
	for _, r := range got.Records {
		for _, l := range r.Use {
			if l.Mapping == nil || l.Mapping.BuildID == "" {
				t.Fatalf("no build ID came back: %+v", l)
			}
		}
	}
	_, err = c.Profile(t.Context(), q.With("version", "43"))
	if _, ok := errors.AsType[*ErrEmpty](err); !ok {
		t.Errorf("nothing to merge: %v", err)
	}
}

// A range that is too long for a server is asked for in parts, which it takes, each moment in one of them; another error
// ends it.
func TestSplit(t *testing.T) {
	to := time.Unix(1.8e9, 0)
	for _, limit := range []time.Duration{48 * time.Hour, 10 * time.Hour, 20 * time.Minute} {
		from := to.Add(-50 * time.Hour)
		next, parts := from, 0
		err := split(from, to, func(a, b time.Time) error {
			if b.Sub(a) > limit {
				return &StatusError{Status: http.StatusBadRequest, Message: "the query time range exceeds the limit"}
			}
			if !a.Equal(next) {
				t.Errorf("limit %v: a part from %v, want %v", limit, a, next)
			}
			next = b.Add(time.Millisecond)
			parts++
			return nil
		})
		if err != nil || !next.Equal(to.Add(time.Millisecond)) || parts < 3 {
			t.Errorf("limit %v: %d parts up to %v: %v", limit, parts, next, err)
		}
	}
	asked := 0
	err := split(to.Add(-50*time.Hour), to, func(_, _ time.Time) error {
		asked++
		return &StatusError{Status: http.StatusBadRequest, Message: "the query time range exceeds the limit"}
	})
	if err == nil || asked > 12 {
		t.Errorf("a server that takes nothing is asked %d times: %v", asked, err)
	}
	if err := split(to.Add(-time.Hour), to, func(_, _ time.Time) error { return errors.New("gone") }); err == nil {
		t.Error("an error is passed over")
	}
}

// same checks sums exactly, and curves as far as sums decide them.
func same(t *testing.T, got, want *model.Profile) {
	t.Helper()
	sums := func(p *model.Profile) (s [3]float64) {
		for i := range p.Records {
			r := &p.Records[i]
			s[0] += float64(r.Observations)
			s[1] += r.Accesses
			s[2] += r.Squares
		}
		return s
	}
	if g, w := sums(got), sums(want); g != w {
		t.Errorf("observations, accesses and squares %v, want %v", g, w)
	}
	if len(got.Records) != len(want.Records) || got.Duration != want.Duration || got.CountOf(model.LostBecause.Of(model.SignalsBlocked)) != want.CountOf(model.LostBecause.Of(model.SignalsBlocked)) {
		t.Errorf("%d records in %v, want %d in %v", len(got.Records), got.Duration, len(want.Records), want.Duration)
	}
	a, b := curve(t, got), curve(t, want)
	for i := range a.Points {
		if x, y := a.Points[i], b.Points[i]; math.Abs(x.MissRatio-y.MissRatio) > 1e-9 || math.Abs(x.Low-y.Low) > 1e-9 || math.Abs(x.High-y.High) > 1e-9 {
			t.Errorf("%+v, want %+v", x, y)
		}
	}
}

// What a server refuses, it says in words: a window of a clock that is wrong by hours.
func TestServerRefuses(t *testing.T) { // needs Pyroscope
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	c := client(t, startServers(t, 1, backend.Options{})[0].URL)
	p := someWindows[0].Profile()
	for _, by := range []time.Duration{-2 * time.Hour, time.Hour} {
		err := c.Push(t.Context(), series(t, Window{Profile: p, Weight: 1, Time: time.Now().Add(by)}, Label{"service_name", "x"}))
		e, ok := errors.AsType[*StatusError](err)
		if !ok || e.Status != http.StatusBadRequest || e.Foreign || !strings.Contains(e.Message, "ingestion window") {
			t.Errorf("%v off: %v", by, err)
		}
	}
	if err := c.Push(t.Context(), series(t, Window{Profile: p, Weight: 1, Time: time.Now()})); err != nil {
		t.Errorf("without a service: %v", err)
	}
	err := c.PushRequest(t.Context(), []byte("garbage"))
	if e, ok := errors.AsType[*StatusError](err); !ok || e.Status != http.StatusBadRequest {
		t.Errorf("garbage: %v", err)
	}
	_, err = c.Profile(t.Context(), Query{Labels: []string{"a=~("}, From: time.Now().Add(-time.Hour), To: time.Now()})
	if e, ok := errors.AsType[*StatusError](err); !ok || e.Status/100 != 4 && e.Status/100 != 5 {
		t.Errorf("a bad expression: %v", err)
	}
}
