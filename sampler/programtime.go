package sampler

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ProgramTime is what the kernel took to run one of the BPF programs.
type ProgramTime struct {
	Name string        `json:"name"`
	Runs uint64        `json:"runs"`
	Mean time.Duration `json:"mean_ns"`
}

// CountProgramTime has the kernel count the time of all BPF programs of the
// machine until it is closed, which costs each run some tens of nanoseconds.
// Linux 5.8 or later.
func CountProgramTime() (io.Closer, error) {
	c, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, fmt.Errorf("count time of bpf programs: %w", err)
	}
	return c, nil
}

// ProgramTimes are those of the programs that ran while time was counted.
func (k *Kernel) ProgramTimes() ([]ProgramTime, error) {
	var out []ProgramTime
	for _, name := range slices.Sorted(maps.Keys(k.obj.programs)) {
		s, err := k.obj.programs[name].Stats()
		if err != nil {
			return nil, fmt.Errorf("read time of %s: %w", name, err)
		}
		if s.RunCount > 0 {
			out = append(out, ProgramTime{name, s.RunCount, s.Runtime / time.Duration(s.RunCount)})
		}
	}
	return out, nil
}
