package collector

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// usualLibc are where programs have their allocator from that have just been
// started: it is not mapped yet, but a probe may be put on a file before.
var usualLibc = []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"}

// heapWork is what the library's goroutines do about probes.
type heapWork struct {
	mu     sync.Mutex
	failed error // the first failure to probe an allocator
}

func (w *heapWork) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil && err != nil && !gone(err) {
		w.failed = err
	}
}

func (w *heapWork) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// probeHeap has probes put on the allocators of all files that the process has
// mapped as code since the last call.
func (s *targets) probeHeap(p *target.Process) {
	if s.heap == nil {
		return
	}
	if p.HeapProbed.Swap(false) {
		p.ReadMappings() // as they are now: blocks from before the probes are told by nothing else
	}
	if slices.Equal(s.probed[p], p.Mappings) {
		return
	}
	first := s.probed[p] == nil
	s.probed[p] = p.Mappings
	via, mappings := p.Via, p.Mappings
	s.processes.Do(func() {
		if first {
			s.probeUsual(via)
			defer p.HeapProbed.Store(true)
		}
		for _, m := range mappings {
			if m.Held != nil && m.Held.Err() == nil && m.Held.Opened() != nil {
				s.heapWork.fail(s.heap.Probe(via, m.Held.Opened()))
			}
		}
	})
}

// probeUsual probes those of usualLibc that there are.
func (s *targets) probeUsual(via int) {
	root, err := safeopen.Of(via)
	if err != nil {
		return // exited
	}
	defer root.Close()
	for _, path := range usualLibc {
		if f, err := root.Open(path, nil); err == nil {
			_ = s.heap.Probe(via, f) // which of them there are is the target's business
			f.Close()
		}
	}
}

// loadHeap loads the probes on allocators.
func (s *targets) loadHeap() (err error) {
	s.heap, err = sampler.LoadHeapProbes()
	return err
}

// findBlock looks up the block of a datum.
func (s *targets) findBlock(o *observation) {
	if s.heap == nil {
		return
	}
	if b, ok := s.heap.Find(o.Process.PID, o.Addr); ok {
		o.Site = s.kept.stacks.AddSite(o.Process, b.Stack) + 1
	}
}

// probeCost is what both probes of a call take: two exceptions, on a virtual
// machine (docs/explanation/safety.md).
const probeCost = 4 * time.Microsecond

// heapComments are of the probes on allocators, of a target that ran for so many ns.
func (s *targets) heapComments(cpu uint64, count count) (said []string) {
	if s.heap == nil {
		return nil
	}
	all, full, err := s.heap.Allocated()
	if err == nil {
		err = s.heapWork.failure()
	}
	if err != nil {
		said = append(said, "allocations not all seen, because: "+err.Error())
	}
	said = append(said, fmt.Sprintf(model.HeapProbed+"%d calls, by an estimate of %v each %.1f%% of the sampled CPU time, beside the overhead",
		all, probeCost, 100*float64(all)*float64(probeCost)/float64(max(cpu, 1))))
	count(model.BlocksAllocated, all)
	count(model.BlocksNotKept, full)
	return said
}
