package sampler

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Grade says how well a machine does what rdx needs.
type Grade string

const (
	Good     Grade = "ok"
	Degraded Grade = "degraded" // rdx works, with the consequence named
	Missing  Grade = "no"
)

// Check is what one probe found. Where the grade is not Good, it says what
// follows from it and what to change.
type Check struct {
	Name        string `json:"name"`
	Grade       Grade  `json:"grade"`
	Found       string `json:"found"`
	Consequence string `json:"consequence,omitempty"`
	Remedy      string `json:"remedy,omitempty"`
	// Needed: without it rdx cannot profile at all.
	Needed bool `json:"needed,omitempty"`
}

func good(name, format string, args ...any) Check {
	return Check{Name: name, Grade: Good, Found: fmt.Sprintf(format, args...)}
}

// Machine is what rdx reads of a machine in files: proc and sys are
// os.DirFS("/proc") and os.DirFS("/sys"), or a test's.
type Machine struct {
	Proc, Sys fs.FS
}

// Checks are those that need only files to be read.
func (m Machine) Checks() []Check {
	checks := []Check{m.kernel(), m.rights()}
	if checks[1].Grade == Good {
		checks = append(checks, m.moreRights())
	}
	return append(checks, m.btf(), m.paranoid(), m.ptraceScope(), m.namespace(), m.openFiles(), m.virtual(), m.caches(), m.sources())
}

func readLine(fsys fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(fsys, name)
	return strings.TrimSpace(string(b)), err
}

func (m Machine) kernel() Check {
	release, err := readLine(m.Proc, "sys/kernel/osrelease")
	if err != nil {
		return Check{Name: "kernel", Grade: Degraded, Found: "release not readable", Consequence: "none by itself", Remedy: "mount /proc"}
	}
	return good("kernel", "Linux %s", release)
}

// Capabilities that stand for root, see capabilities(7).
const (
	capDACReadSearch     = 2
	capSysPtrace         = 19
	capSysAdmin          = 21
	capSysNice           = 23
	capPerfmon           = 38
	capBPF               = 39
	capCheckpointRestore = 40
)

// InUserNamespace says whether the capabilities of rdx count for what belongs to its user namespace alone: the
// kernel asks for those of BPF and perf events in the first one, which has a fixed inode number (PROC_USER_INIT_INO).
func (m Machine) InUserNamespace() bool {
	link, err := fs.ReadLink(m.Proc, "self/ns/user")
	return err == nil && link != "user:[4026531837]"
}

const userNamespaceRemedy = "run rdx as the host's root, outside of the user namespace: rootless containers and unshare -U have none of its rights"

func (m Machine) rights() Check {
	c := Check{Name: "rights", Needed: true}
	effective, err := m.status("CapEff")
	caps, err2 := strconv.ParseUint(effective, 16, 64)
	if err != nil || err2 != nil {
		c.Grade, c.Found = Missing, "capabilities not readable"
		c.Remedy = "mount /proc, run as root"
		return c
	}
	if m.InUserNamespace() {
		c.Grade, c.Found = Missing, "those of a user namespace, which the kernel does not count here"
		c.Consequence = "the kernel will refuse the BPF programs and the events"
		c.Remedy = userNamespaceRemedy
		return c
	}
	var lacks []string
	for _, need := range []struct {
		bit  int
		name string
	}{{capBPF, "CAP_BPF"}, {capPerfmon, "CAP_PERFMON"}, {capSysPtrace, "CAP_SYS_PTRACE"}} {
		if caps>>need.bit&1 == 0 && (need.bit == capSysPtrace || caps>>capSysAdmin&1 == 0) {
			lacks = append(lacks, need.name)
		}
	}
	if len(lacks) > 0 {
		c.Grade, c.Found = Missing, "no "+strings.Join(lacks, ", ")
		c.Consequence = "the kernel will refuse the BPF programs, the events or the hold"
		c.Remedy = "run as root, or give the capabilities: setcap " + allRights + " rdx"
		if which, some := m.heldWithoutRight(); some && slices.Equal(lacks, []string{"CAP_SYS_PTRACE"}) {
			c.Grade, c.Consequence = Degraded, which
		}
		return c
	}
	c.Grade, c.Found = Good, "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, or their equals"
	return c
}

// heldWithoutRight says which processes can be held without CAP_SYS_PTRACE, if some can: yama decides.
func (m Machine) heldWithoutRight() (which string, some bool) {
	switch scope, _ := readLine(m.Proc, ptraceScopeFile); scope {
	case "2", "3":
		return "", false
	case "1":
		return "no process can be held but programs that rdx starts (rdx run), as ptrace_scope is 1", true
	}
	return "no process can be held but those of the user who runs rdx, and of these none with capabilities that rdx lacks", true
}

// allRights are those that rdx has a use for, as setcap takes them.
const allRights = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore,cap_sys_nice+ep"

// moreRights are those without which a profile has less in it.
func (m Machine) moreRights() Check {
	c := good("further rights", "CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE and CAP_SYS_NICE, or their equals")
	effective, _ := m.status("CapEff")
	caps, err := strconv.ParseUint(effective, 16, 64)
	if err != nil {
		return Check{Name: c.Name, Grade: Degraded, Found: "capabilities not readable", Consequence: "unknown", Remedy: "mount /proc"}
	}
	var lacks, follows []string
	for _, r := range []struct {
		bit     int
		name    string
		follows string
	}{
		{capDACReadSearch, "CAP_DAC_READ_SEARCH", "other users' processes have no measured access rate, nor bounds by the memory they have, and files that only they can read give no names"},
		{capCheckpointRestore, "CAP_CHECKPOINT_RESTORE", "programs that were replaced or deleted since they were started have no names"},
		{capSysNice, "CAP_SYS_NICE", "threads are held longer on a busy machine"},
	} {
		if caps>>r.bit&1 == 0 && (r.bit != capCheckpointRestore || caps>>capSysAdmin&1 == 0) {
			lacks, follows = append(lacks, r.name), append(follows, r.follows)
		}
	}
	if len(lacks) > 0 {
		c.Grade, c.Found = Degraded, "no "+strings.Join(lacks, ", ")
		c.Consequence = strings.Join(follows, "; ")
		c.Remedy = "run as root, or give the capabilities: setcap " + allRights + " rdx"
	}
	return c
}

// status reads a field of the status file of rdx itself.
func (m Machine) status(field string) (string, error) {
	b, err := fs.ReadFile(m.Proc, "self/status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == field {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("read status: no field %s", field)
}

func (m Machine) btf() Check {
	if _, err := fs.Stat(m.Sys, "kernel/btf/vmlinux"); err != nil {
		return Check{Name: "kernel types (BTF)", Grade: Missing, Needed: true, Found: "no /sys/kernel/btf/vmlinux",
			Consequence: "the BPF programs cannot be fitted to this kernel",
			Remedy:      "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, and mount /sys"}
	}
	c := good("kernel types (BTF)", "/sys/kernel/btf/vmlinux")
	c.Needed = true
	return c
}

func (m Machine) paranoid() Check {
	const name = "perf_event_paranoid"
	v, err := readLine(m.Proc, "sys/kernel/perf_event_paranoid")
	level, err2 := strconv.Atoi(v)
	switch {
	case err != nil:
		return Check{Name: name, Grade: Missing, Needed: true, Found: "not there",
			Consequence: "the kernel has no perf events", Remedy: "boot a kernel built with CONFIG_PERF_EVENTS=y"}
	case err2 != nil:
		return Check{Name: name, Grade: Degraded, Found: fmt.Sprintf("unreadable value %q", v), Consequence: "unknown"}
	case level > 2:
		// Debian's and Android's patch, see explainRefused: opening some tells what they take.
		return good(name, "%d (perf events are for CAP_SYS_ADMIN and, with some kernels, CAP_PERFMON alone)", level)
	}
	return good(name, "%d", level)
}

const ptraceScopeFile = "sys/kernel/yama/ptrace_scope"

func (m Machine) ptraceScope() Check {
	const name = "ptrace_scope"
	v, err := readLine(m.Proc, ptraceScopeFile)
	switch {
	case err != nil:
		return good(name, "no yama")
	case v == "3":
		return Check{Name: name, Grade: Missing, Needed: true, Found: "3: nobody may trace",
			Consequence: "threads cannot be held", Remedy: "boot with another setting of kernel.yama.ptrace_scope: 3 cannot be undone while the system runs"}
	case v == "1":
		return good(name, "1: only children, or with CAP_SYS_PTRACE")
	case v == "2":
		return good(name, "2: only with CAP_SYS_PTRACE")
	}
	return good(name, "%s", v)
}

// initial is the first PID namespace, which has a fixed inode number (PROC_PID_INIT_INO).
const initial = "pid:[4026531836]"

// ForeignIDs says whether the kernel is known to number threads differently than rdx, which is in a PID namespace of its own.
func (m Machine) ForeignIDs() bool {
	link, err := fs.ReadLink(m.Proc, "self/ns/pid")
	return err == nil && link != initial
}

// namespace: BPF programs see the kernel's own thread ids, and so must rdx.
func (m Machine) namespace() Check {
	const name = "PID namespace"
	c := Check{Name: name, Needed: true}
	link, err := fs.ReadLink(m.Proc, "self/ns/pid")
	switch {
	case err != nil:
		c.Grade, c.Found = Degraded, "not readable"
		c.Consequence = "if it is not the host's, the session will refuse to start"
		c.Remedy = "mount /proc"
	case link != initial:
		c.Grade, c.Found = Missing, "not the host's: "+link
		c.Consequence = "the kernel numbers threads differently than rdx sees them"
		c.Remedy = "in a container use the host's: docker run --pid=host, or hostPID: true in a pod"
	default:
		c.Grade, c.Found = Good, "the host's"
	}
	return c
}

func (m Machine) openFiles() Check {
	const name = "open files"
	b, err := fs.ReadFile(m.Proc, "self/limits")
	if err != nil {
		return Check{Name: name, Grade: Degraded, Found: "limit not readable", Consequence: "unknown", Remedy: "mount /proc"}
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		if !ok {
			continue
		}
		f := strings.Fields(rest)
		if len(f) < 2 {
			break
		}
		if f[1] == "unlimited" {
			return good(name, "unlimited")
		}
		// rdx raises the soft limit to the hard one by itself (as Go does).
		hard, err := strconv.Atoi(f[1])
		if err != nil {
			break
		}
		// A thread has a sampling event, perhaps two counters, and up to
		// four watchpoints.
		if threads := (hard - reservedFiles) / filesPerThread; threads < 1000 {
			return Check{Name: name, Grade: Degraded, Found: fmt.Sprintf("at most %d", hard),
				Consequence: fmt.Sprintf("enough for about %d threads; those beyond are counted as lost", max(threads, 0)),
				Remedy:      "raise the hard limit: ulimit -Hn 65536, or LimitNOFILE= of the unit"}
		}
		return good(name, "at most %d, enough for %d threads", hard, (hard-reservedFiles)/filesPerThread)
	}
	return Check{Name: name, Grade: Degraded, Found: "limit not readable", Consequence: "unknown"}
}

const (
	reservedFiles  = 100
	filesPerThread = 7
)

// virtual looks for a hypervisor, to say why a PMU may be missing.
func (m Machine) virtual() Check {
	const name = "machine"
	cpu := "unknown CPU"
	flags := ""
	if b, err := fs.ReadFile(m.Proc, "cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(line, ":")
			switch strings.TrimSpace(key) {
			case "model name", "CPU part":
				cpu = strings.TrimSpace(value)
			case "flags":
				flags = value
			}
		}
	}
	vendor, _ := readLine(m.Sys, "class/dmi/id/sys_vendor")
	kind, _ := readLine(m.Sys, "hypervisor/type")
	hidden := slices.Contains(strings.Fields(flags), "hypervisor")
	if kind == "" && hidden {
		kind = "a hypervisor"
	}
	switch {
	case kind != "" && vendor != "":
		return good(name, "%s, virtual (%s, %s)", cpu, kind, vendor)
	case kind != "":
		return good(name, "%s, virtual (%s)", cpu, kind)
	case vendor != "":
		return good(name, "%s (%s)", cpu, vendor)
	}
	return good(name, "%s", cpu)
}

func (m Machine) caches() Check {
	caches, err := Caches(m.Sys)
	if err != nil {
		return Check{Name: "caches", Grade: Degraded, Found: "sizes not in sysfs",
			Consequence: "rdx does not know for which sizes to predict misses",
			Remedy:      "name them: rdx attach --caches 48K,1M,32M"}
	}
	var all, assumed []string
	for _, c := range caches {
		all = append(all, c.Level+" "+sizeString(c.Size))
		if c.Assumed {
			assumed = append(assumed, c.Level)
		}
	}
	if len(assumed) > 0 {
		return Check{Name: "caches", Grade: Degraded, Found: strings.Join(all, ", "),
			Consequence: "this machine does not tell the size of " + strings.Join(assumed, " and ") + ": a usual one is assumed",
			Remedy:      "name the sizes, if you know them: rdx attach --caches 48K,1M,32M"}
	}
	return good("caches", "%s", strings.Join(all, ", "))
}

func sizeString(n int64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if n < 1024 || n%1024 != 0 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%d GiB", n)
}

// sources names what could sample or count accesses here. Whether it does is
// tried out elsewhere.
func (m Machine) sources() Check {
	const name = "event sources"
	var found []string
	for _, d := range devices(m.Sys) {
		for _, prefix := range []string{"cpu", "armv8", "armv9", "ibs_op", "arm_spe"} {
			if strings.HasPrefix(d, prefix) {
				found = append(found, d)
			}
		}
	}
	if len(found) == 0 {
		return Check{Name: name, Grade: Degraded, Found: "no PMU, only the clock",
			Consequence: "samples prefer slow accesses, and times are CPU time instead of accesses",
			Remedy:      "use bare metal, or a virtual machine with a virtual PMU (KVM: -cpu host,pmu=on; cloud: metal or large instances)"}
	}
	return good(name, "%s", strings.Join(found, ", "))
}

// devices lists the perf event sources that the kernel names in sysfs.
func devices(sys fs.FS) []string {
	entries, _ := fs.ReadDir(sys, eventSources)
	var out []string
	for _, e := range entries {
		out = append(out, path.Base(e.Name()))
	}
	return out
}

const eventSources = "bus/event_source/devices"
