package collector

import (
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// patterns are the model's of what reading ahead tells.
var patterns = map[ahead.Pattern]model.Manner{
	ahead.Unknown: model.MannerUnknown, ahead.Strided: model.MannerStride, ahead.Gathered: model.MannerGather,
	ahead.Chased: model.MannerChase, ahead.Random: model.MannerRandom,
}

// mostBlocks are looked up of a window: each takes a system call or two.
const mostBlocks = 8

// lookAt keeps how memory is touched in the window that was read ahead last, now that its thread runs. It says how many instructions
// a nanosecond that takes if no data are waited for, 0 if that is not foretold.
func (s *holds) lookAt(t *thread, heap *sampler.HeapProbes) (fast float64) {
	seen := s.locate.Seen(s.rand.IntN)
	w := &record.Window{Epoch: t.epoch, Instructions: seen.Instructions, Accesses: seen.Accesses, Counted: seen.Counted,
		Near: seen.Held.Near, Chases: seen.Held.Chases, Apart: seen.Held.Apart, Streams: seen.Held.Streams}
	look := looker{s, heap, t, &seen, 0}
	w.Sites = make([]record.Site, len(seen.Sites))
	for i := range seen.Sites {
		look.site(&seen.Sites[i], &w.Sites[i])
	}
	at := seen.Start.Regs.PC
	switch h := &seen.Held; {
	case h.Waits:
		w.Wait = model.WaitMemory
		look.site(&ahead.Site{PC: h.PC, Pattern: h.Pattern, Stride: h.Stride, Addr: h.Addr, N: 1, Fetches: 1}, &w.Held)
		if d := at - h.PC; d < sameCode {
			at = h.PC
		}
	case h.Known:
		w.Wait = model.WaitNo
	}
	w.Stack = s.kept.stacks.Add(t, t.process, at, seen.Start, 0)
	made := &s.made[len(s.made)-1]
	made.Window = w
	if s.pipeline != nil {
		if times, ok := s.locate.Foretell(s.pipeline); ok {
			made.Times = &times
			if times.Near > 0 {
				return float64(times.Instructions) / times.Near
			}
		}
	}
	return 0
}

// sameCode is how many bytes an instruction may lie before another, of those that are run one after the other, to be of the same
// function for all that is known.
const sameCode = 64

// looker looks at one window.
type looker struct {
	*holds
	heap   *sampler.HeapProbes // nil if not asked for
	t      *thread
	seen   *ahead.Seen
	blocks int // looked up
}

// site says what a site's accesses touch.
func (l *looker) site(from *ahead.Site, to *record.Site) {
	*to = record.Site{PC: from.PC, Op: model.Load, Manner: patterns[from.Pattern], Stride: from.Stride,
		Accesses: from.N, Fetches: from.Fetches, Used: from.Used, Written: from.Written}
	if from.Store {
		to.Op = model.Store
	}
	p := l.t.process
	p.Note(from.PC)
	if onStack(from.Addr, l.seen, l.t.shared.StackTop) {
		to.Data = model.Data{Kind: model.DataStack, Name: "stack"}
		return
	}
	p.Place(from.Addr, &to.Data)
	if l.heap != nil && from.Fetches > 0 && l.blocks < mostBlocks {
		l.blocks++
		if b, ok := l.heap.Find(p.PID, from.Addr); ok {
			to.Block, to.Within = l.kept.stacks.AddSite(p, b.Stack)+1, from.Addr-b.Base
		}
	}
}

// belowPointer is how far below the stack's pointer what was read ahead may have gone.
const belowPointer = 64 << 10

// onStack says whether an address lies on the thread's own stack, as far as that was copied.
func onStack(addr uint64, seen *ahead.Seen, top uint64) bool {
	base := seen.Start.Stack.Base
	end := max(top, base+uint64(len(seen.Start.Stack.Data)))
	return addr >= base-belowPointer && addr < end
}
