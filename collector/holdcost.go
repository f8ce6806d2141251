package collector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler"
)

// What a thread loses by a hold besides the time it is held, the signal and what has left its caches and its branch
// history meanwhile, is no fixed share of that time. It is measured on a program of rdx's own, whose progress is counted,
// by turns with holds and without, at two lengths of holds.

// HoldCost is what a hold costs a thread after its end.
type HoldCost struct {
	After time.Duration   // CPU time
	Error time.Duration   // its standard error
	Held  []time.Duration // median length of the holds it was measured with
	Each  []time.Duration // what one of these cost
	Holds int
	// Busy: the program did not have a CPU whenever it wanted one. Who else ran meanwhile has left its own in the
	// caches: that costs more.
	Busy bool
}

const (
	// holdCostTurns with holds, and as many without, at each length: a turn is a tick.
	holdCostTurns = 10
	// holdCostPeriod is the CPU time between two holds of the measurement.
	holdCostPeriod = time.Millisecond
	// A measured cost outside of these is chance, or another machine's.
	leastHoldCost, mostHoldCost = time.Microsecond, time.Millisecond
)

// Valid says whether it can be, or is not known: what was kept may be anybody's.
func (c *HoldCost) Valid() bool {
	return c.After == 0 || c.After >= leastHoldCost && c.After <= mostHoldCost
}

// holdCostBursts are the lengths, in accesses read ahead.
var holdCostBursts = []int{255, sharedBurst}

// MeasureHoldCost takes five seconds. ErrHoldCost says that the machine was too busy, or that there is nothing to
// measure, as a counter is the source.
func MeasureHoldCost(ctx context.Context) (HoldCost, error) {
	var c HoldCost
	var costs, errs []float64
	for _, burst := range holdCostBursts {
		each, err := costOfHolds(ctx, burst)
		if err != nil {
			return c, fmt.Errorf("measure what a hold costs: %w", err)
		}
		c.Held, c.Each, c.Holds = append(c.Held, each.held), append(c.Each, time.Duration(each.cost)), c.Holds+each.holds
		c.Busy = c.Busy || each.busy
		costs, errs = append(costs, each.cost), append(errs, each.err)
	}
	cost, err := meanOfTwo(costs, errs)
	c.After, c.Error = time.Duration(cost), time.Duration(err)
	if c.After == 0 || !c.Valid() || c.Error > max(c.After/2, 20*time.Microsecond) {
		return c, fmt.Errorf("measure what a hold costs: %v ± %v after %d holds: %w", c.After, c.Error, c.Holds, ErrHoldCost)
	}
	return c, nil
}

// ErrHoldCost is to be tried again at another time.
var ErrHoldCost = errors.New("that can't be (try again on a less busy machine, or give it by --hold-cost)")

// meanOfTwo is weighted by the errors; where these don't explain how far the two are apart, that is the error.
func meanOfTwo(v, errs []float64) (mean, err float64) {
	var sum, weights float64
	for i := range v {
		w := 1 / (errs[i] * errs[i])
		sum, weights = sum+w*v[i], weights+w
	}
	return sum / weights, max(1/math.Sqrt(weights), math.Abs(v[0]-v[1])/2)
}

// holdsCost is what holds of one length cost.
type holdsCost struct {
	held      time.Duration
	cost, err float64 // of one
	holds     int
	busy      bool
}

func costOfHolds(ctx context.Context, burst int) (holdsCost, error) {
	target, err := startCounting()
	if err != nil {
		return holdsCost{}, err
	}
	defer target.stop()
	s, err := Start(Config{PID: target.cmd.Process.Pid, Context: ctx, Source: Clock, Clock: CPUTime, Overhead: 1, Burst: burst, Period: holdCostPeriod,
		Duration: time.Duration(2*holdCostTurns+4) * tickInterval, turns: &turns{target: target}})
	if err != nil {
		return holdsCost{}, err
	}
	defer s.Close()
	if _, err := s.Wait(ctx); err != nil {
		return holdsCost{}, err
	}
	c := holdsCost{held: s.HoldTime(.5)}
	c.cost, c.err, c.holds = s.sampling.cfg.turns.cost()
	c.busy = s.sampling.cfg.turns.busy()
	if c.holds == 0 || math.IsInf(c.err, 0) {
		return c, ErrHoldCost
	}
	return c, nil
}

// turns are stretches of a session in which each tick of a thread holds it, or none does, by turns.
type turns struct {
	target  *counting
	holding bool
	began   turn // as of its beginning
	of      []turn
}

// turn is what was done in one, or until its end.
type turn struct {
	holding  bool
	at       float64 // time, ns
	ran      float64 // CPU time without that of traps, ns
	progress float64
	holds    float64
}

// next ends a turn, and says whether threads are held in the next one.
func (s *turns) next(holds uint64, trapped time.Duration) (holding bool) {
	now := turn{at: float64(sampler.Monotonic()), ran: s.target.ran() - float64(trapped), progress: float64(s.target.progress()), holds: float64(holds)}
	if s.began.ran > 0 {
		s.of = append(s.of, turn{s.holding, now.at - s.began.at, now.ran - s.began.ran, now.progress - s.began.progress, now.holds - s.began.holds})
	}
	s.holding, s.began = !s.holding, now
	return s.holding
}

// busyShare of the time without holds that the program ran: if less, the machine was busy.
const busyShare = 0.9

func (s *turns) busy() bool {
	var lasted, ran float64
	for _, t := range s.of {
		if !t.holding {
			lasted, ran = lasted+t.at, ran+t.ran
		}
	}
	return ran < busyShare*lasted
}

// cost of a hold: how much more CPU time the progress of a turn with holds took than by those before and after it, at the
// median, with the standard error.
func (s *turns) cost() (median, err float64, holds int) {
	var each []float64
	for i := 2; i+1 < len(s.of); i++ { // the first ones bring the program into caches
		before, t, after := s.of[i-1], s.of[i], s.of[i+1]
		if !t.holding || t.holds < 5 || before.progress <= 0 || after.progress <= 0 {
			continue
		}
		bare := (before.ran + after.ran) / (before.progress + after.progress)
		each = append(each, (t.ran-bare*t.progress)/t.holds)
		holds += int(t.holds)
	}
	if len(each) < holdCostTurns/2 {
		return 0, math.Inf(1), holds
	}
	slices.Sort(each)
	q := func(f float64) float64 { return each[int(f*float64(len(each)-1))] }
	// Of the median of normal errors: 1.25 standard deviations, which are 0.74 of what is between the quartiles.
	return q(.5), max(1.25*.74*(q(.75)-q(.25))/math.Sqrt(float64(len(each))), 1), holds
}

// takeTurn is called at each tick of a session that takes turns.
func (s *tickPace) takeTurn(stats sampler.Stats, trapped time.Duration) {
	accept := 0.0
	if s.cfg.turns.next(stats.Holds, trapped) {
		accept = 1
	}
	s.budget.force(accept)
	s.accept()
}

// CountingArg is the hidden first argument with which rdx becomes the program that is held: main must call RunCounting.
const CountingArg = "__count"

// counting is that program, started.
type counting struct {
	cmd   *exec.Cmd
	page  []byte
	input *os.File
}

// startCounting starts it. It ends with this process, at the latest.
func startCounting() (*counting, error) {
	fail := func(err error) (*counting, error) { return nil, fmt.Errorf("start a program to be held: %w", err) }
	self, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	fd, err := unix.MemfdCreate("rdx-progress", unix.MFD_CLOEXEC)
	if err != nil {
		return fail(err)
	}
	shared := os.NewFile(uintptr(fd), "progress")
	defer shared.Close()
	if err := shared.Truncate(int64(os.Getpagesize())); err != nil {
		return fail(err)
	}
	page, err := unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fail(err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		return fail(errors.Join(err, unix.Munmap(page)))
	}
	defer in.Close()
	cmd := exec.Command(self, CountingArg)
	cmd.Stdin, cmd.ExtraFiles = in, []*os.File{shared}
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // the runtime's signals are stops, too
	c := &counting{cmd: cmd, page: page, input: out}
	if err := cmd.Start(); err != nil {
		return fail(errors.Join(err, out.Close(), unix.Munmap(page)))
	}
	for range 1000 {
		if c.progress() > 0 {
			return c, nil
		}
		time.Sleep(time.Millisecond)
	}
	c.stop()
	return fail(errors.New("it does not run"))
}

func (c *counting) progress() uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&c.page[0])).Load()
}

// ran is its CPU time in ns.
func (c *counting) ran() float64 {
	var ts unix.Timespec
	// CPUCLOCK_SCHED of the process, see clock_getcpuclockid(3).
	if unix.ClockGettime(int32(^c.cmd.Process.Pid<<3|2), &ts) != nil {
		return 0
	}
	return float64(ts.Nano())
}

func (c *counting) stop() {
	c.input.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	_ = unix.Munmap(c.page)
}

// RunCounting works and counts what it has done until its standard input ends: a walk through a table in no order, and
// branches by what is found there, as of a program whose data are in the second cache. It returns an exit code.
func RunCounting() int {
	const shared = 3 // the first of exec.Cmd's ExtraFiles
	page, err := unix.Mmap(shared, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rdx:", err)
		return 1
	}
	runtime.LockOSThread()
	go func() {
		var b [1]byte
		for {
			if n, err := os.Stdin.Read(b[:]); n == 0 || err != nil {
				os.Exit(0)
			}
		}
	}()
	table := make([]uint32, 64<<10) // 256 KiB
	at := uint32(1)
	for i := range table {
		at = at*1664525 + 1013904223 // Numerical Recipes' generator
		table[i] = at
	}
	done := (*atomic.Uint64)(unsafe.Pointer(&page[0]))
	for sum := uint32(0); ; done.Add(1) {
		for range 64 {
			sum, at = countingStep(table, sum, at)
		}
		page[8] = byte(sum) // so that it is not compiled away
	}
}

//go:noinline
func countingStep(table []uint32, sum, at uint32) (uint32, uint32) {
	v := table[at%uint32(len(table))]
	switch v >> 13 & 7 {
	case 0:
		sum += v
	case 1:
		table[(at+1)%uint32(len(table))] ^= sum
	case 2:
		sum ^= v >> 3
	case 3:
		sum -= table[(at+16)%uint32(len(table))]
	case 4, 5:
		sum = sum<<1 | sum>>31
	default:
		sum++
	}
	return sum, at*1664525 + 1013904223 + v&1
}
