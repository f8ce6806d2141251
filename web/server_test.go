package web

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// get asks as a browser would.
func get(t *testing.T, url string, change func(r *http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b), a.Header
}

func TestWhoMayAsk(t *testing.T) {
	url := serve(t, Options{}, example(t, "bad.pb.gz"))
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	for _, c := range []struct {
		what, url string
		change    func(r *http.Request)
		want      int
	}{
		{"the URL", url, nil, 200},
		{"its bundle", url + "app.js", nil, 200},
		{"its data", url + "data?profile=0", nil, 200},
		{"no token", "http://" + host + "/", nil, 404},
		{"data without a token", "http://" + host + "/data?profile=0", nil, 404},
		{"another token", "http://" + host + "/AAAA/list", nil, 404},
		{"a name that was bound anew", url + "list", func(r *http.Request) { r.Host = "evil.example" }, 403},
		{"a name with our port", url + "list", func(r *http.Request) { r.Host = "evil.example:" + host[strings.LastIndex(host, ":")+1:] }, 403},
		{"another site", url + "list", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		{"another site's script", url + "list", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"a post", url + "list", func(r *http.Request) { r.Method = "POST" }, 405},
		{"a folder", url + "static/", nil, 404},
		{"a way up", url + "../../etc/passwd", nil, 404},
		{"a profile that is not there", url + "data?profile=7", nil, 400},
		{"a stack that is none", url + "data?profile=0&stack=x", nil, 400},
		{"no number", url + "code?profile=0&site=x", nil, 400},
		{"pprof's configuration", url + "pprof/0/saveconfig?config=x", nil, 403},
		{"pprof of a profile that is not there", url + "pprof/9/", nil, 404},
	} {
		code, body, head := get(t, c.url, c.change)
		if code != c.want {
			t.Errorf("%s: %d, want %d: %.100s", c.what, code, c.want, body)
		}
		if p := head.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") && !strings.Contains(c.url, "/pprof/") {
			t.Errorf("%s: content security policy %q", c.what, p)
		}
	}
}

// TestVersions: what belongs to the data of profiles that were exchanged since is not taken from newer ones.
func TestVersions(t *testing.T) {
	s := NewServer([]Profile{example(t, "bad.pb.gz")}, Options{})
	ask := func(path string) string {
		w := httptest.NewRecorder()
		s.hosts = []string{"example.com"}
		s.ServeHTTP(w, httptest.NewRequest("GET", "/"+s.token+"/"+path, nil))
		return w.Body.String()
	}
	if b := ask("rest?profile=0&stack=&version=0"); !strings.HasPrefix(b, packedMagic) {
		t.Errorf("the rest of the first profile: %.100q", b)
	}
	s.Set([]Profile{example(t, "words.pb.gz")}, true)
	if b := ask("rest?profile=0&stack=&version=0"); !strings.Contains(b, "newer") {
		t.Errorf("the rest of a profile that was exchanged: %.100q", b)
	}
	if b := ask("data?profile=0&stack="); !strings.HasPrefix(b, packedMagic) || !strings.Contains(b, `"version":1`) || !strings.Contains(b, `"file":"words.pb.gz"`) {
		t.Errorf("the data of the next profile: %.100q", b)
	}
}

// TestLongHeader: what a client sends is bounded.
func TestLongHeader(t *testing.T) {
	url := serve(t, Options{}, example(t, "bad.pb.gz"))
	code, _, _ := get(t, url, func(r *http.Request) { r.Header.Set("X", strings.Repeat("x", 1<<20)) })
	if code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a megabyte of header: %d", code)
	}
}

// renamed is a small profile whose source lines are in the files named.
func renamed(files ...string) *model.Profile {
	p := &model.Profile{Source: "cpu-clock", Period: 1000, Block: 64, BinsPerOctave: 8, Duration: 1e9,
		Clock:  model.Clock{Name: "cpu-time", Unit: "nanoseconds", Rate: 1, RateSource: "flag"},
		Caches: []model.Cache{{Level: "L1d", Size: 32 << 10, Ways: 8, Line: 64}}}
	for i, f := range files {
		l := &model.Location{Address: uint64(0x1000 + i*16), Mapping: &model.Mapping{Start: 0x1000, Limit: 0x9000, File: f},
			Lines: []model.Line{{Function: "f", SystemName: "f", File: f, Line: 1}}}
		for k := range 40 {
			p.Records = append(p.Records, model.Record{Kind: model.Reuse, Use: []*model.Location{l}, Ending: model.Ending{Reuse: []*model.Location{l}}, TID: 1,
				Timing: model.Timing{Time: uint64(100 << (k % 10)), Native: uint64(100 << (k % 10))}, Cluster: model.Cluster{Hold: uint64(k + 1)}, Weight: model.Weight{Observations: 1, Accesses: 1000}})
		}
	}
	return p
}

// TestSourceBelowRoots: no file is read but what the profile names below a root; links do not lead out.
func TestSourceBelowRoots(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "src", "a.c"), "int inside;\n")
	write(filepath.Join(dir, "unnamed.c"), "int unnamed;\n")
	write(filepath.Join(outside, "secret.c"), "int secret;\n")
	if err := os.Symlink(filepath.Join(outside, "secret.c"), filepath.Join(dir, "link.c")); err != nil {
		t.Fatal(err)
	}
	source, err := NewSource([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	named := []string{filepath.Join(dir, "src", "a.c"), "/build/x/src/a.c", filepath.Join(outside, "secret.c"), filepath.Join(dir, "link.c"), dir + "/src/../../" + filepath.Base(outside) + "/secret.c", "/etc/passwd", "../../../../etc/passwd", "/dev/zero", dir}
	p := renamed(named...)
	url := serve(t, Options{Source: source}, Profile{"x", p})
	for _, f := range append(named, filepath.Join(dir, "unnamed.c")) {
		code, body, _ := get(t, url+"source", func(r *http.Request) {
			q := r.URL.Query()
			q.Set("profile", "0")
			q.Set("file", f)
			r.URL.RawQuery = q.Encode()
		})
		if want := strings.HasSuffix(f, "src/a.c"); (code == 200) != want || strings.Contains(body, "inside") != want {
			t.Errorf("source of %s: %d %.80s", f, code, body)
		}
		if strings.Contains(body, "secret;") || strings.Contains(body, "root:") || strings.Contains(body, "unnamed;") {
			t.Errorf("source of %s: %s", f, body)
		}
	}
	// pprof's own pages open no other files, either.
	for _, page := range []string{"source?f=f", "flamegraph", "top", "peek?f=f", "disasm?f=f"} {
		_, body, head := get(t, url+"pprof/0/"+page, nil)
		if strings.Contains(body, "secret;") || strings.Contains(body, "root:x") {
			t.Errorf("pprof's %s has what is in a file that it may not read", page)
		}
		if !strings.HasPrefix(head.Get("Content-Security-Policy"), "sandbox ") {
			t.Errorf("pprof's %s is not in a sandbox", page)
		}
	}
	var file bytes.Buffer
	if err := WriteFile(&file, []Profile{{"x", p}}, Options{Source: source}); err != nil {
		t.Fatal(err)
	}
}

// TestPprofPages: pprof's pages are there, with source that may be read.
func TestPprofPages(t *testing.T) {
	url := serve(t, testSource(t), example(t, "bad.pb.gz"), example(t, "words.pb.gz"))
	for _, c := range [][2]string{{"0/", "bad"}, {"0/top", "bad"}, {"0/source?f=bad", "// bad: b by columns"}, {"1/flamegraph?si=l1d_misses", "count"}} {
		code, body, _ := get(t, url+"pprof/"+c[0], nil)
		if code != 200 || !strings.Contains(body, c[1]) {
			t.Errorf("pprof/%s: %d, without %q", c[0], code, c[1])
		}
	}
}

// FuzzPages: whatever is read as a profile makes pages, or gives an error.
func FuzzPages(f *testing.F) {
	for _, n := range []string{"bad.pb.gz", "words.pb.gz"} {
		b, err := os.ReadFile(filepath.Join("testdata", n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	var b bytes.Buffer
	if err := pprofout.Write(&b, renamed("<script>", "\x00", "a/../b")); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	source, err := NewSource([]string{"testdata"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := pprofout.Read(bytes.NewReader(in))
		if err != nil || len(p.Records) > 10000 {
			return
		}
		var out bytes.Buffer
		if err := WriteFile(&out, []Profile{{"fuzz", p}}, Options{Source: source}); err != nil && out.Len() > 0 {
			t.Errorf("half a file was written: %v", err)
		}
	})
}
