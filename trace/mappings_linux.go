package trace

import (
	"bytes"
	"sort"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/proc"
)

// mappingsEvery is how often a process's mappings are read: libraries come and
// go, and nobody tells.
const mappingsEvery = 50 * time.Millisecond

// mappings are what a process has or had mapped to execute, by start address.
// Where several were at one address, the first is kept.
type mappings struct {
	all  []*model.Mapping
	read time.Time
}

// refresh reads the mappings of a process that waits for us, unless that was
// just done.
func (m *mappings) refresh(pid int) {
	if time.Since(m.read) < mappingsEvery {
		return
	}
	m.read = time.Now()
	maps, err := proc.ReadMappings(pid)
	if err != nil {
		return // exited
	}
	for _, n := range codeOfFiles(maps) {
		if i := m.after(n.Start); i == len(m.all) || m.all[i].Start >= n.Limit {
			m.all = append(m.all, nil)
			copy(m.all[i+1:], m.all[i:])
			m.all[i] = n
		}
	}
}

// after is the index of the first mapping that ends after an address.
func (m *mappings) after(a uint64) int {
	return sort.Search(len(m.all), func(i int) bool { return m.all[i].Limit > a })
}

// codeOfFiles are the executable mappings of files of a /proc/PID/maps.
func codeOfFiles(maps []byte) []*model.Mapping {
	var out []*model.Mapping
	for m := range proc.Mappings(maps) {
		if m.Executable && bytes.HasPrefix(m.Name, []byte("/")) {
			out = append(out, &model.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: string(m.Name)})
		}
	}
	return out
}
