// Needs: gcc; TestAttachWeb root. What rdx web, rdx report and rdx attach --web do for a user without a browser; package web has the pages.
package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rdx-profiler/rdx/pprofout"
)

// recorded are profiles of the pages' own tests.
func recorded(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "web", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// told starts rdx, and passes on what it writes to standard error by line.
func told(t *testing.T, args ...string) (*process, <-chan string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(rdxPath(t), args...)
	cmd.Stderr = w
	p := startCmd(t, cmd)
	w.Close()
	lines := make(chan string, 4096)
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
		r.Close()
		close(lines)
	}()
	return p, lines
}

// webList is what pages ask for first.
type webList struct {
	Version  int
	Live     bool
	Profiles []struct{ Name, Command string }
}

func getPage(t *testing.T, url string) string {
	t.Helper()
	a, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %.200s", url, a.Status, err, b)
	}
	return string(b)
}

func listed(t *testing.T, url string) (l webList) {
	t.Helper()
	if err := json.Unmarshal([]byte(getPage(t, url+"list")), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestWeb: one command prints the URL of pages that have all profiles named, until Ctrl-C.
func TestWeb(t *testing.T) {
	p := start(t, rdxPath(t), "web", recorded(t, "bad.pb.gz"), recorded(t, "good.pb.gz"))
	url := p.line()
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("rdx web says %q", url)
	}
	if page := getPage(t, url); !strings.Contains(page, "app.js") {
		t.Errorf("the page: %.200q", page)
	}
	if l := listed(t, url); len(l.Profiles) != 2 || l.Live || l.Profiles[0].Command != "./matmul bad 2" || l.Profiles[1].Name != "good.pb.gz" {
		t.Errorf("the list: %+v", l)
	}
	if d := getPage(t, url+"data?profile=1&stack="); !strings.HasPrefix(d, "rdx\x01") {
		t.Errorf("the data: %.40q", d)
	}
	p.cmd.Process.Signal(syscall.SIGINT)
	if code := p.wait(); code != 0 {
		t.Errorf("after Ctrl-C rdx web ends with %d", code)
	}
}

// TestReport: one file, and a line that says so.
func TestReport(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report.html")
	for _, q := range []string{"", "-q"} {
		args := []string{"report", "-o", name, "--source", "../../web/testdata", recorded(t, "list.pb.gz")}
		if q != "" {
			args = append(args, q)
		}
		p, lines := told(t, args...)
		if code := p.wait(); code != 0 {
			t.Fatalf("rdx report ends with %d", code)
		}
		said := <-lines
		if want := "rdx: wrote " + name + ": 1 profile"; q == "" && said != want || q != "" && said != "" {
			t.Errorf("rdx report %s says %q", q, said)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"list", "data?profile=0", "rest?profile=0", "curve?profile=0", "source?profile=0"} {
			if !strings.Contains(string(b), `data-id="`+id) {
				t.Errorf("the file has no %s", id)
			}
		}
		if s := string(b); strings.Contains(s, "src=\"http") || strings.Contains(s, "href=\"http") || !strings.HasSuffix(strings.TrimSpace(s), "</html>") {
			t.Error("the file needs others, or is cut off")
		}
	}
}

// TestAttachWeb: pages fill while the program is sampled; after Ctrl-C the file is written and they stay, until the next.
func TestAttachWeb(t *testing.T) {
	needRoot(t)
	sum := target(t, compile(t, "sum"), "1")
	output := filepath.Join(t.TempDir(), "live.pb.gz")
	p, lines := told(t, "attach", "-p", strconv.Itoa(sum.pid), "--web", "--overhead", "50", "-o", output)
	said := <-lines
	url, ok := strings.CutPrefix(said, "rdx: ")
	if !ok || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("rdx attach --web says %q first", said)
	}
	if l := listed(t, url); !l.Live {
		t.Errorf("the list at the beginning: %+v", l)
	}
	bySessions(t, "a second window is shown", func() bool {
		l := listed(t, url)
		return len(l.Profiles) == 1 && l.Live && l.Version >= 3
	})
	if d := getPage(t, url+"data?profile=0&stack="); !strings.HasPrefix(d, "rdx\x01") {
		t.Errorf("the data: %.40q", d)
	}
	p.cmd.Process.Signal(syscall.SIGINT)
	for said = range lines {
		if strings.HasPrefix(said, "rdx: wrote "+output) {
			break
		}
	}
	if !strings.Contains(said, "the pages stay until Ctrl-C") {
		t.Fatalf("rdx attach --web says %q last", said)
	}
	if l := listed(t, url); l.Live || len(l.Profiles) != 1 {
		t.Errorf("the list at the end: %+v", l)
	}
	if m, err := pprofout.ReadFile(output); err != nil || len(m.Records) == 0 {
		t.Errorf("the file: %v", err)
	}
	assertUntraced(t, sum.pid)
	p.cmd.Process.Signal(syscall.SIGINT)
	if code := p.wait(); code != 0 {
		t.Errorf("after the second Ctrl-C rdx ends with %d", code)
	}
	sum.end()
}
