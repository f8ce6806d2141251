// Needs: nothing; the machines are made up.
package sampler

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// healthy is a machine on which nothing is wrong.
func healthy() Machine {
	return Machine{
		Proc: fstest.MapFS{
			"sys/kernel/osrelease":           file("6.1.0-50-amd64\n"),
			"sys/kernel/perf_event_paranoid": file("2\n"),
			"self/status":                    file("Name:\trdx\nCapEff:\t000001ffffffffff\n"),
			"self/limits":                    file("Limit Soft Hard Units\nMax open files            1024                 524288               files     \n"),
			"self/ns/pid":                    {Data: []byte("pid:[4026531836]"), Mode: fs.ModeSymlink},
			"cpuinfo":                        file("model name\t: Some CPU\nflags\t\t: fpu sse hypervisor\n"),
		},
		Sys: fstest.MapFS{
			"kernel/btf/vmlinux":                         file("x"),
			"bus/event_source/devices/cpu/type":          file("4"),
			"devices/system/cpu/cpu0/cache/index0/type":  file("Data"),
			"devices/system/cpu/cpu0/cache/index0/size":  file("48K"),
			"devices/system/cpu/cpu0/cache/index0/level": file("1"),
		},
	}
}

func TestMachineChecks(t *testing.T) {
	defer func(was func() (int, int, int)) { processorTells = was }(processorTells)
	processorTells = func() (int, int, int) { return 48 << 10, 2 << 20, -1 } // not of its last cache
	for _, tc := range []struct {
		name  string
		alter func(proc, sys fstest.MapFS)
		check string // the only one that is not good
		grade Grade
		says  string // in the remedy or consequence
	}{
		{name: "healthy", alter: func(proc, sys fstest.MapFS) {}},
		{"no rights", func(p, _ fstest.MapFS) { p["self/status"] = file("CapEff:\t0000000000000000\n") }, "rights", Missing, "setcap"},
		{"bpf alone", func(p, _ fstest.MapFS) { p["self/status"] = file("CapEff:\t0000008000000000\n") }, "rights", Missing, "root"},
		{"enough without root", func(p, _ fstest.MapFS) { p["self/status"] = file("CapEff:\t000000c000080000\n") }, "further rights", Degraded, "access rate"},
		{"all without root", func(p, _ fstest.MapFS) { p["self/status"] = file("CapEff:\t000001c000880004\n") }, "", "", ""},
		{"no links to what is mapped", func(p, _ fstest.MapFS) { p["self/status"] = file("CapEff:\t000000c000880004\n") }, "further rights", Degraded, "replaced or deleted"},
		{"no priority", func(p, _ fstest.MapFS) { p["self/status"] = file("CapEff:\t000001c000080004\n") }, "further rights", Degraded, "busy machine"},
		{"user namespace", func(p, _ fstest.MapFS) {
			p["self/ns/user"] = &fstest.MapFile{Data: []byte("user:[4026532448]"), Mode: fs.ModeSymlink}
		}, "rights", Missing, "rootless"},
		{"sys_admin does not trace", func(p, _ fstest.MapFS) { p["self/status"] = file("CapEff:\t0000000000200000\n") }, "rights", Degraded, "user who runs rdx"},
		{"no CAP_SYS_PTRACE", func(p, _ fstest.MapFS) { p["self/status"] = file("CapEff:\t000001c000800004\n") }, "rights", Degraded, "user who runs rdx"},
		{"no CAP_SYS_PTRACE, yama 1", func(p, _ fstest.MapFS) {
			p["self/status"], p[ptraceScopeFile] = file("CapEff:\t000001c000800004\n"), file("1\n")
		}, "rights", Degraded, "rdx run"},
		{"no CAP_SYS_PTRACE, yama 2", func(p, _ fstest.MapFS) {
			p["self/status"], p[ptraceScopeFile] = file("CapEff:\t000001c000800004\n"), file("2\n")
		}, "rights", Missing, "refuse"},
		{"status garbled", func(p, _ fstest.MapFS) { p["self/status"] = file("CapEff:\tzz\n") }, "rights", Missing, "root"},
		{"no BTF", func(_, s fstest.MapFS) { delete(s, "kernel/btf/vmlinux") }, "kernel types (BTF)", Missing, "CONFIG_DEBUG_INFO_BTF"},
		{"no perf", func(p, _ fstest.MapFS) { delete(p, "sys/kernel/perf_event_paranoid") }, "perf_event_paranoid", Missing, "CONFIG_PERF_EVENTS"},
		{"yama 3", func(p, _ fstest.MapFS) { p[ptraceScopeFile] = file("3\n") }, "ptrace_scope", Missing, "boot"},
		{"yama 0", func(p, _ fstest.MapFS) { p[ptraceScopeFile] = file("0\n") }, "", "", ""},
		{"yama 2", func(p, _ fstest.MapFS) { p[ptraceScopeFile] = file("2\n") }, "", "", ""},
		{"yama 1", func(p, _ fstest.MapFS) { p[ptraceScopeFile] = file("1\n") }, "", "", ""},
		{"container", func(p, _ fstest.MapFS) {
			p["self/ns/pid"] = &fstest.MapFile{Data: []byte("pid:[4026532448]"), Mode: fs.ModeSymlink}
		}, "PID namespace", Missing, "hostPID"},
		{"no PMU", func(_, s fstest.MapFS) { delete(s, "bus/event_source/devices/cpu/type") }, "event sources", Degraded, "virtual PMU"},
		{"few files", func(p, _ fstest.MapFS) { p["self/limits"] = file("Max open files  1024  1024  files\n") }, "open files", Degraded, "ulimit"},
		{"no caches", func(_, s fstest.MapFS) {
			for name := range s {
				if strings.Contains(name, "cache") {
					delete(s, name)
				}
			}
		}, "caches", Degraded, "--caches"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := healthy()
			tc.alter(m.Proc.(fstest.MapFS), m.Sys.(fstest.MapFS))
			found := false
			for _, c := range m.Checks() {
				if c.Name != tc.check {
					if c.Grade != Good {
						t.Errorf("%s is %s: %s", c.Name, c.Grade, c.Found)
					}
					continue
				}
				found = true
				if c.Grade != tc.grade {
					t.Errorf("%s is %s, want %s", c.Name, c.Grade, tc.grade)
				}
				if !strings.Contains(c.Remedy+c.Consequence, tc.says) {
					t.Errorf("%s: remedy %q, consequence %q do not say %q", c.Name, c.Remedy, c.Consequence, tc.says)
				}
			}
			if tc.check != "" && !found {
				t.Errorf("no check %s", tc.check)
			}
		})
	}
}

// Every check that is not good must say what follows and what to do, and
// nothing may break on a machine without any files.
func TestMachineChecksEmpty(t *testing.T) {
	m := Machine{fstest.MapFS{}, fstest.MapFS{}}
	for _, c := range m.Checks() {
		if c.Grade != Good && c.Consequence+c.Remedy == "" {
			t.Errorf("%s is %s and says neither what follows nor what to do", c.Name, c.Grade)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Error(err)
		}
	}
}

func TestWatchpointChecks(t *testing.T) {
	grades := func(w Watchpoints) map[string]Grade {
		out := make(map[string]Grade)
		for _, c := range w.checks() {
			out[c.Name] = c.Grade
		}
		return out
	}
	all := Watchpoints{Free: 4, Lengths: []int{1, 2, 4, 8, 64}, WholeLine: true, LimitHonoured: true, Rearms: true, TrapsPerArm: 1}
	for name, g := range grades(all) {
		if g != Good {
			t.Errorf("%s is %s", name, g)
		}
	}
	half := all
	half.WholeLine, half.WhyNot = false, "no range breakpoints"
	if g := grades(half)["watchpoint length"]; g != Degraded {
		t.Errorf("no whole lines is %s", g)
	}
	none := all
	none.Free = 0
	if g := grades(none)["watchpoints"]; g != Missing {
		t.Errorf("no free watchpoint is %s", g)
	}
	storm := all
	storm.LimitHonoured, storm.TrapsPerArm = false, 10
	if g := grades(storm)["watchpoint limit"]; g != Missing || storm.Usable() == nil {
		t.Errorf("ignored limit is %s, usable: %v", g, storm.Usable())
	}
}
