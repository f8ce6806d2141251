package ahead

import (
	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// CanForetell says whether there is a model of this kind of processor.
const CanForetell = true

// Foretell is how long what the last Read has read takes, up to mostForetold instructions, once Seen was called: none where another
// way is taken when it is read again.
func (l *Locator) Foretell(m *pipeline.Model) (pipeline.Times, bool) {
	if len(l.log.all) == 0 {
		return pipeline.Times{}, false
	}
	l.regs = l.started
	l.machine.Rewind(&l.regs)
	l.machine.Follow(true)
	defer l.machine.Follow(false)
	l.machine.Run(interp.Limit{Accesses: len(l.log.all), Instructions: mostForetold})
	again := l.machine.Accesses()
	again = again[:min(len(again), len(l.log.all))]
	l.findLast()
	f := &l.foretelling
	f.accesses = f.accesses[:0]
	for i, a := range again {
		if want := &l.log.all[i]; a.PC != want.PC || a.Addr != want.Addr {
			return pipeline.Times{}, false
		}
		f.accesses = append(f.accesses, pipeline.Access{Addr: a.Addr, Size: int32(a.Size), Inst: a.Inst, Store: a.Store, Lone: l.lone(i), Row: l.inRow(i)})
	}
	return m.Foretell(l.machine.Path(), f.accesses, l.codeAt), true
}

// codeAt is the code at pc as far as it was read; none where it was not.
func (l *Locator) codeAt(pc uint64) []byte {
	b := l.foretelling.code[:]
	if room := pageSize - pc%pageSize; room < uint64(len(b)) && !l.machine.Holds(pc+room) {
		b = b[:room]
	}
	if !l.machine.Holds(pc) || !l.machine.Load(pc, b) {
		return nil
	}
	return b
}
