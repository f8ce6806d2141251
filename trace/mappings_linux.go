package trace

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/model"
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
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return // exited
	}
	defer f.Close()
	for _, n := range parseMappings(f) {
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

// parseMappings reads the executable mappings of files of a /proc/PID/maps.
func parseMappings(r io.Reader) []*model.Mapping {
	var out []*model.Mapping
	s := bufio.NewScanner(r)
	for s.Scan() {
		// start-limit perms offset dev inode path
		f := strings.Fields(s.Text())
		if len(f) < 6 || !strings.Contains(f[1], "x") || !strings.HasPrefix(f[5], "/") {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		limit, err2 := strconv.ParseUint(to, 16, 64)
		offset, err3 := strconv.ParseUint(f[2], 16, 64)
		if err1 == nil && err2 == nil && err3 == nil {
			out = append(out, &model.Mapping{Start: start, Limit: limit, Offset: offset, File: strings.Join(f[5:], " ")})
		}
	}
	return out
}
