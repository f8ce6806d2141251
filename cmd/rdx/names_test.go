// Needs: root, bpf, watchpoint, gcc; readelf. What code is called in a live profile, whatever
// becomes of the files that say so.
package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

func buildIDOf(t *testing.T, file string) string {
	t.Helper()
	needTool(t, "readelf")
	out, err := exec.Command("readelf", "-n", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("no build ID in %s:\n%s", file, out)
	}
	return string(m[1])
}

// A live profile has the build IDs of what was mapped: also when the file has been replaced by another
// since, as by an upgrade.
func TestBuildIDs(t *testing.T) {
	needRoot(t)
	built := compile(t, "sum", "-Wl,--build-id")
	bin := filepath.Join(t.TempDir(), "sum")
	if out, err := exec.Command("cp", built, bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := buildIDOf(t, bin)
	p := target(t, bin, "1")
	other := compile(t, "sum", "-Wl,--build-id=0xfeedbeef")
	if err := os.Remove(bin); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", other, bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	profile := attach(t, p.pid, "-d", "1s").profile()
	p.end()
	// What libraries do beside that, to wait and to print, is the more of it the busier the machine is.
	var own model.Profile
	for _, r := range profile.Records {
		if len(r.Use) > 0 && r.Use[0].Mapping != nil && strings.HasPrefix(filepath.Base(r.Use[0].Mapping.File), "sum") {
			own.Records = append(own.Records, r)
		}
	}
	n, _, named := seen(&own, "work")
	if n == 0 || named < .9 {
		t.Errorf("%d observations of the program's own code, %.0f %% of them in work", n, 100*named)
	}
	for i := range profile.Records {
		for _, l := range profile.Records[i].Use {
			m := l.Mapping
			if m == nil || m.File == "" || m.File[0] != '/' {
				continue
			}
			if m.BuildID == "" || filepath.Base(m.File) == "sum (deleted)" && m.BuildID != want {
				t.Fatalf("mapping %+v, want build ID %s", m, want)
			}
		}
	}
}

// useNames is the observations of a profile by the function of their use, and all of them.
func useNames(p *model.Profile) (names map[string]int64, all int64) {
	names = map[string]int64{}
	for i := range p.Records {
		r := &p.Records[i]
		all += r.Observations
		if len(r.Use) > 0 && len(r.Use[0].Lines) > 0 {
			names[r.Use[0].Lines[0].Function] += r.Observations
		}
	}
	return names, all
}

// assertNamed wants all uses by code that is in no file to be in the function, and half of all uses to be such: between its laps
// the program has others, of which a session with few holds may see a fifth.
func assertNamed(t *testing.T, p *model.Profile, function string) {
	t.Helper()
	names, all := useNames(p)
	t.Logf("of %d observations %v are in functions", all, names)
	if all < 5 || names[function] < all/2 {
		t.Errorf("want half of five observations in %s: %q", function, p.Comments)
	}
	for i := range p.Records {
		for _, l := range p.Records[i].Use[:min(1, len(p.Records[i].Use))] {
			if m := l.Mapping; m != nil && (strings.HasPrefix(m.File, "/") && !strings.HasPrefix(m.File, "//") || m.File == "[vdso]") {
				continue
			}
			if len(l.Lines) == 0 || l.Lines[0].Function != function {
				t.Errorf("the use at %#x in %+v is not in %s: %+v", l.Address, l.Mapping, function, l.Lines)
			}
		}
	}
}

// The program is the first to end, with the map it has had, and removes it or not.
func TestJITEndsFirst(t *testing.T) {
	needRoot(t)
	for _, when := range []string{"", "gone"} {
		p := target(t, compile(t, "jit"), "walk", "0", when)
		s := attach(t, p.pid)
		name := fmt.Sprintf("/tmp/perf-%d.map", p.pid)
		time.Sleep(3 * time.Second) // of samples
		p.end()
		assertNamed(t, s.profile(), "walk")
		os.Remove(name)
	}
}

// The map is written when the session has begun: it is found when that ends, and when the program does.
func TestJITLateMap(t *testing.T) {
	needRoot(t)
	for _, ends := range []bool{false, true} {
		p := target(t, compile(t, "jit"), "walk", "0", "late")
		t.Cleanup(func() { os.Remove(fmt.Sprintf("/tmp/perf-%d.map", p.pid)) })
		s := attach(t, p.pid)
		time.Sleep(3 * time.Second) // of samples
		p.cmd.Process.Signal(syscall.SIGUSR1)
		eventually(t, "the target writes its map", func() bool {
			b, _ := os.ReadFile(fmt.Sprintf("/tmp/perf-%d.map", p.pid))
			return len(b) > 0
		})
		var profile *model.Profile
		if ends {
			p.end()
			profile = s.profile()
		} else {
			profile = s.stop()
			p.end()
		}
		assertNamed(t, profile, "walk")
	}
}

// Without a map the profile says what is missing, and what to do.
func TestJITWithoutMap(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "jit"), "walk", "0", "none")
	profile := attach(t, p.pid, "-d", "1s").profile()
	p.end()
	if said := strings.Join(profile.Comments, "\n"); !strings.Contains(said, "no perf map") || !strings.Contains(said, "--perf-basic-prof") {
		t.Errorf("nothing is said of perf maps:\n%s", said)
	}
}

// Two processes have different code at one address: each has names of its own map.
func TestJITOfEach(t *testing.T) {
	needRoot(t)
	jit := compile(t, "jit")
	for _, at := range []string{"10000000", "0"} {
		var alpha, beta int64
		// Beside other work a session has few observations, and some of what each does before.
		bySessions(t, "names of a map at "+at, func() bool {
			s := rdx(t, append(append([]string{"run", "--follow", "-d", "3s"}, busy...), "--", "sh", "-c",
				fmt.Sprintf("exec 3<&0; %s alpha %s gone <&3 & %s beta %s gone <&3 & wait", jit, at, jit, at))...)
			eventually(t, "the session ends", func() bool { _, err := os.Stat(s.output); return err == nil })
			s.stdin.Close()
			names, _ := useNames(s.profile())
			alpha, beta = alpha+names["alpha"], beta+names["beta"]
			return alpha+beta >= 60
		})
		// Were all names of one map, there would be none of the other's.
		if alpha < 10 || beta < 10 {
			t.Errorf("at %s: %d times alpha, %d times beta", at, alpha, beta)
		}
	}
}

// Time in the vdso counts as what it is: nearly nothing of it is lost, and reading ahead goes on behind where it reads the
// processor's clock.
func TestVDSOTime(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "clock"))
	var observed, lost, bursts, done, clocked int64
	bySessions(t, "samples", func() bool {
		profile := attach(t, p.pid, "-d", "500ms").profile()
		clocked += profile.CountOf(model.ReadTime)
		done += profile.CountOf(model.BurstEnded.Of("accesses done"))
		_, n := useNames(profile)
		observed += n
		for _, c := range profile.Counts {
			if model.LostBecause.Has(c.Name) {
				lost += c.N
			}
			if model.BurstEnded.Has(c.Name) {
				bursts += c.N
			}
		}
		return observed+lost > 200
	})
	p.end()
	if lost > observed/5 {
		t.Errorf("%d lost of %d", lost, observed+lost)
	}
	if done < bursts*9/10 || clocked < done*9/10 {
		t.Errorf("of %d bursts %d came to their end, %d read the clock", bursts, done, clocked)
	}
}
