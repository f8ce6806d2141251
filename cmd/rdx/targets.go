package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
)

// targets are the processes that attach was told of.
type targets struct {
	pids      []string // of -p, some perhaps separated by commas or blanks
	tree      bool
	cgroup    string
	container string
}

func (t *targets) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVarP(&t.pids, "pid", "p", nil, "processes to attach to, as -p 12 or -p 12,13; also as arguments, by number or name")
	fs.BoolVar(&t.tree, "tree", false, "also the processes that they have started and those to come (implies --follow)")
	fs.StringVar(&t.cgroup, "cgroup", "", "the processes of a control group, by its path below /sys/fs/cgroup, and those to come of them (implies --follow)")
	fs.StringVar(&t.container, "container", "", "the processes of a container, by its ID or the beginning of it, and those to come of them (implies --follow)")
}

// follows says whether processes yet to come are meant, too.
func (t *targets) follows() bool { return t.tree || t.cgroup != "" || t.container != "" }

var errNoTarget = report.BadInput(errors.New("attach: name a process, by number or by name: rdx attach 1234, rdx attach redis-server (or --cgroup PATH, --container ID)"))

// find returns the processes' numbers, without doubles, and the processes that were
// named by name.
func (t *targets) find(args []string, proc fs.FS, cgroups string) (pids []int, byName []string, err error) {
	var table processTable
	for _, arg := range append(slices.Clone(t.pids), args...) {
		for _, name := range strings.Fields(arg) {
			if pid, err := strconv.Atoi(name); err == nil {
				if pid <= 0 {
					return nil, nil, report.BadInput(fmt.Errorf("attach: %s is not a process number", name))
				}
				pids = append(pids, pid)
				continue
			}
			if table == nil {
				if table, err = readProcesses(proc); err != nil {
					return nil, nil, fmt.Errorf("attach: %w", err)
				}
			}
			found := table.named(name, os.Getpid())
			if len(found) == 0 {
				return nil, nil, fmt.Errorf("attach: no process is named %q (pidof and ps -e show what runs)", name)
			}
			pids = append(pids, found...)
			byName = append(byName, fmt.Sprintf("%s: %s", name, numbersOf(found)))
		}
	}
	for _, dir := range []struct{ flag, path string }{{"cgroup", t.cgroup}, {"container", t.container}} {
		if dir.path == "" {
			continue
		}
		found, err := processesIn(dir.flag, dir.path, cgroups)
		if err != nil {
			return nil, nil, err
		}
		pids = append(pids, found...)
		byName = append(byName, fmt.Sprintf("%s %s: %s", dir.flag, dir.path, numbersOf(found)))
	}
	if len(pids) == 0 {
		return nil, nil, errNoTarget
	}
	if t.tree {
		if table, err = readProcesses(proc); err != nil {
			return nil, nil, fmt.Errorf("attach: %w", err)
		}
		pids = table.trees(pids)
	}
	var out []int
	seen := map[int]bool{}
	for _, pid := range pids {
		if !seen[pid] {
			seen[pid] = true
			out = append(out, pid)
		}
	}
	return out, byName, nil
}

func numbersOf(pids []int) string {
	var out []string
	for i, pid := range pids {
		if i == 8 && len(pids) > 9 {
			out = append(out, fmt.Sprintf("and %d more", len(pids)-i))
			break
		}
		out = append(out, strconv.Itoa(pid))
	}
	return strings.Join(out, ", ")
}

// processTable is what runs.
type processTable map[int]processEntry

type processEntry struct {
	parent int
	name   string // as the kernel has it: 15 characters
	first  string // word of the command line, without its folder; "" of a kernel thread
}

// readProcesses reads /proc.
func readProcesses(proc fs.FS) (processTable, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, err
	}
	table := processTable{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// pid (name) state parent: the name may have brackets and blanks.
		stat, err := fs.ReadFile(proc, e.Name()+"/stat")
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if err != nil || open < 0 || end < open {
			continue // it has ended
		}
		p := processEntry{name: string(stat[open+1 : end])}
		state := ""
		if f := strings.Fields(string(stat[end+1:])); len(f) > 1 {
			state = f[0]
			p.parent, _ = strconv.Atoi(f[1])
		}
		command, _ := fs.ReadFile(proc, e.Name()+"/cmdline")
		if len(command) == 0 && state == "Z" {
			command = commandOfLiving(proc, e.Name())
		}
		first, _, _ := strings.Cut(string(command), "\x00")
		if first, _, _ = strings.Cut(first, " "); first != "" { // some write a title over their arguments
			p.first = filepath.Base(strings.TrimSuffix(first, ":"))
		}
		table[pid] = p
	}
	return table, nil
}

// commandOfLiving is the command line of a process whose first thread has ended: the memory that it is in is the others'. It is empty where
// there are none.
func commandOfLiving(proc fs.FS, pid string) []byte {
	threads, _ := fs.ReadDir(proc, pid+"/task")
	for _, t := range threads {
		if command, err := fs.ReadFile(proc, pid+"/task/"+t.Name()+"/cmdline"); err == nil && len(command) > 0 {
			return command
		}
	}
	return nil
}

// named are the processes of a name, the kernel's own threads, self and what has started it left out.
func (t processTable) named(name string, self int) (pids []int) {
	short := name[:min(len(name), 15)] // the kernel keeps as much
	for pid, p := range t {
		if p.first != "" && (p.first == name || p.name == short) && !t.descends(self, pid) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// descends says whether a process is another or was started by it.
func (t processTable) descends(pid, from int) bool {
	for range len(t) + 1 {
		if pid == from {
			return true
		}
		p, ok := t[pid]
		if !ok {
			return false
		}
		pid = p.parent
	}
	return false
}

// trees adds the processes that some have started, and so on.
func (t processTable) trees(pids []int) []int {
	children := map[int][]int{}
	for pid, p := range t {
		children[p.parent] = append(children[p.parent], pid)
	}
	out := slices.Clone(pids)
	seen := map[int]bool{}
	for i := 0; i < len(out); i++ {
		if seen[out[i]] {
			continue
		}
		seen[out[i]] = true
		slices.Sort(children[out[i]])
		out = append(out, children[out[i]]...)
	}
	return out
}

// processesIn lists those of a control group and the groups in it.
func processesIn(flag, name, root string) ([]int, error) {
	dir := ""
	switch {
	case flag == "container":
		found, err := containerGroup(name, root)
		if err != nil {
			return nil, err
		}
		dir = found
	case strings.HasPrefix(name, root+"/") || name == root:
		dir = name
	default:
		dir = filepath.Join(root, name)
		if unified := filepath.Join(root, "unified", name); isFolder(unified) && !isFolder(dir) {
			dir = unified // where version 2 is beside version 1
		}
	}
	if rel, err := filepath.Rel(root, dir); err != nil || strings.HasPrefix(rel, "..") {
		return nil, report.BadInput(fmt.Errorf("--cgroup %s: not below %s", name, root))
	}
	var pids []int
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a group may go meanwhile
		}
		b, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 && pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	if !isFolder(dir) {
		return nil, fmt.Errorf("--%s %s: there is no such control group (cat /proc/PID/cgroup shows a process's; of version 1 it is CONTROLLER/PATH)", flag, name)
	}
	if err == nil && len(pids) == 0 {
		err = fmt.Errorf("--%s %s: no process is in it", flag, name)
	}
	return pids, err
}

func isFolder(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.IsDir()
}

// containerGroup finds the control group of a container: Docker, containerd, CRI-O and podman have the container's
// ID, 64 hexadecimal digits, in the group's name.
func containerGroup(id, root string) (string, error) {
	if len(id) < 4 || strings.Trim(id, "0123456789abcdef") != "" {
		return "", report.BadInput(fmt.Errorf("--container %s: want an ID, or at least its first 4 digits (docker ps, crictl ps and podman ps show them)", id))
	}
	var found []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		name := strings.TrimSuffix(d.Name(), ".scope")
		name = name[strings.LastIndexByte(name, '-')+1:]
		if len(name) == 64 && strings.HasPrefix(name, id) && strings.Trim(name, "0123456789abcdef") == "" && !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(path, f+"/") }) {
			found = append(found, path)
		}
		return nil
	})
	// With version 1 each controller has a group of that name.
	if len(found) > 1 {
		base := filepath.Base(found[0])
		if slices.ContainsFunc(found, func(f string) bool { return filepath.Base(f) != base }) {
			return "", fmt.Errorf("--container %s: %d containers begin so; give more of the ID", id, len(found))
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("--container %s: no control group below %s is of such a container (docker ps, crictl ps and podman ps show their IDs)", id, root)
	}
	return found[0], nil
}
