package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/collector/callstack"
	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/interleave"
	"github.com/rdx-profiler/rdx/collector/sharing"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// Progress is what a waiting user wants to know.
type Progress struct {
	Elapsed  time.Duration
	Threads  int
	Samples  uint64  // threads held
	Pairs    int     // uses whose reuse was seen
	Overhead float64 // share that samples cost, without stops besides holds
	// Known is the miss ratio at Config.Look as far as it is known; nil: not looked at since the last time.
	Known *model.Point
	// Warnings are what the user should know before the session is over, each once.
	Warnings []string
}

// What can wait, stacks to unwind and holds to merge, is done aside, by the goroutine that waits for the session, a good deal at a time: each
// time that it is woken takes some processor, perhaps the target's, as long as much of what there is to do.
const (
	handoverEvery = 500 * time.Millisecond
	progressEvery = 200 * time.Millisecond // where somebody looks at it
	// handoverStacks are not left to wait: they take memory, and the first of a thread tells how
	// much is to be copied of its later ones.
	handoverStacks = 64
)

// handover is what is handed over to that goroutine, one at a time, and what comes back from it.
type handover struct {
	account    *account
	cfg        *Config
	holds      *holds
	neighbours *neighbours
	kept       *observations

	to     chan handedOver
	back   chan handoverWork
	away   bool // something was handed over and is not back
	last   time.Duration
	looked time.Duration // when something was given to be looked at
}

type handoverWork struct {
	stacks []callstack.Request
	holds  []interleave.Hold // to be merged
	block  uint64            // of these, bytes
	joined []sharing.Hold    // to become windows
}

type handedOver struct {
	handoverWork
	progress Progress
	seen     *estimate.Input // to be looked at; nil: not now
	failed   bool            // the session can't go on
}

func newHandover() handover {
	return handover{to: make(chan handedOver, 1), back: make(chan handoverWork, 1)}
}

// everyTick is called on the tracing thread.
func (s *sampling) everyTick() {
	if s.tracing.closing {
		return
	}
	s.handover.takeBack()
	s.tick()
	if now := sampler.Monotonic(); s.handover.hasWork(now) {
		s.handover.give(now, s.progress(), s.toLookAt(now))
	}
}

// progress is what there is to tell now; warnings are told once.
func (s *sampling) progress() Progress {
	p := Progress{
		Elapsed:  time.Since(s.tracing.start),
		Threads:  len(s.targets.threads),
		Samples:  s.latest.Holds,
		Pairs:    s.kept.pairs,
		Overhead: s.ticks.budget.spent,
		Warnings: s.account.takeWarnings(),
	}
	return p
}

// give hands over what there is to be done.
func (s *handover) give(now time.Duration, told Progress, seen *estimate.Input) {
	s.away, s.last = true, now
	s.to <- handedOver{s.takeWork(), told, seen, s.account.failed}
}

// looksAfter says whether it is so long ago that something was given to be looked at, and that it is given now.
func (s *handover) looksAfter(passed, now time.Duration) bool {
	if now-s.looked < passed {
		return false
	}
	s.looked = now
	return true
}

// takeWork takes what waits.
func (s *handover) takeWork() handoverWork {
	return handoverWork{s.kept.stacks.Take(), s.neighbours.merges.Take(), uint64(s.holds.block()), s.neighbours.windows.Take()}
}

// hasWork says whether there is enough to be done to wake somebody for it.
func (s *handover) hasWork(now time.Duration) bool {
	if s.away {
		return false
	}
	switch n := s.kept.stacks.Waiting(); {
	case s.account.tells(), n >= handoverStacks:
		return true
	default:
		waited := now - s.last
		return n > 0 && waited >= handoverEvery || s.cfg.Progress != nil && waited >= progressEvery
	}
}

// end is called when nothing runs any more: what nobody has begun with waits again. What is to be told is left.
func (s *handover) end(progress func() Progress) (tell []Progress) {
	select {
	case a := <-s.to:
		s.kept.stacks.Return(a.stacks)
		s.neighbours.merges.Return(a.holds)
		s.neighbours.windows.Return(a.joined)
		tell = append(tell, a.progress)
	default:
		s.takeBack()
	}
	if s.account.tells() {
		tell = append(tell, progress())
	}
	return tell
}

// takeBack takes what was handed over, if it is done.
func (s *handover) takeBack() {
	select {
	case done := <-s.back:
		s.kept.stacks.Done(done.stacks)
		s.neighbours.merges.Done(done.holds)
		s.neighbours.windows.Done(done.joined)
		s.away = false
	default:
	}
}

// backlog is what the goroutine that waits for the session works off, and has made of it.
type backlog struct {
	cfg     Config
	table   *callstack.Table
	merger  *interleave.Merger
	windows *sharing.Windows
}

func newBacklog(cfg Config) backlog {
	return backlog{cfg: cfg, table: callstack.NewTable(), merger: interleave.NewMerger(cfg.Seed), windows: sharing.NewWindows(cfg.Seed)}
}

func (b *backlog) do(w handoverWork) {
	b.table.Unwind(w.stacks, false)
	b.merger.MergeAll(w.holds, w.block)
	b.windows.Add(w.joined)
}

// doRest is do at the end: a stack that could not be unwound yet never will be.
func (b *backlog) doRest(w handoverWork) {
	b.table.Unwind(w.stacks, true)
	b.merger.MergeAll(w.holds, w.block)
	b.windows.Add(w.joined)
}

// tell calls the user's function.
func (b *backlog) tell(p Progress) {
	if b.cfg.Progress != nil {
		b.cfg.Progress(p)
	}
}
