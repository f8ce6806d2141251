// Needs: root, bpf, watchpoint, uprobes, gcc.
package main_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// With --heap a datum is known by the code that allocated it, whichever
// allocator that called; and a struct's member by the pointer that an instruction goes by.
func TestHeapSites(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needTool(t, "gcc")
	p := target(t, compile(t, "blocks", "-g", "-fno-ipa-icf", "-fno-optimize-sibling-calls"))
	want := map[string]string{
		"use_list":    "make_list blocks.c:18 < main", // beyond the wrapper xmalloc
		"use_cleared": "make_cleared blocks.c:25 < main",
		"use_grown":   "make_grown blocks.c:26 < main",
		"use_aligned": "make_aligned blocks.c:27 < main",
	}
	variables, members := map[string]bool{}, map[string]bool{}
	right, wrong := map[string]int64{}, map[string]int64{}
	d := time.Second // what is allocated before a session is not known to it, so that a longer one sees more in the same time
	bySessions(t, "all four kinds of blocks", func() bool {
		d = min(2*d, 16*time.Second)
		profile := attach(t, p.pid, "--heap", "-d", d.String(), "--overhead", "30").profile()
		t.Logf("%d allocations in %v", countOf(profile, model.BlocksAllocated), d)
		for i := range profile.Records {
			r := &profile.Records[i]
			if r.Kind == model.Lost || r.Data == nil {
				continue
			}
			function := outer(r.Use)[0]
			site, ok := want[function]
			if !ok {
				continue
			}
			// The variable may be named before it.
			if strings.Contains(r.Data.Name, "heap block of "+site) {
				right[function] += r.Observations
				if v, _, ok := strings.Cut(r.Data.Name, ", heap block of "); ok {
					variables[function+" "+v] = true
				}
			} else {
				wrong[r.Data.Name+" in "+function] += r.Observations
			}
		}
		for i := range profile.Touches {
			if t := &profile.Touches[i]; t.Member != "" {
				members[outer(t.Use)[0]+" "+t.Member] = true
			}
		}
		return min(right["use_list"], right["use_cleared"], right["use_grown"], right["use_aligned"]) >= 20
	})
	t.Logf("right: %v, others: %v, variables: %v; target: %s", right, wrong, variables, p.end())
	if len(variables) == 0 || variables["use_list p"] {
		t.Errorf("variables %v, want some, and none of the wrapper", variables)
	}
	for m := range members { // the C library may have debug information, too
		if strings.HasPrefix(m, "use_") && (!strings.HasPrefix(m, "use_list ") || !strings.HasSuffix(m, " of struct node")) {
			t.Errorf("%s, want members of struct node in use_list alone", m)
		}
	}
	if !members["use_list v[3] of struct node"] && !members["use_list next of struct node"] {
		t.Errorf("members %v, want those that use_list touches", members)
	}
	var all, off int64
	for _, n := range right {
		all += n
	}
	for name, n := range wrong {
		// What was allocated before rdx attached is not known, and named so.
		if !strings.HasPrefix(name, "heap in ") && !strings.HasPrefix(name, "anonymous memory in ") {
			off += n
		}
	}
	if off*50 > all {
		t.Errorf("%d of %d observations have another site than their own: %v", off, all, wrong)
	}
}

// Killed or not, rdx leaves no probe behind: the code is as it is in the file.
func TestHeapProbesVanish(t *testing.T) {
	needRoot(t)
	needTool(t, "gcc")
	p := target(t, compile(t, "blocks"))
	before := codeOf(t, p.pid)
	changed := 0
	for range 5 {
		s := attach(t, p.pid, "--heap")
		eventually(t, "probes in the code", func() bool { return !bytes.Equal(codeOf(t, p.pid), before) })
		changed++
		s.cmd.Process.Signal(syscall.SIGKILL)
		s.wait()
		assertFree(t, p.pid)
		eventually(t, "the code as it was", func() bool { return bytes.Equal(codeOf(t, p.pid), before) })
	}
	attach(t, p.pid, "--heap", "-d", "1s").profile()
	if !bytes.Equal(codeOf(t, p.pid), before) {
		t.Error("the code is not as it was after a session that ended by itself")
	}
	t.Logf("changed and back %d times; target: %s", changed, p.end())
}

// codeOf is the code of the C library as a process has it.
func codeOf(t *testing.T, pid int) []byte {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, "r-xp") || !strings.Contains(line, "/libc") {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		code := make([]byte, to-from)
		if _, err := mem.ReadAt(code, from); err != nil {
			t.Fatal(err)
		}
		return code
	}
	t.Skip("the target has no C library of its own")
	return nil
}
