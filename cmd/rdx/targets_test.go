// Needs: nothing. Which processes rdx attach means, and why one gave no sample, by files as of /proc.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/model"
)

// procOf is a /proc with processes: number, name, parent, command line, state, ticks.
func procOf(below string, processes ...[6]string) fstest.MapFS {
	f := fstest.MapFS{}
	for _, p := range processes {
		f[below+p[0]+"/stat"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%s (%s) %s %s 0 0 0 0 0 0 0 0 0 %s 0 0", p[0], p[1], p[4], p[2], p[5])}
		f[below+p[0]+"/cmdline"] = &fstest.MapFile{Data: []byte(p[3])}
	}
	f[below+"uptime"] = &fstest.MapFile{}
	return f
}

func TestFindTargets(t *testing.T) {
	self := fmt.Sprint(os.Getpid())
	proc := procOf("",
		[6]string{"1", "systemd", "0", "/sbin/init", "S", "0"},
		[6]string{"2", "kthreadd", "0", "", "S", "0"},
		[6]string{"10", "nginx", "1", "nginx: master process /usr/sbin/nginx", "S", "0"},
		[6]string{"11", "nginx", "10", "nginx: worker process", "S", "0"},
		[6]string{"12", "a very long nam", "10", "/opt/a very long name\x00-x", "S", "0"},
		[6]string{"13", "odd) S 1 (", "1", "/usr/bin/odd", "S", "0"},
		[6]string{"14", "nginx", "2", "", "S", "0"},                             // the kernel's
		[6]string{"20", "sh", "1", "nginx\x00-c\x00rdx attach nginx", "S", "0"}, // what has started us
		[6]string{"60", "headless", "1", "", "Z", "0"},                          // its first thread has ended
		[6]string{"60/task/60", "headless", "1", "", "Z", "0"},
		[6]string{"60/task/61", "worker", "1", "/opt/headless-server\x00-x", "S", "0"},
		[6]string{"62", "headless", "1", "", "Z", "0"}, // nobody has waited for it
		[6]string{"62/task/62", "headless", "1", "", "Z", "0"},
		[6]string{self, "rdx", "20", "rdx\x00attach\x00nginx", "R", "0"})
	groups := t.TempDir()
	id := strings.Repeat("3f2a", 16)
	for dir, procs := range map[string]string{
		"system.slice/docker-" + id + ".scope":        "30\n31\n",
		"system.slice/docker-" + id + ".scope/inside": "32\n",
		"kubepods/pod1/" + strings.Repeat("ab", 32):   "40\n",
		"empty":            "",
		"unified/app":      "50\n",
		"unified/kubepods": "51\n",
	} {
		if err := os.MkdirAll(filepath.Join(groups, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(groups, dir, "cgroup.procs"), []byte(procs), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		of   targets
		args []string
		want []int
		err  string
	}{
		{of: targets{pids: []string{"5"}}, want: []int{5}},
		{of: targets{pids: []string{"5", "6"}}, args: []string{"7", "5"}, want: []int{5, 6, 7}},
		{of: targets{pids: []string{"5 6"}}, want: []int{5, 6}}, // "$(pidof nginx)"
		{args: []string{"nginx"}, want: []int{10, 11}},
		{args: []string{"odd"}, want: []int{13}},
		{args: []string{"headless"}, want: []int{60}},
		{args: []string{"headless-server"}, want: []int{60}},
		{args: []string{"nonesuch"}, err: `no process is named "nonesuch"`},
		{args: []string{"kthreadd"}, err: "no process"},
		{args: []string{"0"}, err: "0 is not a process number"},
		{args: []string{"-5"}, err: "not a process number"},
		{err: "name a process"},
		{of: targets{tree: true}, args: []string{"10"}, want: []int{10, 11, 12}},
		{of: targets{container: "3f2a3f"}, want: []int{30, 31, 32}},
		{of: targets{container: "abab"}, want: []int{40}},
		{of: targets{container: "abc"}, err: "at least its first 4 digits"},
		{of: targets{container: "ffff"}, err: "no control group"},
		{of: targets{cgroup: "kubepods"}, want: []int{40}},
		{of: targets{cgroup: groups + "/kubepods/pod1"}, want: []int{40}},
		{of: targets{cgroup: "/app"}, want: []int{50}}, // as /proc/PID/cgroup has it
		{of: targets{cgroup: "../.."}, err: "not below"},
		{of: targets{cgroup: "empty"}, err: "no process is in it"},
		{of: targets{cgroup: "none"}, err: "no such control group"},
	} {
		got, _, err := c.of.find(c.args, proc, groups)
		slices.Sort(got)
		if c.err == "" && (err != nil || !slices.Equal(got, c.want)) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%+v %q: %v, %v; want %v %s", c.of, c.args, got, err, c.want, c.err)
		}
	}
}

func TestWhyNoSample(t *testing.T) {
	idle := func(ran time.Duration) *model.Profile {
		return &model.Profile{Duration: 10 * time.Second, Counts: []model.Count{{Name: model.CPUTarget, N: int64(ran)}}}
	}
	root := procOf("proc/",
		[6]string{"10", "waits", "1", "waits", "S", "0"},
		[6]string{"11", "stopped", "1", "stopped", "T", "0"},
		[6]string{"12", "frozen", "1", "frozen", "S", "0"},
		[6]string{"13", "disk", "1", "disk", "D", "0"},
		[6]string{"15", "frozen", "1", "frozen", "S", "0"},
		[6]string{"16", "frozen", "1", "frozen", "D", "0"})
	root["proc/12/cgroup"] = &fstest.MapFile{Data: []byte("0::/docker/x\n")}
	root["sys/fs/cgroup/docker/x/cgroup.events"] = &fstest.MapFile{Data: []byte("populated 1\nfrozen 1\n")}
	// Version 2 beside version 1, and version 1.
	root["proc/15/cgroup"] = &fstest.MapFile{Data: []byte("9:freezer:/\n1:name=systemd:/x\n0::/x\n")}
	root["sys/fs/cgroup/unified/x/cgroup.events"] = &fstest.MapFile{Data: []byte("populated 1\nfrozen 1\n")}
	root["proc/16/cgroup"] = &fstest.MapFile{Data: []byte("9:freezer:/docker/y\n0::/\n")}
	root["sys/fs/cgroup/freezer/docker/y/freezer.state"] = &fstest.MapFile{Data: []byte("FROZEN\n")}
	for pid, want := range map[int]string{10: "it waits for something", 11: "kill -CONT 11", 12: "is frozen", 13: "waits for a disk", 15: "is frozen", 16: "is frozen", 99: "ended after 1ms of CPU time"} {
		if why := whyNoSample(idle(time.Millisecond), &collector.Config{PID: pid}, root); !strings.Contains(why, want) {
			t.Errorf("process %d: %q, want %q", pid, why, want)
		}
	}
	gone := idle(time.Millisecond)
	gone.Counts = append(gone.Counts, model.Count{Name: model.LostBecause.Of(model.NotAttached), N: 1})
	if why := whyNoSample(gone, &collector.Config{PID: 10}, root); !strings.Contains(why, "it waits for something") {
		t.Errorf("beside a process that was gone before it was attached to: %q", why)
	}
	// One that has worked.
	root["proc/14/stat"] = &fstest.MapFile{Data: []byte("14 (in kernel) S 1 0 0 0 0 0 0 0 0 0 3 400 0")}
	worked := idle(5 * time.Second)
	if why := whyNoSample(worked, &collector.Config{PID: 14}, root); !strings.Contains(why, "in the kernel") {
		t.Errorf("of one that works in the kernel: %q", why)
	}
	if why := whyNoSample(worked, &collector.Config{PID: 10}, root); !strings.Contains(why, "no tick fell") {
		t.Errorf("of one without ticks: %q", why)
	}
	worked.Counts = append(worked.Counts, model.Count{Name: model.Samples, N: 44})
	if why := whyNoSample(worked, &collector.Config{PID: 14}, root); !strings.Contains(why, "44 ticks") {
		t.Errorf("of one with ticks alone: %q", why)
	}
	worked.Comments = []string{model.BudgetWaits + ": one is taken to cost 33ms with what comes after it, and the whole budget pays for 0.2"}
	if why := whyNoSample(worked, &collector.Config{PID: 14}, root); !strings.Contains(why, "one is taken to cost 33ms") || !strings.Contains(why, "--overhead has not paid for a hold") {
		t.Errorf("of one that the budget was too small for: %q", why)
	}
}
