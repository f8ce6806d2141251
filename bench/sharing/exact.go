package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/trace"
)

// record records the command under the engine.
func record(file, command string) error {
	args := []string{"trace", "record", "-q", "--engine", *engine, "-o", file}
	if kept() {
		args = append(args, "--ordered")
	}
	_, err := run(append(append(args, "--"), strings.Fields(command)...)...)
	return err
}

// truth is the exact answer, in touches of words, and what a profile knows of it
// whose samples are perfect.
type truth struct {
	Accesses, Touches float64
	Threads           int
	Times, Distances  *model.Hist
	Epochs            []model.Epoch // of uses, epochsPerTrace of as many touches
	Sampled           []model.Record
}

// load reads what save has written.
func load(file string) (*truth, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	x := &truth{}
	if err := json.Unmarshal(b, x); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	bins := model.LogBins(exactBins)
	x.Times.Bins, x.Distances.Bins = bins, bins
	for i := range x.Epochs {
		x.Epochs[i].Times.Bins = bins
	}
	return x, nil
}

func (x *truth) save(file string) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

// exactBins are fine enough for the conversion of times.
const exactBins = 10

// evenWindow is several turns of the engine's threads.
const evenWindow = 1 << 22

// mixedWindow is what two threads do in a microsecond: sooner none waits for another by a system call. Who is faster
// within it is the engine's doing, as when it translates code or its buffers' pages come.
const mixedWindow = 1 << 12

const (
	epochsPerTrace = 128  // as many as a profile has at most
	perfectSamples = 3000 // of a trace
	readAhead      = 2047 // touches, as a timed source does
)

// exactly reads a recording twice: how many touches there are says how long an epoch is.
func exactly(stack model.StackKind, file string) (*truth, error) {
	x := &truth{Times: model.NewHist(model.LogBins(exactBins)), Distances: model.NewHist(model.LogBins(exactBins))}
	threads := map[int32]bool{}
	if err := eachTouch(stack, file, func(t *exact.Touch) {
		x.Touches++
		threads[t.Thread] = true
	}, &x.Accesses); err != nil {
		return nil, err
	}
	x.Threads = len(threads)
	r := rand.New(rand.NewPCG(1, 2))
	length := x.Touches / epochsPerTrace
	position := map[int32]float64{} // touches of each stack
	epochs := map[int32][]*model.Hist{}
	of := func(thread int32, at float64) (int, *model.Hist) {
		n := int(at / length)
		for len(epochs[thread]) <= n {
			epochs[thread] = append(epochs[thread], model.NewHist(model.LogBins(exactBins)))
		}
		return n, epochs[thread][n]
	}
	err := eachTouch(stack, file, func(t *exact.Touch) {
		thread := t.Thread
		if stack == model.StackShared {
			thread = 0
		}
		now := position[thread]
		position[thread]++
		x.Times.AddKind(t.Kind, t.Time, 1)
		x.Distances.AddKind(t.Kind, t.Dist, 1)
		at := now
		if t.Kind == model.Reuse {
			at -= float64(t.Time)
		}
		// Of what was never touched again, or too late, it is only known that there is as
		// much as of what comes for the first time, or too late: where it was is not.
		n, h := of(thread, at)
		h.AddKind(t.Kind, t.Time, 1)
		if r.Float64()*x.Touches >= perfectSamples {
			return
		}
		s := model.Record{Kind: t.Kind, TID: int(thread), Epoch: n + 1, Stack: stack, Weight: model.Weight{Observations: 1, Accesses: 1}}
		if t.Kind == model.Reuse {
			s.Time = t.Time
			if t.Time <= readAhead {
				s.Exact, s.Distinct = true, t.Dist+1
			}
		} else if t.Kind == model.Invalidated {
			s.Kind = model.Cold // as in scores, where the two are one
		}
		x.Sampled = append(x.Sampled, s)
	}, nil)
	for thread, all := range epochs {
		for _, h := range all {
			x.Epochs = append(x.Epochs, model.Epoch{Thread: int(thread), Length: length, Times: h})
		}
	}
	return x, err
}

func eachTouch(stack model.StackKind, file string, f func(*exact.Touch), accesses *float64) error {
	r, err := trace.OpenFile(file)
	if err != nil {
		return err
	}
	defer r.Close()
	var stacks exact.Stacks
	if stack == model.StackPrivate {
		stacks, err = exact.NewPrivateStacks(model.WordBytes)
	} else {
		stacks, err = exact.NewSharedStack(model.WordBytes)
	}
	if err != nil {
		return err
	}
	source := trace.NewSource(r.Reader)
	next := source.NextBatch
	switch *order {
	case "even":
		next = (&evenly{window: evenWindow, next: source.NextBatch}).batch
	case "mixed":
		next = (&evenly{window: mixedWindow, mixed: rand.New(rand.NewPCG(5, 6)), next: source.NextBatch}).batch
	}
	for batch := next(); len(batch) > 0; batch = next() {
		if accesses != nil {
			*accesses += float64(len(batch))
		}
		if err := stacks.Add(batch, f); err != nil {
			return err
		}
	}
	return source.Err()
}

// byEpochs is what the conversion makes of the exact times, each epoch by itself.
func (x *truth) byEpochs() (*model.Hist, error) {
	c, err := model.NewTimeLocal(x.Epochs)
	if err != nil {
		return nil, err
	}
	out := model.NewHist(x.Times.Bins)
	for i, e := range x.Epochs {
		if err := c.Stacks(out, i, e.Times); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// perfectly is what a profile makes of n perfect samples, or of all there are.
func (x *truth) perfectly(n int) (*model.Hist, error) {
	r := rand.New(rand.NewPCG(3, 4))
	r.Shuffle(len(x.Sampled), func(i, j int) { x.Sampled[i], x.Sampled[j] = x.Sampled[j], x.Sampled[i] })
	p := &model.Profile{Block: model.WordBytes, BinsPerOctave: 32, Records: x.Sampled[:min(n, len(x.Sampled))]}
	h, err := p.Stacks(model.LogBins(exactBins))
	if err != nil {
		return nil, fmt.Errorf("perfect samples: %w", err)
	}
	return h, nil
}
