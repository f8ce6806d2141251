// Needs: root, bpf, watchpoint, gcc, setpriv, unshare; yama for one. With exactly which capabilities another user
// can profile a process that is not theirs.
package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// withCaps are setpriv's arguments for a user who is not root and has these capabilities alone.
func withCaps(uid string, caps ...string) []string {
	all := "-all"
	for _, c := range caps {
		all += ",+" + c
	}
	return []string{"--reuid", uid, "--regid", uid, "--clear-groups", "--inh-caps", all, "--ambient-caps", all, "--bounding-set", all}
}

var neededCaps, furtherCaps = []string{"bpf", "perfmon", "sys_ptrace"}, []string{"dac_read_search", "checkpoint_restore", "sys_nice"}

func without(caps []string, c string) []string {
	return slices.DeleteFunc(slices.Clone(caps), func(x string) bool { return x == c })
}

// Each of the three that rdx needs is needed, and is named where it is missing; the three suffice.
func TestRightsOfAnotherUser(t *testing.T) {
	needRoot(t)
	needTool(t, "setpriv")
	sum := compile(t, "sum")
	p := target(t, "setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", sum, "1")
	defer p.end()
	for _, c := range neededCaps {
		refusedSession(t, "CAP_"+strings.ToUpper(c), as(t, withCaps("65534", without(neededCaps, c)...), p.pid))
		assertFree(t, p.pid)
	}
	seen := func(caps ...string) *model.Profile {
		var last *model.Profile
		// Without a priority holds are long on a busy machine, and then few.
		bySessions(t, "an observation with a name", func() bool {
			last = as(t, withCaps("65534", caps...), p.pid).profile()
			assertFree(t, p.pid)
			names, _ := useNames(last)
			return len(names) > 0
		})
		return last
	}
	few := seen(neededCaps...)
	if has := strings.Join(few.Comments, "\n"); !strings.Contains(has, "CAP_SYS_NICE") {
		t.Error("without CAP_SYS_NICE the profile does not say what follows")
	}
	all := seen(append(slices.Clone(neededCaps), furtherCaps...)...)
	if has := strings.Join(all.Comments, "\n"); strings.Contains(has, "CAP_SYS_NICE") {
		t.Error("with CAP_SYS_NICE the profile says that it is missing")
	}
}

// A program that was deleted since it was started has names by a right, and the profile says by which.
func TestRightsOfDeleted(t *testing.T) {
	needRoot(t)
	needTool(t, "setpriv")
	program, err := os.ReadFile(compile(t, "sum"))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "sum")
	if err := os.WriteFile(bin, program, 0o755); err != nil {
		t.Fatal(err)
	}
	p := target(t, bin, "1")
	defer p.end()
	if err := os.Remove(bin); err != nil {
		t.Fatal(err)
	}
	all := append(slices.Clone(neededCaps), furtherCaps...)
	for _, caps := range [][]string{without(all, "checkpoint_restore"), all} {
		bySessions(t, "an observation in the program", func() bool {
			profile := as(t, withCaps("65534", caps...), p.pid).profile()
			names, _ := useNames(profile)
			said := strings.Contains(strings.Join(profile.Comments, "\n"), "addresses without a name: ") && strings.Contains(strings.Join(profile.Comments, "\n"), "CAP_CHECKPOINT_RESTORE")
			return said != slices.Contains(caps, "checkpoint_restore") && (said || len(names) > 0)
		})
	}
}

// doctor says of exactly these capabilities what is so.
func TestDoctorRights(t *testing.T) {
	needRoot(t)
	needTool(t, "setpriv", "unshare")
	type report struct {
		Usable bool `json:"usable"`
		Checks []struct{ Name, Grade, Found, Consequence string }
	}
	doctor := func(argv ...string) (r report) {
		out, _ := exec.Command(argv[0], append(argv[1:], rdxPath(t), "doctor", "--json")...).Output()
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%v: %v: %s", argv, err, out)
		}
		return r
	}
	grade := func(r report, name string) (grade, text string) {
		for _, c := range r.Checks {
			if c.Name == name {
				return c.Grade, c.Found + "; " + c.Consequence
			}
		}
		return "", ""
	}
	as := func(caps ...string) report {
		return doctor(append([]string{"setpriv"}, withCaps("65534", caps...)...)...)
	}
	all := append(slices.Clone(neededCaps), furtherCaps...)
	for _, c := range neededCaps {
		r := as(without(all, c)...)
		// Without CAP_SYS_PTRACE a child can be held, unless yama forbids.
		want, usable := "no", false
		if c == "sys_ptrace" && scopeOfYama() < 2 {
			want, usable = "degraded", true
		}
		if g, text := grade(r, "rights"); r.Usable != usable || g != want || !strings.Contains(text, "CAP_"+strings.ToUpper(c)) {
			t.Errorf("without %s: usable %v, want %v; %s %q, want %s", c, r.Usable, usable, g, text, want)
		}
	}
	for _, c := range furtherCaps {
		r := as(without(all, c)...)
		if g, text := grade(r, "further rights"); g != "degraded" || !strings.Contains(text, "CAP_"+strings.ToUpper(c)) {
			t.Errorf("without %s: %s %q", c, g, text)
		}
	}
	if g, text := grade(as(all...), "further rights"); g != "ok" {
		t.Errorf("with all: %s %q", g, text)
	}
	// Root of a user namespace has all capabilities, and none that counts.
	if exec.Command("unshare", "-Ur", "true").Run() != nil {
		t.Skip("no user namespaces here")
	}
	if r := doctor("unshare", "-Ur"); r.Usable {
		t.Error("usable in a user namespace")
	} else if g, text := grade(r, "rights"); g != "no" || !strings.Contains(text, "user namespace") {
		t.Errorf("in a user namespace: %s %q", g, text)
	}
	out, err := exec.Command("unshare", "-Ur", rdxPath(t), "run", "-o", "/dev/null", "--", "true").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "outside of the user namespace") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("run in a user namespace: %v, %q", err, out)
	}
}

const yamaScope = "/proc/sys/kernel/yama/ptrace_scope"

// scopeOfYama is 0, too, where the kernel has no yama.
func scopeOfYama() int {
	b, _ := os.ReadFile(yamaScope)
	scope, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return scope
}

// yama: 0 lets a user trace their own, 1 and 2 only with CAP_SYS_PTRACE. 3 can't be taken back, and is tried in a
// virtual machine (vm/guest).
func TestYama(t *testing.T) {
	needRoot(t)
	needTool(t, "setpriv")
	if _, err := os.Stat(yamaScope); err != nil {
		t.Skip("this kernel has no yama")
	}
	old := scopeOfYama()
	if old == 3 {
		t.Skip("yama is at 3, for good")
	}
	defer os.WriteFile(yamaScope, []byte(strconv.Itoa(old)), 0)
	p := target(t, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", compile(t, "sum"), "1")
	defer p.end()
	for scope, mayOwn := range []bool{true, false, false} {
		if err := os.WriteFile(yamaScope, []byte{byte('0' + scope)}, 0); err != nil {
			t.Skip(err)
		}
		as(t, withCaps("1234", neededCaps...), p.pid).profile()
		s := as(t, withCaps("65534", "bpf", "perfmon"), p.pid)
		if mayOwn {
			s.profile()
		} else {
			refusedSession(t, "ptrace_scope", s)
		}
		assertFree(t, p.pid)
	}
}
