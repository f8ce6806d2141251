// Needs: root, bpf, watchpoint, symbol names in /proc/kallsyms.
package sampler

import (
	"os"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
)

// What is tried out must be what the kernel's symbol table says is there.
func TestProbeFeatures(t *testing.T) {
	needs.Watchpoints(t)
	k, err := Load(1, Needs{})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	f, err := k.ProbeFeatures()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", f)
	if c := f.check(); c.Grade != Good {
		t.Errorf("%+v", c)
	}
	symbols, err := os.ReadFile("/proc/kallsyms")
	if err != nil || !strings.Contains(string(symbols), " bpf_perf_event_read_value\n") {
		t.Skip("needs symbol names in /proc/kallsyms:", err)
	}
	for name, has := range map[string]bool{
		"bpf_perf_link_attach":          f.PerfLink,
		"bpf_cast_to_kern_ctx":          f.WholeSample,
		"bpf_task_work_schedule_signal": f.TaskWork,
	} {
		if there := strings.Contains(string(symbols), " "+name); there != has {
			t.Errorf("%s: found %v, in the kernel %v", name, has, there)
		}
	}
}

func TestFeaturesCheck(t *testing.T) {
	c := Features{PerfLink: true, WholeSample: true}.check()
	if c.Grade != Degraded || !strings.Contains(c.Found, "counters not readable") || !strings.Contains(c.Found, "no task work") || c.Remedy == "" {
		t.Errorf("%+v", c)
	}
}
