// Needs: root, bpf, watchpoints, gcc.
package collector

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// twoRates takes turns: it goes along a chain that is in no cache, whose links it meets again
// a lap later, and then round a few words. It says what it did.
const twoRates = `
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <time.h>
enum { links = 400000, words = 256 };
static volatile uint64_t word[words];
static struct link { struct link *volatile next; } *chain;
static volatile int ended;
static void end(int sig) { ended = 1; }
static double cpu(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static __attribute__((noinline, aligned(4096))) struct link *chase(struct link *l, long n)
{
	while (n--)
		l = l->next;
	return l;
}
static __attribute__((noinline, aligned(4096))) uint64_t around(long laps)
{
	uint64_t sum = 0;
	for (; laps; laps--)
		for (int i = 0; i < words; i++)
			sum += word[i];
	return sum;
}
int main(int argc, char **argv)
{
	chain = malloc(links * sizeof *chain);
	uint32_t *order = malloc(links * sizeof *order), x = 1;
	for (int i = 0; i < links; i++)
		order[i] = i;
	for (int i = links - 1; i > 0; i--) {
		x = x * 1664525 + 1013904223;
		int j = (uint64_t)x * (i + 1) >> 32;
		uint32_t o = order[i]; order[i] = order[j]; order[j] = o;
	}
	for (int i = 0; i < links; i++)
		chain[order[i]].next = &chain[order[(i + 1) % links]];
	free(order);
	struct link *at = chain;
	uint64_t slow = 0, fast = 0, sum = 0;
	double before = cpu();
	at = chase(at, links);
	double turned = cpu();
	sum += around(10000);
	/* As long in each. */
	long laps = 4 * 10000 * (turned - before) / (cpu() - turned);
	double start = cpu(), ns, inSlow = 0, turns = 0;
	signal(SIGTERM, end);
	printf("ready\n");
	fflush(stdout);
	do {
		before = cpu();
		at = chase(at, 4 * links);
		turned = cpu();
		inSlow += turned - before;
		slow += 4 * links;
		before = cpu();
		sum += around(laps);
		fast += laps * words;
		laps = laps * (0.5 + 0.5 * (inSlow / ++turns) / (cpu() - before));
	} while ((ns = cpu() - start) < 6e9 || (!ended && ns < 60e9));
	printf("accesses=%lu ns=%f\n", slow + fast, ns / (slow + fast));
	FILE *f = fopen(argv[1], "w");
	fprintf(f, "%f %f %d\n", (double)fast / (slow + fast), 1 - inSlow / ns, (int)(sum + (uint64_t)at) & 1);
	fclose(f);
}`

// Half of the program's time goes into each of two loops, one far faster. With local rates the
// shares of reuses are those of accesses, without they are those of time.
func TestLocalRate(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := filepath.Join(t.TempDir(), "tworates")
	cc := exec.Command("gcc", "-O1", "-o", bin, "-x", "c", "-")
	cc.Stdin = strings.NewReader(twoRates)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v: %s", err, out)
	}
	said := filepath.Join(t.TempDir(), "said")
	// Of few probes all may be of one loop, and of 24 the error that is stated is more than 0.3 in one of four to eight runs. Of 48 it was
	// while others used the memory; then twice as many are to tell better.
	var p *model.Profile
	var s *Session
	var ns, stated float64
	for probes := 48; probes <= 96; probes *= 2 {
		p, s, ns = profilePattern(t, bin, Config{Burst: sharedBurst, Granularity: Word, Overhead: 0.05, MeasureRate: true, replayEagerly: true}, probes, said)
		if stated = statedError(p); stated <= 0.3 {
			break
		}
		t.Logf("%d probes: the stated error is %.0f %%", probes, 100*stated)
	}
	var trueShare, inTime float64
	if text, err := os.ReadFile(said); err != nil {
		t.Fatal(err)
	} else if _, err := fmt.Sscan(string(text), &trueShare, &inTime); err != nil {
		t.Fatal(err)
	}
	var fast, all, fastByTime, allByTime float64
	// Laps of the chain that are off by four octaves. In a fourth of them the other loop comes, truly.
	var laps, off, offByMean float64
	for i := range p.Records {
		if r := &p.Records[i]; r.Kind == model.Reuse || r.Kind == model.Censored {
			all += r.Accesses
			if r.Kind == model.Reuse && r.Time < 2048 {
				fast += r.Accesses
			}
			if r.Kind == model.Reuse && !r.Exact {
				const links = 400_000
				laps++
				if math.Abs(math.Log2(float64(r.Time)/links)) > 4 {
					off++
				}
				if math.Abs(math.Log2(float64(r.Native)*p.Clock.Rate/links)) > 4 {
					offByMean++
				}
			}
		}
	}
	for _, o := range s.sampling.kept.seen {
		if o.State == record.Done {
			allByTime += o.Times()
			if o.Counted > 0 && o.Kind == model.Reuse {
				fastByTime += o.Times()
			}
		}
	}
	local := false
	for _, c := range p.Comments {
		if strings.HasPrefix(c, "access rate") {
			t.Log(c)
		}
		local = local || strings.Contains(c, "samples are weighted by the rates of their code")
	}
	t.Logf("rate %.3f, truth %.3f; fast share %.4f, truth %.4f, by time %.3f, truth %.3f; %d probes, failed %v", p.Clock.Rate, 1/ns, fast/all, trueShare, fastByTime/allByTime, inTime, len(s.sampling.prober.Values), s.sampling.prober.Failed)
	t.Logf("of %v laps of the chain %.2f are off by four octaves, by the mean rate %.2f", laps, off/laps, offByMean/laps)
	if p.Clock.RateSource != "measured" || !local {
		t.Fatalf("no local rates: %d probes, failed %v", len(s.sampling.prober.Values), s.sampling.prober.Failed)
	}
	wrong := math.Abs(math.Log(p.Clock.Rate * ns))
	if wrong > 3*stated || stated > 0.3 {
		t.Errorf("rate %.3g, truth %.3g, stated error %.0f %%", p.Clock.Rate, 1/ns, 100*stated)
	}
	if got := fast / all; math.Abs(got-trueShare) > .05 {
		t.Errorf("short reuses are %.3f of all, truth %.3f", got, trueShare)
	}
	if got := fastByTime / allByTime; math.Abs(got-trueShare) < .3 {
		t.Errorf("without local rates they are %.3f, truth %.3f: the test tells nothing", got, trueShare)
	}
}

// statedError is the standard error of the rate that a profile states of its probes, as a share.
func statedError(p *model.Profile) (off float64) {
	for _, c := range p.Comments {
		if _, said, ok := strings.Cut(c, "standard error "); ok && strings.HasPrefix(c, "access rate: ") {
			fmt.Sscanf(said, "%f", &off)
			return off / 100
		}
	}
	return 0
}
