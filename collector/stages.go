package collector

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// The stages of a hold, in order.
const (
	stageStop         = iota // from the signal until the tracing thread knows
	stageBefore              // who it is, and what is due
	stageRegisters           // reading them
	stagePrefetch            // the pages that the last holds needed, in one call
	stagePages               // further ones, one by one
	stageInterpreting        // decoding included
	stageMatching            // which accesses are to the same block
	stageChoosing            // the one to be watched
	stageArming              // watchpoints
	stageRest                // until it is let go
	numStages
)

var stageNames = [numStages]string{"stop and wake-up", "preparing", "registers", "pages at once", "pages one by one", "interpreting", "matching", "choosing", "arming", "letting go"}

// stages are where the time of holds goes.
type stages struct {
	all     [numStages]durations
	pages   lengths // read in one call
	calls   lengths // for pages one by one
	done    lengths // instructions
	entered time.Duration
	mark    time.Duration // when the last stage ended
}

// enter begins a hold of a thread that stopped at since.
func (s *stages) enter(since, now time.Duration) {
	s.all[stageStop].add(now - since)
	s.entered, s.mark = now, now
}

// end ends a stage.
func (s *stages) end(stage int, now time.Duration) {
	s.all[stage].add(now - s.mark)
	s.mark = now
}

// read takes what reading ahead was, which ended now.
func (s *stages) read(spent ahead.Spent, now time.Duration) {
	s.all[stageRegisters].add(spent.Registers)
	s.all[stagePrefetch].add(spent.Prefetch)
	s.all[stagePages].add(spent.Pages)
	s.all[stageInterpreting].add(spent.Interpreting - spent.Pages)
	s.all[stageMatching].add(spent.Matching)
	s.all[stageChoosing].add(spent.Choosing)
	s.pages.add(spent.Prefetched)
	s.calls.add(spent.PageCalls)
	s.done.add(spent.Instructions)
	s.mark = now
}

// comment is the account's line about them, "" where nothing was read ahead.
func (s *stages) comment() string {
	if s.all[stageRegisters].last.n == 0 {
		return ""
	}
	var out []string
	for i := range s.all {
		out = append(out, fmt.Sprintf("%s %.1f/%.1f", stageNames[i], micros(s.all[i].quantile(.5)), micros(s.all[i].quantile(.99))))
	}
	return fmt.Sprintf("of a hold, µs at the median/p99: %s; %d pages at once and %d one by one, %d instructions at the median",
		strings.Join(out, ", "), s.pages.quantile(.5), s.calls.quantile(.5), s.done.quantile(.5))
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
