package collector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// A process of many threads is watched by CPU: by registers of all CPUs, taken before
// they are needed, moved while a thread is held, and given back when none is traced any
// more. Only the moves are on the target's time.

// cpuSlots: a datum watched on all CPUs takes one of the four registers of
// its own thread and one of every CPU.
const cpuSlots = sampler.MaxCPUSlots

// registersEvery is how often it is looked whether CPUs have come or gone, and registers
// that were refused are asked for again.
const registersEvery = time.Second

// registers are those of the CPUs. A slot that lacks one of them watches nothing, as
// what happens on that CPU would not be seen.
type registers struct {
	open   openRegister
	slots  int                        // in use
	both   bool                       // stacks are asked for
	writes [cpuSlots]bool             // by slot: watch for writes alone
	cpus   []int                      // online, as last looked
	of     [cpuSlots]map[int]register // by CPU

	asked   bool // the first answer is there
	refused error
	told    bool              // the user has been, that they are refused
	broken  []register        // to be closed
	due     time.Time         // of the next job
	done    chan *registerJob // nil unless one is under way

	taken, moved, failed int
	lastFailure          error
}

// register is a *sampler.Register, or a test's.
type register interface {
	Move(addr uint64, traps int) error
	Park() error
	Close() error
}

type openRegister func(cpu, slot int, writes bool) (register, error)

func registersOf(k *sampler.Kernel) openRegister {
	return func(cpu, slot int, writes bool) (register, error) { return k.OpenRegister(cpu, slot, writes) }
}

func newRegisters(open openRegister, slots int, stack string) *registers {
	r := &registers{open: open, slots: min(cpuSlots, slots), both: stack == BothStacks}
	for i := range r.of {
		r.of[i] = make(map[int]register)
		r.writes[i] = stack == PrivateStack || stack == BothStacks && i == 0
	}
	return r
}

// stack is what a slot can be watched for. With both stacks it is the draw for a slot
// that chooses, which does not look at the datum.
func (r *registers) stack(slot int) model.StackKind {
	if r.writes[slot%cpuSlots] {
		return model.StackPrivate
	}
	return model.StackShared
}

// registerJob takes what is missing and gives back what is not needed, away from
// the thread that holds others.
type registerJob struct {
	open     openRegister
	have     [cpuSlots][]int // CPUs, by slot in use
	writes   [cpuSlots]bool
	slots    int
	giveBack []register

	cpus   []int                      // found online
	opened [cpuSlots]map[int]register // by CPU
	err    error                      // why some could not be had
	closed error
}

func (r *registers) plan() *registerJob {
	j := &registerJob{open: r.open, writes: r.writes, slots: r.slots, giveBack: r.broken}
	for slot := range j.slots {
		for cpu := range r.of[slot] {
			j.have[slot] = append(j.have[slot], cpu)
		}
	}
	r.broken = nil
	return j
}

// begin begins a job if none is under way and it is time.
func (r *registers) begin(now time.Time, online func() ([]int, error)) {
	if r.done != nil || !now.After(r.due) {
		return
	}
	r.due = now.Add(registersEvery)
	j, done := r.plan(), make(chan *registerJob, 1)
	r.done = done
	go func() {
		j.run(online)
		done <- j
	}()
}

// collect is the job that was under way, if it is done, else nil.
func (r *registers) collect() (j *registerJob) {
	select {
	case j = <-r.done:
		r.done = nil
	default: // also if none is under way
	}
	return j
}

// atOnce does a job, as long as no thread is held.
func (r *registers) atOnce(online func() ([]int, error)) *registerJob {
	j := r.plan()
	j.run(online)
	r.due = time.Now().Add(registersEvery)
	return j
}

// refusal is why registers could not be had, once, for the user.
func (r *registers) refusal() error {
	if r.told || r.refused == nil {
		return nil
	}
	r.told = true
	return r.refused
}

func (j *registerJob) run(online func() ([]int, error)) {
	for _, r := range j.giveBack {
		j.closed = errors.Join(j.closed, r.Close())
	}
	var err error
	if j.cpus, err = online(); err != nil {
		j.err = err
		return
	}
	for slot := range j.slots {
		j.opened[slot] = make(map[int]register)
		for _, cpu := range j.cpus {
			if slices.Contains(j.have[slot], cpu) {
				continue
			}
			r, err := j.open(cpu, slot, j.writes[slot])
			if err != nil {
				j.err = err
				continue
			}
			j.opened[slot][cpu] = r
		}
	}
}

// put takes what a job has brought, and says whether there are CPUs that were not
// there before.
func (r *registers) put(j *registerJob) (more bool) {
	r.asked, r.refused = true, j.err
	if j.cpus == nil {
		return false
	}
	for _, cpu := range j.cpus {
		more = more || r.cpus != nil && !slices.Contains(r.cpus, cpu)
	}
	r.cpus = j.cpus
	for slot, opened := range j.opened {
		for cpu, reg := range opened {
			r.of[slot][cpu] = reg
			r.taken++
		}
		for cpu, reg := range r.of[slot] {
			if !slices.Contains(j.cpus, cpu) {
				r.drop(slot, cpu, reg)
			}
		}
	}
	return more
}

// drop has a register given back.
func (r *registers) drop(slot, cpu int, reg register) {
	delete(r.of[slot], cpu)
	r.broken = append(r.broken, reg)
}

// missing says why a slot watches nothing, "" if it does.
func (r *registers) missing(slot int) model.Reason {
	switch {
	case !r.asked:
		return model.RegistersAwaited
	case r.cpus != nil && len(r.of[slot]) == len(r.cpus):
		return ""
	case r.refused == nil:
		return model.RegisterFailed // and is not renewed yet
	}
	return model.RegistersRefused
}

// move has the slot's registers watch the word for so many traps each. If one can't,
// none does.
func (r *registers) move(slot int, word uint64, traps int) error {
	for cpu, reg := range r.of[slot] {
		if err := reg.Move(word, traps); err != nil {
			r.fail(slot, cpu, reg, err)
			return errors.Join(err, r.park(slot))
		}
	}
	r.moved++
	return nil
}

// park ends what the slot's registers watch. One that can't be parked takes as many traps as
// are left to it until it has been given back.
func (r *registers) park(slot int) (failed error) {
	for cpu, reg := range r.of[slot] {
		if err := reg.Park(); err != nil {
			r.fail(slot, cpu, reg, err)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// fail has a register renewed.
func (r *registers) fail(slot, cpu int, reg register, err error) {
	r.failed++
	r.lastFailure = err
	r.drop(slot, cpu, reg)
	r.due = time.Time{}
}

// close gives all back, when no target is traced any more.
func (r *registers) close() error {
	if r == nil {
		return nil
	}
	if r.done != nil {
		r.put(<-r.done)
	}
	var errs []error
	for slot := range r.of {
		for _, reg := range r.of[slot] {
			errs = append(errs, reg.Close())
		}
	}
	for _, reg := range r.broken {
		errs = append(errs, reg.Close())
	}
	return errors.Join(errs...)
}

func (r *registers) comments() []string {
	if r == nil {
		return nil
	}
	out := []string{fmt.Sprintf("watched by CPU, above %d other threads: %d debug registers of %d CPUs taken, moved to %d words; holds don't wait for registers", fewThreads, r.taken, len(r.cpus), r.moved)}
	if r.slots == 1 && r.both {
		out = append(out, "watched by CPU for private stacks alone, as there is but one slot")
	}
	if r.refused != nil {
		out = append(out, "not watched on all CPUs at the end, because: "+r.refused.Error())
	}
	if r.lastFailure != nil {
		out = append(out, fmt.Sprintf("%d debug registers of CPUs could not be moved and were taken anew, because: %v", r.failed, r.lastFailure))
	}
	return out
}
