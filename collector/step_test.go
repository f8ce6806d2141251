//go:build amd64

// Needs: root, bpf, watchpoint, gcc.
package collector

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// laps makes nine accesses a round, eight to five words in the order A B A C D B E E, and one
// that walks through an array. Of every million rounds it keeps in the file that is its
// argument how many ns of CPU time one took, behind how many of these there are.
const laps = `#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/mman.h>
enum { words = 65536, most = 32768 };
static long word[5 * 8], array[words];
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}
int main(int argc, char **argv)
{
	char end;
	long at = 0, took = 0;
	double *ns = mmap(0, 8 * (most + 1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, open(argv[1], O_RDWR), 0), since = now();
	extern char lapped[], lapsend[];
	printf("%p %p\n", lapped, lapsend);
	fflush(stdout);
	fcntl(0, F_SETFL, O_NONBLOCK);
	do {
		long n = 1000000;
		__asm__ volatile("lapped:\n1:\n\t"
			"mov (%2), %%rax\n\tmov 64(%2), %%rax\n\tmov (%2), %%rax\n\tmov 128(%2), %%rax\n\tmov 192(%2), %%rax\n\t"
			"mov 64(%2), %%rax\n\tmov 256(%2), %%rax\n\tmov 256(%2), %%rax\n\tmov (%3,%1,8), %%rax\n\t"
			"inc %1\n\tand $65535, %1\n\tdec %0\n\tjnz 1b\nlapsend:"
			: "+r"(n), "+r"(at) : "r"(word), "r"(array) : "rax", "cc", "memory");
		ns[1 + took] = (now() - since) / 1000000;
		since = now();
		*(volatile double *)ns = ++took;
	} while (read(0, &end, 1) != 0 && took < most);
	return 0;
}
`

const (
	lapAccesses = 9
	lapWords    = 65536
	lapTime     = 32768 // the most times it keeps
)

// lapTimed is the times kept in the file, in ns a round.
func lapTimed(t *testing.T, file string) (ns []float64) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])) }
	for i := range int(at(0)) {
		ns = append(ns, at(1+i))
	}
	return ns
}

// lapNS is the median of the times, and what share of all time went at a pace within a
// factor of 2 of it: other work on the machine changes the program's pace.
func lapNS(ns []float64) (median, steady float64) {
	sorted := slices.Sorted(slices.Values(ns))
	median = sorted[len(sorted)/2]
	all := 0.
	for _, n := range ns {
		all += n
		if math.Abs(math.Log2(n/median)) <= 1 {
			steady += n
		}
	}
	return median, steady / all
}

// lapTimes is what share of its accesses, in ninths, has a reuse time, by what the
// order of accesses says.
var lapTimes = map[uint64]float64{1: 1, 2: 1, 5: 1, 4: 1, 7: 1, 8: 1, 9: 2}

// Both engines find what the order of the program's accesses says: each reuse time
// within the burst, to the access, with its share, and the rest far away, where the
// watchpoint, which begins after the use with the one and at the use with the
// other, finds it in time.
func TestEnginesByConstruction(t *testing.T) {
	needs.Watchpoints(t)
	shares, fewest := make(map[string]map[uint64]float64), math.Inf(1)
	for _, engine := range []string{Interpret, Step} {
		t.Run(engine, func(t *testing.T) {
			needRoot(t)
			bin := filepath.Join(t.TempDir(), "laps")
			cc := exec.Command("gcc", "-O1", "-o", bin, "-x", "c", "-")
			cc.Stdin = strings.NewReader(laps)
			if out, err := cc.CombinedOutput(); err != nil {
				t.Fatalf("compile: %v: %s", err, out)
			}
			file := filepath.Join(t.TempDir(), "times")
			if err := os.WriteFile(file, make([]byte, 8*(lapTime+1)), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(bin, file)
			stdin, _ := cmd.StdinPipe()
			stdout, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			out := bufio.NewReader(stdout)
			var begin, end uint64 // of the rounds' instructions
			if _, err := fmt.Fscanf(out, "%v %v\n", &begin, &end); err != nil {
				t.Fatalf("what the program says: %v", err)
			}
			period := 2 * time.Millisecond
			if engine == Step {
				period /= 10 // the budget makes its holds rare enough
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			s, err := Start(Config{PID: cmd.Process.Pid, BurstEngine: engine, Burst: 60, Granularity: Word, Source: Clock, Clock: CPUTime, Overhead: .5, Seed: 1, Period: period, stepLimit: time.Second,
				Progress: func(p Progress) {
					if p.Samples >= 200 {
						cancel()
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			before := len(lapTimed(t, file))
			p, err := s.Wait(ctx)
			if err != nil {
				t.Fatal(err)
			}
			times := lapTimed(t, file)[before:]
			stdin.Close()
			cmd.Wait()
			if len(times) < 10 {
				t.Fatalf("%d million rounds in the session", len(times))
			}
			roundNS, steady := lapNS(times)

			share := make(map[uint64]float64)
			var all, far, timed, right, between float64
			n := 0
			for _, r := range p.Records {
				if at := r.Use[0].Address; at < begin || at >= end {
					between += r.Accesses // the millions of rounds
					continue
				}
				all += r.Accesses
				n += int(r.Observations)
				switch {
				case r.Exact && r.Kind == model.Reuse:
					share[r.Time] += r.Accesses
				default:
					far += r.Accesses
					if r.Kind != model.Reuse {
						break // of a hold's uses with no reuse so soon one is watched
					}
					timed += r.Accesses
					if math.Abs(math.Log2(float64(r.Native)/(lapWords*roundNS))) <= 1 {
						right += r.Accesses
					}
				}
			}
			// The observations of a hold lie in few rounds, so that it is the holds that are
			// independent.
			if len(s.sampling.holds.made) < 40 {
				t.Fatalf("%d holds; %v", len(s.sampling.holds.made), p.Counts)
			}
			if between > .05*all {
				t.Errorf("%.3f of the accesses are not of the rounds", between/all)
			}
			tolerance := 4 * math.Sqrt(1./lapAccesses/float64(len(s.sampling.holds.made)))
			for time, ninths := range lapTimes {
				if got, want := share[time]/all, ninths/lapAccesses; math.Abs(got-want) > tolerance {
					t.Errorf("reuse time %d: share %.3f, want %.3f", time, got, want)
				}
			}
			for time := range share {
				share[time] /= all
				if lapTimes[time] == 0 {
					t.Errorf("reuse time %d, which no access has: share %.4f", time, share[time])
				}
			}
			shares[engine], fewest = share, min(fewest, float64(len(s.sampling.holds.made)))
			if math.Abs(far/all-1./lapAccesses) > tolerance {
				t.Errorf("%.3f is far, want %.3f", far/all, 1./lapAccesses)
			}
			t.Logf("%d observations; far %.3f, of it %.2f timed, in place %.2f of a round of %.2f ns, as was %.2f of the program's time; %v; %v", n, far/all, timed/far, right/timed, roundNS, steady, share, p.Counts)
			t.Log(p.Comments)
			// Each hold is one burst: ticks in the course of it hold nobody.
			bursts := int64(0)
			for _, c := range p.Counts {
				if model.BurstEnded.Has(c.Name) {
					bursts += c.N
				}
				if model.LostBecause.Has(c.Name) {
					bursts += c.N / int64(s.sampling.holds.perHoldWanted())
				}
			}
			if holds := p.CountOf(model.Holds); bursts > holds || bursts < holds-1 {
				t.Errorf("%d holds, %d bursts", holds, bursts)
			}
			if timed < .7*far {
				t.Errorf("%.2f of what is far was timed", timed/far)
			}
			if right/timed < .8*steady {
				t.Errorf("%.2f of what is far and timed is within a factor of 2 of %.0f ns, as was %.2f of the program's time", right/timed, lapWords*roundNS, steady)
			}
		})
	}
	for time, interpreted := range shares[Interpret] {
		if d := shares[Step][time] - interpreted; len(shares) == 2 && math.Abs(d) > 4*math.Sqrt(2./lapAccesses/fewest) {
			t.Errorf("reuse time %d: share %.3f by steps, %.3f interpreted", time, shares[Step][time], interpreted)
		}
	}
}
