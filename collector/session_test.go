// Needs: root, bpf, watchpoint, gcc.
package collector

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

func needRoot(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, for BPF and ptrace")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: apt-get install gcc libc6-dev")
	}
}

// checkRecords wants no record to have a part that its kind does not have.
func checkRecords(t *testing.T, p *model.Profile) {
	t.Helper()
	for i := range p.Records {
		if err := p.Records[i].Check(); err != nil {
			t.Error(err)
		}
	}
}

func compilePattern(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "pattern")
	if out, err := exec.Command("gcc", "-O2", "-fno-omit-frame-pointer", "-o", bin, "../bench/patterns/pattern.c", "-lm").CombinedOutput(); err != nil {
		t.Fatalf("compile pattern.c: %v: %s", err, out)
	}
	return bin
}

// profilePattern profiles pattern by CPU time until it ends, and says how many
// nanoseconds one of its accesses took. If so many probes of the access rate are wanted, it is
// told when they were made, by SIGTERM: where others want the CPU, too, that takes longer.
func profilePattern(t *testing.T, bin string, cfg Config, probes int, args ...string) (*model.Profile, *Session, float64) {
	t.Helper()
	cmd := exec.Command(bin, args...)
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	cfg.PID, cfg.Source, cfg.Clock, cfg.Seed = cmd.Process.Pid, Clock, CPUTime, 1
	var s *Session
	cfg.Progress = func(Progress) {
		made := 0
		s.sampling.tracing.tracer.Do(func() { made = len(s.sampling.prober.Values) })
		if probes > 0 && made >= probes {
			cmd.Process.Signal(unix.SIGTERM)
			probes = 0
		}
	}
	var err error
	if s, err = Start(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // of a minute of CPU time, beside other work
	defer cancel()
	p, err := s.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	checkRecords(t, p)
	if ctx.Err() != nil {
		cmd.Process.Kill()
	}
	// The tracer has reaped the child; what it wrote is all there.
	cmd.Wait()
	return p, s, accessTime(t, out.String())
}

// accessTime is how many nanoseconds one of the pattern's accesses took, by what it has said.
func accessTime(t *testing.T, said string) (ns float64) {
	t.Helper()
	var accesses uint64
	if _, err := fmt.Sscanf(said, "ready\naccesses=%d ns=%f", &accesses, &ns); err != nil {
		t.Fatalf("pattern said %q: %v", said, err)
	}
	return ns
}

// A cyclic walk has one reuse time, which the program itself measures: the
// session must find it, whatever the machine's speed. (In shuffled order a lap
// of less than some milliseconds takes longer after a hold, when caches are cold.)
func TestKnownPattern(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := compilePattern(t)
	for _, burst := range []int{0, sharedBurst} {
		t.Run(fmt.Sprintf("burst %d", burst), func(t *testing.T) {
			const words, fewest = 100_000, 50
			var all, right, lost int64
			// What a hold takes on this machine decides how many the budget pays for.
			for end := time.Now().Add(time.Minute); all < fewest; {
				if time.Now().After(end) {
					t.Fatalf("%d observations in a minute", all)
				}
				p, s, ns := profilePattern(t, bin, Config{Burst: burst, Granularity: Word, Overhead: 0.05}, 0, "ordered", fmt.Sprint(words), "4")
				for _, r := range p.Records {
					all += r.Observations
					if r.Kind == model.Reuse && math.Abs(math.Log2(float64(r.Native)/(ns*words))) <= .5 {
						right += r.Observations
					}
					// Cut off before its time, it says nothing against.
					if r.Kind == model.Censored && float64(r.Native) < 2*ns*words {
						all -= r.Observations
					}
				}
				for _, c := range p.Counts {
					if model.LostBecause.Has(c.Name) {
						lost += c.N
					}
				}
				t.Logf("%d of %d observations near %.0f ns, %d lost; %v, %v", right, all, ns*words, lost, p.Counts, p.Comments)
				if !s.Exit().Exited {
					t.Error("the target's exit was not seen")
				}
			}
			if float64(right) < 0.9*float64(all) {
				t.Errorf("%d of %d observations in the right place", right, all)
			}
			if float64(lost) > 0.05*float64(all) {
				t.Errorf("lost %d of %d", lost, all)
			}
		})
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []Config{
		{},
		{PID: 1, Command: []string{"x"}},
		{PID: -1},
		{PID: 1, Overhead: 2},
		{PID: 1, Overhead: math.NaN()},
		{PID: 1, AccessRate: -1},
		{PID: 1, Period: time.Nanosecond},
		{PID: 1, Duration: -1},
		{PID: 1, Burst: -2},
		{PID: 1, Burst: MaxBurst + 1},
		{PID: os.Getpid()},
	} {
		if s, err := Start(c); err == nil {
			s.Close()
			t.Errorf("%+v: no error", c)
		}
	}
}
