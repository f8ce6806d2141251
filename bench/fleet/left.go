package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
)

// kernelObjects are the maps and programs of BPF that the kernel has, by number.
type kernelObjects struct{ maps, programs map[uint32]bool }

func listKernelObjects() *kernelObjects {
	o := &kernelObjects{map[uint32]bool{}, map[uint32]bool{}}
	for id, err := ebpf.MapGetNextID(0); err == nil; id, err = ebpf.MapGetNextID(id) {
		o.maps[uint32(id)] = true
	}
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		o.programs[uint32(id)] = true
	}
	return o
}

// since are those of o that were not in before and that no process of the machine holds: other
// programs have their own.
func (o *kernelObjects) since(before *kernelObjects) (left []string) {
	held := listHeld()
	for id := range o.maps {
		if !before.maps[id] && !held.maps[id] {
			left = append(left, fmt.Sprintf("map %d", id))
		}
	}
	for id := range o.programs {
		if !before.programs[id] && !held.programs[id] {
			left = append(left, fmt.Sprintf("program %d", id))
		}
	}
	return left
}

// listHeld are those that some process has a descriptor of, and the maps of such programs.
func listHeld() *kernelObjects {
	o := &kernelObjects{map[uint32]bool{}, map[uint32]bool{}}
	infos, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*")
	for _, path := range infos {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			key, value, _ := strings.Cut(s.Text(), ":")
			id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
			switch {
			case err != nil:
			case key == "map_id":
				o.maps[uint32(id)] = true
			case key == "prog_id":
				o.programs[uint32(id)] = true
			}
		}
		f.Close()
	}
	for id := range o.programs {
		p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
		if err != nil {
			continue
		}
		if info, err := p.Info(); err == nil {
			maps, _ := info.MapIDs()
			for _, m := range maps {
				o.maps[uint32(m)] = true
			}
		}
		p.Close()
	}
	return o
}

// ownProcesses are those that run this run's rdx.
func (b *bench) ownProcesses() (pids []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.TrimSuffix(to, " (deleted)") == b.rdx {
			pids = append(pids, filepath.Base(filepath.Dir(l)))
		}
	}
	return pids
}

// leftOver looks for what agents and sessions that are gone may have left: processes, which hold descriptors and
// perf events; threads of services that are traced; maps and programs. The kernel frees the latter some time after.
func (b *bench) leftOver(ctx context.Context) {
	var processes, objects []string
	for end, gone := time.Now().Add(30*time.Second), false; ; {
		processes = b.ownProcesses()
		now := listKernelObjects().since(b.before)
		if gone {
			// What has come meanwhile is another program's, which may end before it is found to hold it.
			now = slices.DeleteFunc(now, func(o string) bool { return !slices.Contains(objects, o) })
		}
		objects, gone = now, len(processes) == 0
		if len(processes)+len(objects) == 0 || time.Now().After(end) || ctx.Err() != nil {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if len(processes) > 0 {
		b.fail("processes of rdx are left: %s", strings.Join(processes, " "))
	}
	if len(objects) > 0 {
		b.fail("BPF: %s are left", strings.Join(objects, ", "))
	}
	traced := 0
	for _, c := range b.load {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.Process.Pid))
		for _, t := range tasks {
			if s, err := os.ReadFile(t); err == nil && !strings.Contains(string(s), "TracerPid:\t0\n") {
				traced++
			}
		}
	}
	if traced > 0 {
		b.fail("%d threads are traced by nobody that should", traced)
	}
	if len(processes)+len(objects)+traced == 0 {
		fmt.Println("left of rdx: no process, and so no descriptor and no perf event; no map and no program of BPF; no traced thread")
	}
}
