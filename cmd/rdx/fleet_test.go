package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/fleet"
	"github.com/rdx-profiler/rdx/fleet/backend"
	"github.com/rdx-profiler/rdx/report"
)

// fleetOf starts Pyroscope and pushes windows of three services from two hosts: cart has
// another version of one share more.
func fleetOf(t *testing.T) (url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := backend.Start(ctx, t.TempDir(), 1, backend.Options{})
	if errors.Is(err, backend.ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Stop(s) })
	c, err := fleet.NewClient(fleet.Access{Server: s[0].URL}, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(-30 * time.Minute)
	seed := uint64(0)
	for minute := range 8 {
		for _, host := range []string{"a", "b"} {
			for _, m := range services {
				seed++
				m.made.Seed = seed
				p := m.made.Profile()
				w := fleet.Window{Profile: p, Weight: float64(1 + seed%4), Time: start.Add(time.Duration(minute) * time.Minute)}
				people, err := w.People()
				if err != nil {
					t.Fatal(err)
				}
				raw, err := w.Pack()
				if err != nil {
					t.Fatal(err)
				}
				labels := func(name string) []fleet.Label {
					return []fleet.Label{{Name: "__name__", Value: name}, {Name: "service_name", Value: m.made.Name}, {Name: "version", Value: m.version},
						{Name: "host", Value: host}, {Name: fleet.ConfigLabel, Value: fleet.Config(p)}}
				}
				if err := c.Push(ctx, []fleet.Series{{Labels: labels("rdx"), Profile: people}, {Labels: labels("rdx_raw"), Profile: raw}}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return s[0].URL
}

var services = []struct {
	made    backend.Made
	version string
}{
	{backend.Made{Name: "checkout", Share: .2, Lines: 1 << 15, N: 500}, "41"},
	{backend.Made{Name: "cart", Share: .1, Lines: 1 << 15, N: 500}, "41"},
	{backend.Made{Name: "cart", Share: .3, Lines: 1 << 15, N: 500}, "42"},
	{backend.Made{Name: "search", Share: .05, Lines: 1 << 12, N: 500}, "41"},
	{backend.Made{Name: "search", Share: .05, Lines: 1 << 12, N: 500}, "42"},
}

// leavesOut says whether a value lies outside of a band of twice the width. What is put together is drawn by the time at
// which the windows are made, so that of bands of 95 % one in twenty does not hold the truth, and of such wide ones one in ten thousand.
func leavesOut(low, value, high, want float64) bool {
	return want < value-2*(value-low) || want > value+2*(high-value)
}

func TestFleet(t *testing.T) { // needs Pyroscope
	server := "--server=" + fleetOf(t)
	ask := func(args ...string) []byte {
		t.Helper()
		out, err := rdx(t, append([]string{"fleet", args[0], server}, args[1:]...)...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return []byte(out)
	}
	var curves report.MissRatios
	if err := json.Unmarshal(ask("mrc", "--by=version", "--service=cart", "--sizes=1m", "--format=json"), &curves); err != nil {
		t.Fatal(err)
	}
	const width = .5 // of holds by time, however many, ratios are known within a quarter either way
	for i, want := range []float64{.1, .3} {
		if q := curves.Curves[i].Points[0]; leavesOut(q.Low, *q.MissRatio, q.High, want) || q.High-q.Low > width*want {
			t.Errorf("%s: %+v, want %v", curves.Curves[i].File, q, want)
		}
	}

	var d report.DiffReport
	if err := json.Unmarshal(ask("diff", "--service=cart", "version=41", "version=42", "--format=json", "--sizes=1m", "--by=l2"), &d); err != nil {
		t.Fatal(err)
	}
	if c := d.Caches[0].Change; !d.Caches[0].Significant || leavesOut(c.Low, c.Value, c.High, .2) {
		t.Errorf("cart has changed by .2: %+v", d.Caches[0])
	}
	if len(d.Pairs) == 0 || !d.Pairs[0].Significant || !strings.Contains(d.Pairs[0].Use, "cart_walk") {
		t.Errorf("the pair that has changed: %+v", d.Pairs)
	}
	if err := json.Unmarshal(ask("diff", "--service=search", "version=41", "version=42", "--format=json", "--sizes=64k,1m"), &d); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Caches {
		if c := c.Change; leavesOut(c.Low, c.Value, c.High, 0) {
			t.Errorf("search has not changed: %+v", c)
		}
	}
	for _, p := range d.Pairs {
		if p := p.Change; leavesOut(p.Low, p.Value, p.High, 0) {
			t.Errorf("search has not changed: %+v", p)
		}
	}

	var top report.FleetTop
	if err := json.Unmarshal(ask("top", "--service=checkout", "--by=l2", "--format=json"), &top); err != nil {
		t.Fatal(err)
	}
	if p := top.Pairs[0]; top.Hosts != 2 || p.Use.Function != "checkout_walk" || leavesOut(p.Share.Low, p.Share.Value, p.Share.High, .2) || top.ByPlace[0].Place.Function != "checkout_walk" {
		t.Errorf("top: %d hosts, %+v", top.Hosts, p)
	}
	var labels report.FleetLabels
	if err := json.Unmarshal(ask("top", "--by-label=service_name", "--by=l1d", "--format=json"), &labels); err != nil {
		t.Fatal(err)
	}
	if len(labels.Values) != 3 || labels.Values[0].Value != "cart" || labels.Values[2].Value != "search" {
		t.Errorf("services: %+v", labels.Values)
	}
	for _, format := range []string{"text", "csv"} {
		ask("top", "--service=checkout", "--format="+format)
		ask("top", "--by-label=host", "--format="+format)
	}
	fleetFiles(t, ask, curves)
}

// What get writes is read by the other commands, and says the same.
func fleetFiles(t *testing.T, ask func(args ...string) []byte, curves report.MissRatios) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cart.pb.gz")
	ask("get", "--service=cart", "--label=version=42", "-o", path)
	out, err := rdx(t, "mrc", "--sizes=1m", "--format=json", path)
	if err != nil {
		t.Fatal(err)
	}
	var local report.MissRatios
	if err := json.Unmarshal([]byte(out), &local); err != nil {
		t.Fatal(err)
	}
	if a, b := local.Curves[0].Points[0], curves.Curves[1].Points[0]; math.Abs(a.High-b.High) > .003 || math.Abs(a.Low-b.Low) > .003 {
		t.Errorf("the file says %+v, the fleet %+v", a, b)
	}
	if _, err := rdx(t, "top", path); err != nil {
		t.Error(err)
	}
	ask("get", "--service=cart", "--every=5m", "-o", path)
	files, err := filepath.Glob(strings.TrimSuffix(path, ".pb.gz") + "-*.pb.gz")
	if err != nil || len(files) < 2 || len(files) > 3 {
		t.Fatalf("files %q: %v", files, err)
	}
	if _, err := rdx(t, append([]string{"phases"}, files...)...); err != nil {
		t.Error(err)
	}
}

func TestFleetErrors(t *testing.T) {
	answer := func(status int, contentType, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for _, c := range []struct{ url, want string }{
		{"", "no --server"},
		{"ftp://x", "want a URL"},
		{"http://user:secret@127.0.0.1:1", "no password in the URL"},
		{"http://127.0.0.1:1", "connection refused"},
		{answer(200, "text/html", "<html>hello"), "no Pyroscope server"},
		{answer(404, "text/plain", "404 page not found"), "no Pyroscope server"},
		{answer(302, "text/html", "<a href=/login>"), "no Pyroscope server"},
		{answer(401, "application/json", `{"code":"unauthenticated","message":"no org id"}`), "another token"},
		{answer(403, "text/plain", "forbidden"), "another token"},
		{answer(500, "application/json", `{"code":"internal","message":"broken`+"\x1b[31m"+`"}`), "HTTP status 500"},
		{answer(200, "application/proto", "\xff\xff\xff garbage"), "read the answer"},
		{answer(200, "application/proto", ""), "no profiles of rdx"},
	} {
		_, err := rdx(t, "fleet", "mrc", "--server="+c.url, "--service=x")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\x1b") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", c.url, err, c.want)
		}
	}
	for _, args := range [][]string{{"mrc", "--label=oops"}, {"diff", "version=1"}, {"diff", "a", "b"}, {"mrc", "--from=yesterday"}, {"mrc", "--since=-1h"}, {"nope"}} {
		if _, err := rdx(t, append([]string{"fleet", args[0], "--server=http://127.0.0.1:1"}, args[1:]...)...); exitCode(err) != exitUsage {
			t.Errorf("%q: %v, want a usage error", args, err)
		}
	}
}

// A token is read from its file, and is in no error.
func TestFleetToken(t *testing.T) {
	const token = "s3cr3t-token"
	got := make(chan http.Header, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := rdx(t, "fleet", "top", "--server="+s.URL, "--token-file="+path, "--tenant=blue")
	if h := <-got; h.Get("Authorization") != "Bearer "+token || h.Get("X-Scope-Orgid") != "blue" {
		t.Errorf("headers %v", h)
	}
	if err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x\n"), 3), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rdx(t, "fleet", "top", "--server="+s.URL, "--token-file="+path); err == nil || !strings.Contains(err.Error(), "one line") {
		t.Errorf("a token of several lines: %v", err)
	}
}

// TestFleetWeb: pages of what a fleet's agents have sent, of a service in each of its versions.
func TestFleetWeb(t *testing.T) { // needs Pyroscope
	url := fleetOf(t)
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	root := newRootCmd()
	root.SetOut(in)
	root.SetErr(in)
	root.SetArgs([]string{"web", "--server", url, "--service", "cart", "--since", "1h", "--by", "version"})
	done := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		in.Close()
		done <- err
	}()
	pages, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(pages, "http://127.0.0.1:") {
		t.Fatalf("rdx web --server says %q: %v", pages, err)
	}
	a, err := http.Get(strings.TrimSpace(pages) + "list")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var l struct{ Profiles []struct{ Name string } }
	if err := json.NewDecoder(a.Body).Decode(&l); err != nil || len(l.Profiles) != 2 || l.Profiles[0].Name != "version=41" || l.Profiles[1].Name != "version=42" {
		t.Errorf("the list: %+v, %v", l, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
