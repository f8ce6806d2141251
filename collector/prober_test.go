// Needs: root, bpf, gcc for TestKnownRate.
package collector

import (
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

func TestRateSettles(t *testing.T) {
	few, enough := estimate.Rates{Probes: estimate.Probes{Values: []float64{2, 2, 2}}}, estimate.Rates{Probes: estimate.Probes{Values: []float64{1, 2, 2, 2, 3}}}
	unlike := estimate.Rates{Probes: estimate.Probes{Values: []float64{0.1, 0.1, 0.1, 5}}}
	behindHolds := math.Exp(estimate.ProbesSlow)
	for _, c := range []struct {
		r      estimate.Rates
		flag   float64
		clock  sampler.Clock
		source string
		mean   float64
	}{
		{estimate.Rates{}, 0, sampler.CPUTime(), "default", estimate.DefaultAccessRate},
		{few, 0, sampler.CPUTime(), "estimated", 2 * behindHolds},
		{enough, 0, sampler.CPUTime(), "measured", 2 * behindHolds},
		{unlike, 0, sampler.CPUTime(), "estimated", 1.325 * behindHolds},
		{enough, 3, sampler.CPUTime(), "flag", 3},
		{estimate.Rates{}, 3, sampler.CounterClock(accesses), "counted", 1},
		{estimate.Rates{}, 0, sampler.CounterClock(instructions), "default", estimate.DefaultPerInstruction},
	} {
		c.r.Settle(c.flag, c.clock)
		if c.r.Source != c.source || math.Abs(c.r.Mean()/c.mean-1) > 1e-9 {
			t.Errorf("%s, flag %v: %v (%s), want %v (%s)", c.clock.Name, c.flag, c.r.Mean(), c.r.Source, c.mean, c.source)
		}
	}
	if e, want := enough.RelativeError(), math.Sqrt(0.5/5)/2; math.Abs(e-want) > 1e-9 {
		t.Errorf("relative error %v, want %v", e, want)
	}
	enough.Settle(0, sampler.CPUTime())
	if got, want := 100*enough.Mean(), 200*behindHolds; math.Abs(got-want) > 1e-9 {
		t.Errorf("100 ns hold %v accesses, want %v", got, want)
	}
}

// Probes that find nothing have less and less of the budget, and none is kept from trying.
func TestProbeShare(t *testing.T) {
	share := func(found, failed int) float64 {
		r := prober{Probes: estimate.Probes{Values: make([]float64, found), Failed: map[model.Reason]int{model.ProbeUnreadable: failed}}}
		return r.share()
	}
	for _, c := range []struct {
		found, failed int
		want          float64
	}{{0, 0, probeShare}, {0, 7, probeShare}, {6, 17, probeShare}, {0, 31, probeShare / 4}, {0, 799, probeShare / 100}, {1, 63, probeShare / 4}} {
		if got := share(c.found, c.failed); math.Abs(got/c.want-1) > 0.02 {
			t.Errorf("%d found, %d without: %.4f of the budget, want %.4f", c.found, c.failed, got, c.want)
		}
	}
}

// stamped is a replay with stamps at some microseconds, that were reached after so
// many accesses, -1 where not.
func stamped(end string, at ...int) *replayed {
	r := &replayed{Replayed: ahead.Replayed{End: end}}
	for i := 0; i < len(at); i += 2 {
		r.stamps = append(r.stamps, sampler.Stamp{RDXStamp: bpf.RDXStamp{Clock: uint64(at[i]) * 1000}})
		r.Accesses = append(r.Accesses, at[i+1])
	}
	return r
}

func TestChooseStamps(t *testing.T) {
	for _, c := range []struct {
		name               string
		r                  *replayed
		from, middle, last int
		why                model.Reason
	}{
		{"all", stamped("", 1100, 10, 1600, 20, 2200, 30, 3200, 40, 4400, 50), 2, 3, 4, ""},
		{"ended by a system call", stamped("system call 3", 1100, 10, 1600, 20, 2300, 30, 3200, -1, 4400, -1), 0, 1, 2, ""},
		{"the one in the middle not told apart", stamped("", 1100, 10, 1600, 20, 2200, -1, 3200, 40, 4400, 50), 1, 3, 4, ""},
		{"the last not told apart", stamped("", 1100, 10, 1600, 20, 2200, 30, 3200, 40, 4400, -1), 1, 2, 3, ""},
		{"two", stamped("", 1100, 10, 1600, -1, 2200, -1, 3200, -1, 4400, 50), 0, -1, 4, ""},
		{"none in the middle", stamped("", 1100, -1, 1600, -1, 2200, -1, 4000, 40, 4400, 50), 0, 0, 0, model.ProbeMoments},
		{"too soon", stamped("system call 3", 40, 10, 70, 20, 1700, -1), 0, 0, 0, "system call 3"},
		{"too short", stamped("system call 3", 1100, 10, 1200, 20, 1700, -1), 0, 0, 0, "system call 3"},
		{"one", stamped("system call 3", 1100, 10, 1600, -1), 0, 0, 0, "system call 3"},
		{"none", stamped(ahead.Diverged, 1100, -1, 1600, -1), 0, 0, 0, ahead.Diverged},
		{"backwards", stamped("", 1100, 10, 1600, 30, 2200, 60, 3200, 40, 4400, 50), 0, 0, 0, ahead.Diverged},
	} {
		from, middle, last, why := chooseStamps(c.r)
		if why != c.why || why == "" && (from != c.from || middle != c.middle || last != c.last) {
			t.Errorf("%s: %d, %d, %d, %q; want %d, %d, %d, %q", c.name, from, middle, last, why, c.from, c.middle, c.last, c.why)
		}
	}
}

// How far a thread is followed depends on how fast it is, and the first stamp is not before
// caches are warm.
func TestStampsAfter(t *testing.T) {
	for _, c := range []struct {
		perNS    float64
		room     time.Duration
		slowdown float64
		last     time.Duration
	}{{0, 0, 0, shortestLead}, {2, 0, 20, 750 * time.Microsecond}, {20, 0, 0, shortestLead}, {0.1, 0, 20, longestLead},
		{0.1, 700 * time.Microsecond, 0, 700 * time.Microsecond}, {2, longestLead, 0, 750 * time.Microsecond},
		{2, 0, 250, replayTime / 250}, {2, 0, 1000, leastLead}} {
		after := (&prober{perNS: c.perNS, room: c.room, slowdown: c.slowdown}).stampsAfter()
		if after[0] < warmAfter || after[len(after)-1] != c.last || !slices.IsSorted(after) {
			t.Errorf("%v instructions a nanosecond: %v, want the last at %v", c.perNS, after, c.last)
		}
	}
}

// What it took to follow a thread tells how far the next is followed.
func TestSlowdownOfProbes(t *testing.T) {
	s := (&sampling{prober: prober{Probes: estimate.Probes{StampNS: 15_000}}, ticks: tickPace{budget: budget{tickNS: 10_000}}}).wire()
	p := &s.prober
	r := stamped("", 100, 10, 200, 20, 400, 40)
	r.cpuTime = 100 * time.Millisecond
	p.takeProbe(*r)
	if after := p.stampsAfter(); p.slowdown != 250 || after[len(after)-1] != replayTime/250 {
		t.Errorf("%v times as long: %v", p.slowdown, after)
	}
}

// Where a way came by more pages than there is room for before the last stamp the next goes half as far, and no less than
// is of use; where it had come to all stamps it was long enough.
func TestRoomOfProbes(t *testing.T) {
	for _, c := range []struct {
		last, made int
		room       time.Duration
	}{{2000, -1, time.Millisecond}, {300, -1, leastLead}, {2000, 50, 0}} {
		p := &prober{}
		p.takeProbe(*stamped(ahead.NoRoom, 100, -1, 1000, -1, c.last, c.made))
		if p.room != c.room {
			t.Errorf("%d accesses at a stamp after %d µs: room for %v, want %v", c.made, c.last, p.room, c.room)
		}
	}
}

// What the profiler took between two stamps is not the thread's, and with a hold
// in between nothing is known.
func TestBetweenStamps(t *testing.T) {
	s := (&sampling{prober: prober{Probes: estimate.Probes{StampNS: 15_000}}, ticks: tickPace{budget: budget{tickNS: 10_000}}, timing: timing{calibration: sampler.TwoTrap{Cost: 20_000}}}).wire()
	a := &sampler.Stamp{RDXStamp: bpf.RDXStamp{Clock: 1_000_000, Ticks: 5, Traps: 7, Spent: 1000, Holds: 3}}
	b := &sampler.Stamp{RDXStamp: bpf.RDXStamp{Clock: 2_000_000, Ticks: 6, Traps: 9, Spent: 4000, Holds: 3}}
	if ns, why := s.prober.betweenStamps(a, b, 2); why != "" || ns != 1_000_000-10_000-2*15_000-2*20_000-3000 {
		t.Errorf("%v, %s", ns, why)
	}
	b.Traps += 20
	if ns, why := s.prober.betweenStamps(a, b, 2); why == "" {
		t.Errorf("most of the time was taken by traps, and %v are left", ns)
	}
	b.Holds++
	if _, why := s.prober.betweenStamps(a, b, 2); why != model.ProbeAnotherHold {
		t.Errorf("a hold came between: %q", why)
	}
}

// A failed probe is counted, and the next may come.
func TestProbeFails(t *testing.T) {
	var r prober
	r.probe.state = replaying
	r.failProbe(&ahead.Declined{Reason: "more memory than can be copied"})
	r.failProbe(&ahead.Declined{Reason: "more memory than can be copied"})
	if r.Failed["more memory than can be copied"] != 2 || r.probe.state != idle {
		t.Errorf("%+v", r)
	}
}

// steady makes as many accesses a round as its argument says among a chain of
// multiplications, and says what it found of itself.
const steady = `
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static volatile uint64_t a[1 << 16];
/* What a replay passes; what comes of it goes into what the program does next. */
static uint64_t calls(const char *name)
{
	char b[64];
	struct stat st;
	int fd = open(name, O_RDONLY);
	uint64_t x = read(fd, b, sizeof b) + lseek(fd, 8, SEEK_SET) + b[1];
	fstat(fd, &st);
	x += st.st_size + read(fd, b, 8) + b[0];
	close(fd);
	x += stat(name, &st) + st.st_size;
	uint64_t *m = mmap(0, 40960, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	x += m[513] + (uint64_t)m;
	m[513] = x;
	munmap(m, 40960);
	char *more = sbrk(8192);
	x += more[4096];
	more[4096] = x;
	sbrk(-8192);
	return x;
}
static volatile int ended;
static void end(int sig) { ended = 1; }
static double cpu(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
enum { rounds = 1 << 15 }; /* some hundred microseconds between system calls on any processor */
/* A function of its own, so that nothing else is kept in memory. */
static __attribute__((noinline)) uint64_t work(uint64_t x, uint64_t many)
{
	for (int i = 0; i < rounds; i++) {
		for (int j = 0; j < 8; j++)
			x = x * 6364136223846793005 + 1;
		for (uint64_t j = 0; j < many; j++)
			a[(x >> 48) + j & 0xffff] = x;
	}
	return x;
}
/* Each lap has the very same registers as the one before. */
static volatile uint64_t laps;
static __attribute__((noinline)) void lap(void)
{
	for (int i = 0; i < 1 << 14; i++)
		a[i & 0x3fff] = 1;
	laps++;
}
int main(int argc, char **argv)
{
	uint64_t n = 0, x = 1, many = atoi(argv[1]);
	double start = cpu(), ns;
	signal(SIGTERM, end);
	printf("ready\n");
	fflush(stdout);
	if (many == 0) { /* to look at the clock would be a system call */
		signal(SIGALRM, end);
		alarm(12);
		while (!ended)
			lap();
		ns = cpu() - start;
		n = laps << 14;
	} else do
		for (int i = 0; i < 1 << 10; i++, n += rounds * many) {
			x = work(x, many);
			if (argc > 2)
				x ^= calls(argv[2]);
		}
	while ((ns = cpu() - start) < 5e9 || (!ended && ns < 60e9));
	printf("accesses=%lu ns=%f\n", n, ns / n);
}`

// The program knows its own rate: probes must find it, or leave it open.
func TestKnownRate(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := filepath.Join(t.TempDir(), "steady")
	cc := exec.Command("gcc", "-O1", "-o", bin, "-x", "c", "-")
	cc.Stdin = strings.NewReader(steady)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v: %s", err, out)
	}
	for name, args := range map[string][]string{"1": {"1"}, "12 and system calls": {"12", bin}, "laps that are all the same": {"0"}} {
		t.Run(name, func(t *testing.T) {
			p, s, ns := profilePattern(t, bin, Config{Burst: sharedBurst, Granularity: Word, Overhead: 0.05, MeasureRate: true, replayEagerly: true}, estimate.FewestProbes, args...)
			n := len(s.sampling.prober.Values)
			same := args[0] == "0" // no moment is told from that of another lap
			if !same && (n < estimate.FewestProbes || p.Clock.RateSource != "measured") {
				t.Fatalf("the rate is %s, %d probes; failed: %v", p.Clock.RateSource, n, s.sampling.prober.Failed)
			}
			t.Logf("%.4g accesses/ns by %d probes, %.3g; truth %.4g; failed: %v", estimate.Mean(s.sampling.prober.Values), n, s.sampling.prober.Values, 1/ns, s.sampling.prober.Failed)
			// Ways end at system calls, so that of code between them little is known: the interval is the wider.
			if off := estimate.Mean(s.sampling.prober.Values)*ns - 1; name == "1" && math.Abs(off) > 0.25 {
				t.Errorf("off by %.0f %%", 100*off)
			}
			if c := p.Clock; 1/ns < c.RateLow || 1/ns > c.RateHigh {
				t.Errorf("%v accesses/ns are not between %v and %v", 1/ns, c.RateLow, c.RateHigh)
			}
		})
	}
}
