// Needs: root, bpf, watchpoint, gcc.
package main_test

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// outer is the function at each frame of a stack, leaf first.
func outer(stack []*model.Location) []string {
	var names []string
	for _, l := range stack {
		name := "?"
		if n := len(l.Lines); n > 0 {
			name = l.Lines[n-1].Function
		}
		names = append(names, name)
	}
	return names
}

// A program built without frame pointers that touches known data in known
// functions: every pair must have its whole stacks, and the datum its name.
func TestDataAndStacks(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needTool(t, "gcc")
	s := run(t, compile(t, "places"), "2")
	p := s.profile()
	want := map[string]struct{ data, stack string }{
		"walk_static": {"filled", "walk_static main"},
		"walk_empty":  {"empty", "walk_empty main"},
		"walk_stack":  {"stack of holder", "walk_stack holder main"},
		"walk_small":  {"heap", "walk_small main"},
		"walk_large":  {"anonymous memory", "walk_large main"},
	}
	seen := map[string]int{}
	var stacks, whole, wrongStack, wrongData, returns int
	for _, r := range p.Records {
		for _, stack := range [][]*model.Location{r.Use, r.Reuse} {
			if len(stack) == 0 {
				continue
			}
			names := outer(stack)
			w, ok := want[names[0]]
			if !ok {
				continue
			}
			stacks++
			got := strings.Join(names, " ")
			if !strings.HasPrefix(got, w.stack+" ") {
				wrongStack++
				t.Logf("stack %s, want %s", got, w.stack)
			}
			if names[len(names)-1] == "_start" {
				whole++
			}
		}
		if w, ok := want[outer(r.Use)[0]]; ok {
			seen[w.data]++
			switch {
			case r.Data == nil:
				wrongData++
			case r.Data.Name == "stack of "+outer(r.Use)[0]:
				returns++ // reads the address to return to
			case r.Data.Name != w.data:
				wrongData++
				t.Logf("%s touches %q, want %q", outer(r.Use)[0], r.Data.Name, w.data)
			}
		}
	}
	t.Logf("%d stacks, %d reach _start; data %v; counts %v", stacks, whole, seen, p.Counts)
	if stacks < 50 || wrongStack > 0 || whole < stacks {
		t.Errorf("of %d stacks %d reach _start, %d are wrong", stacks, whole, wrongStack)
	}
	if wrongData > 0 || returns > stacks/100 {
		t.Errorf("%d data are named wrong, %d by returns", wrongData, returns)
	}
	for _, w := range want {
		if seen[w.data] == 0 {
			t.Errorf("no access to %s", w.data)
		}
	}

	// All of them: what is touched once, at the start, misses and comes before what fits.
	out, err := exec.Command(rdxPath(t), "top", "--by", "data", "-n", "1000", "--format", "json", s.output).Output()
	if err != nil {
		t.Fatalf("top --by data: %v", err)
	}
	var list struct {
		Objects []struct {
			Data         string
			Observations int
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, o := range list.Objects {
		name, _, _ := strings.Cut(o.Data, ": ") // with the variable or the member
		listed[name] += o.Observations
	}
	for name := range seen {
		if listed[name] == 0 {
			t.Errorf("top --by data does not list %s", name)
		}
	}
}

// A call traps at the entry of what it calls, a return behind the call: neither
// must be taken for the instruction that ends there, nor lose or double a frame.
func TestStacksOfCalls(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needTool(t, "gcc")
	p := rdx(t, append(append([]string{"run"}, busy...), "--burst", "off", "--granularity", "word", "--", compile(t, "calls"), "2")...).profile()
	seen := map[string]int{}
	wrong := 0
	for _, r := range p.Records {
		for _, stack := range [][]*model.Location{r.Use, r.Reuse} {
			if len(stack) == 0 {
				continue
			}
			names := outer(stack)
			switch names[0] {
			case "first", "second":
				names = names[1:]
				fallthrough
			case "main":
				seen[outer(stack)[0]]++
				if names[0] != "main" || len(names) < 2 || names[1] != "__libc_start_call_main" {
					wrong++
					t.Logf("stack %s", strings.Join(outer(stack), " "))
				}
			}
		}
	}
	t.Logf("leaves %v", seen)
	if wrong > 0 || seen["main"] < 20 {
		t.Errorf("%d stacks are wrong; leaves %v", wrong, seen)
	}
}

// TestSummaryIsTheFiles: what a session says at its end is what the file says, number by number.
func TestSummaryIsTheFiles(t *testing.T) {
	needRoot(t)
	needTool(t, "gcc")
	p := target(t, compile(t, "blocks", "-g", "-fno-ipa-icf", "-fno-optimize-sibling-calls"))
	s := rdx(t, "attach", "-p", strconv.Itoa(p.pid), "-d", "2s", "--overhead", "10")
	if code := s.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.stderr.String())
	}
	said := s.stderr.String()
	verdict, _, _ := strings.Cut(said[max(strings.Index(said, "verdict "), 0):], "wrote ")
	of := func(command string) string {
		out, err := exec.Command(rdxPath(t), command, s.output).Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return string(out)
	}
	top, why := of("top"), strings.ToLower(strings.Join(strings.Fields(of("why")), " "))
	lines := 0
	for line := range strings.Lines(top) {
		if line == "\n" {
			break
		}
		lines++
		if !strings.Contains(said, line) {
			t.Errorf("top says, and the summary does not: %s\n%s", line, said)
		}
	}
	if says := strings.ToLower(strings.Join(strings.Fields(verdict)[1:], " ")); lines < 2 || !strings.Contains(why, strings.TrimSuffix(says, ".")) {
		t.Errorf("%d lines; the verdict %q is not in:\n%s", lines, says, why)
	}
	t.Logf("%s\ntarget: %s", said, p.end())
}
