package main

import (
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// outermost are the functions in which a thread's stack may rightly end.
var outermost = []string{
	"_start", "__libc_start_main", "__libc_start_call_main", "clone", "clone3", "__clone", "__clone3",
	"start_thread", "_dl_start", "_dl_start_user", "__restore_rt",
	"runtime.goexit", "runtime.mstart", "runtime.rt0_go", "runtime.mcall", "runtime.systemstack", "runtime.gogo",
}

// countTruncated counts the stacks that were cut short: walked by frame
// pointers, a stack ends early where code was built without them.
func countTruncated(p *model.Profile) {
	var stacks, cut int64
	for i := range p.Records {
		r := &p.Records[i]
		for _, stack := range [][]*model.Location{r.Use, r.Reuse} {
			if len(stack) == 0 {
				continue
			}
			stacks += r.Observations
			if !complete(stack[len(stack)-1]) {
				cut += r.Observations
			}
		}
	}
	p.Counts = append(p.Counts,
		model.Count{Name: "stacks", N: stacks},
		model.Count{Name: "stacks cut short (code without frame pointers)", N: cut})
	slices.SortFunc(p.Counts, func(a, b model.Count) int { return strings.Compare(a.Name, b.Name) })
}

// complete says whether a stack may end in l.
func complete(l *model.Location) bool {
	if len(l.Lines) == 0 {
		return false
	}
	name := l.Lines[len(l.Lines)-1].SystemName
	name, _, _ = strings.Cut(name, "@")
	return slices.Contains(outermost, strings.TrimSuffix(name, ".abi0"))
}
