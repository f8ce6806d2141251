package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// selfTest is a short session on a program whose reuse time is known.
type selfTest struct {
	Words      int              `json:"words"`          // touched in turn
	Duration   time.Duration    `json:"duration_ns"`    // of the session
	Expected   float64          `json:"expected"`       // reuse time in the clock's unit
	Unit       string           `json:"unit"`           //
	Median     float64          `json:"median"`         // of the measured reuse times
	Pairs      int              `json:"pairs"`          // observations of a reuse
	Right      float64          `json:"right_share"`    // of the observations that tell, within the octave about Expected
	Censored   float64          `json:"censored_share"` // of all observations: given up before that octave's end, which tells nothing
	Lost       float64          `json:"lost_share"`     // of the samples held
	Losses     []model.Count    `json:"losses,omitempty"`
	Counts     []model.Count    `json:"counts,omitempty"`
	Comments   []string         `json:"comments,omitempty"`
	Resolution float64          `json:"resolution"`          // of the clock, in Unit
	ReadAhead  int64            `json:"read_ahead"`          // accesses
	Unwatched  bool             `json:"unwatched,omitempty"` // nothing is watched here, so that there are no pairs
	Source     collector.Choice `json:"source"`
	Clock      collector.Choice `json:"clock"`
	HeldP50    time.Duration    `json:"held_p50_ns"`
	HeldP99    time.Duration    `json:"held_p99_ns"`
	// Programs is the time that each BPF program took a run; traps that the
	// session tried itself out with are in it.
	Programs []sampler.ProgramTime `json:"programs,omitempty"`
}

const (
	selfTestDuration = 2 * time.Second
	selfTestLongest  = 18 * time.Second // beside other work the program has a CPU only now and then
	selfTestOverhead = 0.2
	minPairs         = 20
)

// knownTarget is the program under test, running.
type knownTarget struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

func startKnownTarget(words int) (*knownTarget, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start test program: %w", err)
	}
	cmd := exec.Command(self, knownTargetArg, strconv.Itoa(words))
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // the runtime's signals are no part of the walk
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start test program: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start test program: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start test program: %w", err)
	}
	t := &knownTarget{cmd, stdin, bufio.NewReader(stdout)}
	if line, err := t.out.ReadString('\n'); err != nil || line != "ready\n" {
		t.stop()
		return nil, fmt.Errorf("start test program: it said %q: %w", line, err)
	}
	return t, nil
}

// stop ends the program and returns the median time of its rounds in
// nanoseconds.
func (t *knownTarget) stop() (float64, error) {
	t.stdin.Close()
	line, err := t.out.ReadString('\n')
	_ = t.cmd.Wait()
	if err != nil {
		return 0, fmt.Errorf("end test program: %w", err)
	}
	median, _, _ := strings.Cut(line, " ")
	return strconv.ParseFloat(median, 64)
}

// onlyRead says whether it read ahead, and that is all there is to see here.
func (t *selfTest) onlyRead() bool { return t.Unwatched && t.ReadAhead > 0 }

// runSelfTest profiles the known target with cfg and compares: for longer, if that was too short to tell anything. The
// target is seen by probe, too, before the first session starts.
func runSelfTest(cfg collector.Config, probe func(pid int)) (t *selfTest, err error) {
	for cfg.Duration = selfTestDuration; cfg.Duration <= selfTestLongest; cfg.Duration *= 3 {
		if t, err = selfTestOf(cfg, probe); err != nil || t.Pairs >= minPairs || t.onlyRead() {
			break
		}
		probe = func(int) {}
	}
	return t, err
}

func selfTestOf(cfg collector.Config, probe func(pid int)) (*selfTest, error) {
	target, err := startKnownTarget(selfTestWords)
	if err != nil {
		return nil, err
	}
	probe(target.cmd.Process.Pid)
	cfg.PID = target.cmd.Process.Pid
	cfg.Overhead = selfTestOverhead
	cfg.Granularity = collector.Word // what is known of the target
	// A kernel that can't count leaves the figure out.
	if counting, err := sampler.CountProgramTime(); err == nil {
		defer counting.Close()
	}
	s, err := collector.Start(cfg)
	if err != nil {
		target.stop()
		return nil, err
	}
	defer s.Close()
	p, err := s.Wait(context.Background())
	round, stopErr := target.stop()
	if err := errors.Join(err, stopErr); err != nil {
		return nil, err
	}
	t := &selfTest{
		Words:      selfTestWords,
		Duration:   cfg.Duration,
		Unit:       p.Clock.Unit,
		Resolution: p.Clock.Resolution,
		HeldP50:    s.HoldTime(.5),
		HeldP99:    s.HoldTime(.99),
	}
	t.Source, t.Clock = s.Choices()
	if t.Programs, err = s.ProgramTimes(); err != nil {
		return nil, err
	}
	t.Expected = round
	switch t.Unit {
	case sampler.Accesses:
		t.Expected = selfTestWords
	case sampler.Instructions:
		t.Expected = selfTestWords * walkInstructions
	}
	t.Counts, t.Comments = p.Counts, p.Comments
	t.ReadAhead, t.Unwatched = p.CountOf(model.ReadAhead), p.Unwatched()
	t.judge(p)
	return t, nil
}

// judge fills in what the profile says. An observation is right if it is a
// reuse within half an octave of the expected time, and wrong if it is another
// or was still without one later than that. One given up before, for its slot
// went to another sample, is neither.
func (t *selfTest) judge(p *model.Profile) {
	var right, censored, all, lost float64
	var times []float64
	for _, r := range p.Records {
		n := float64(r.Observations)
		all += n
		octaves := math.Log2(float64(r.Native) / t.Expected)
		if r.Kind != model.Reuse {
			if r.Kind == model.Censored && octaves <= .5 {
				censored += n
			}
			continue
		}
		t.Pairs += int(r.Observations)
		times = append(times, float64(r.Native))
		if math.Abs(octaves) <= .5 {
			right += n
		}
	}
	for _, c := range p.Counts {
		if model.LostBecause.Has(c.Name) {
			lost += float64(c.N)
			t.Losses = append(t.Losses, c)
		}
	}
	holds := float64(p.CountOf(model.Holds))
	if all > censored {
		t.Right = right / (all - censored)
		t.Censored = censored / all
	}
	if holds > 0 {
		t.Lost = lost / holds
	}
	t.Median = median(times)
}
