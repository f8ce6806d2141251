//go:build amd64

// Needs: root, bpf, watchpoint, gcc.
package collector

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// laps makes nine accesses a round, eight to five words in the order A B A C D B E E, and one
// that walks through an array. At its end it says how many ns a round took.
const laps = `#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
enum { words = 65536 };
static long word[5 * 8], array[words];
int main(void)
{
	char end;
	long rounds = 0, at = 0;
	struct timespec t;
	puts("ready");
	fflush(stdout);
	fcntl(0, F_SETFL, O_NONBLOCK);
	do {
		long n = 1000000;
		rounds += n;
		__asm__ volatile("1:\n\t"
			"mov (%2), %%rax\n\tmov 64(%2), %%rax\n\tmov (%2), %%rax\n\tmov 128(%2), %%rax\n\tmov 192(%2), %%rax\n\t"
			"mov 64(%2), %%rax\n\tmov 256(%2), %%rax\n\tmov 256(%2), %%rax\n\tmov (%3,%1,8), %%rax\n\t"
			"inc %1\n\tand $65535, %1\n\tdec %0\n\tjnz 1b"
			: "+r"(n), "+r"(at) : "r"(word), "r"(array) : "rax", "cc", "memory");
	} while (read(0, &end, 1) != 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	printf("%f\n", (t.tv_sec * 1e9 + t.tv_nsec) / rounds);
	return 0;
}
`

const (
	lapAccesses = 9
	lapWords    = 65536
)

// lapTimes is what share of its accesses, in ninths, has a reuse time, by what the
// order of accesses says.
var lapTimes = map[uint64]float64{1: 1, 2: 1, 5: 1, 4: 1, 7: 1, 8: 1, 9: 2}

// Both engines find what the order of the program's accesses says: each reuse time
// within the burst, to the access, with its share, and the rest far away, where the
// watchpoint, which begins after the use with the one and at the use with the
// other, finds it in time.
func TestEnginesByConstruction(t *testing.T) {
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
			cmd := exec.Command(bin)
			stdin, _ := cmd.StdinPipe()
			stdout, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			out := bufio.NewReader(stdout)
			if line, _ := out.ReadString('\n'); line != "ready\n" {
				t.Fatalf("program says %q", line)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			s, err := Start(Config{PID: cmd.Process.Pid, BurstEngine: engine, Burst: 60, Granularity: Word, Source: Clock, Clock: CPUTime, Overhead: .5, Seed: 1, Gap: 200 * time.Microsecond, stepLimit: time.Second,
				Progress: func(p Progress) {
					if p.Samples >= 200 {
						cancel()
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			p, err := s.Wait(ctx)
			if err != nil {
				t.Fatal(err)
			}
			stdin.Close()
			var roundNS float64
			fmt.Fscanf(out, "%f\n", &roundNS)
			cmd.Wait()

			share := make(map[uint64]float64)
			var all, far, right float64
			n := 0
			for _, r := range p.Records {
				all += r.Accesses
				n += int(r.Observations)
				switch {
				case r.Exact && r.Kind == model.Reuse:
					share[r.Time] += r.Accesses
				default:
					far += r.Accesses
					if math.Abs(math.Log2(float64(r.Native)/(lapWords*roundNS))) <= 1 {
						right += r.Accesses
					}
				}
			}
			// The observations of a hold lie in few rounds, so that it is the holds that are
			// independent.
			if s.holdsUsed < 40 {
				t.Fatalf("%d holds; %v", s.holdsUsed, p.Counts)
			}
			tolerance := 4 * math.Sqrt(1./lapAccesses/float64(s.holdsUsed))
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
			shares[engine], fewest = share, min(fewest, float64(s.holdsUsed))
			if math.Abs(far/all-1./lapAccesses) > tolerance {
				t.Errorf("%.3f is far, want %.3f", far/all, 1./lapAccesses)
			}
			t.Logf("%d observations; far %.3f, of it in place %.2f of a round of %.2f ns; %v; %v", n, far/all, right/far, roundNS, share, p.Counts)
			t.Log(p.Comments)
			// Each hold is one burst: ticks in the course of it hold nobody.
			counts := make(map[string]int64)
			bursts := int64(0)
			for _, c := range p.Counts {
				counts[c.Name] = c.N
				if strings.HasPrefix(c.Name, "bursts ended: ") {
					bursts += c.N
				}
				if strings.HasPrefix(c.Name, "lost: ") {
					bursts += c.N / int64(s.perHoldWanted())
				}
			}
			if holds := counts["holds"]; bursts > holds || bursts < holds-1 {
				t.Errorf("%d holds, %d bursts", holds, bursts)
			}
			if right < .8*far {
				t.Errorf("%.2f of what is far is within a factor of 2 of %.0f ns", right/far, lapWords*roundNS)
			}
		})
	}
	for time, interpreted := range shares[Interpret] {
		if d := shares[Step][time] - interpreted; len(shares) == 2 && math.Abs(d) > 4*math.Sqrt(2./lapAccesses/fewest) {
			t.Errorf("reuse time %d: share %.3f by steps, %.3f interpreted", time, shares[Step][time], interpreted)
		}
	}
}
