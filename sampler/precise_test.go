// Needs: nothing; the machines are made up.
package sampler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"unsafe"

	"golang.org/x/sys/unix"
)

// word reads the attribute as the kernel does, at the offsets of struct
// perf_event_attr.
func word(a *unix.PerfEventAttr, offset int) uint64 {
	b := unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a))
	return binary.LittleEndian.Uint64(b[offset:])
}

const (
	atConfig, atPeriod, atSample, atRead, atBits, atConfig1, atConfig2 = 8, 16, 24, 32, 40, 56, 64
	atWakeup                                                           = 48 // with bp_type in the upper half
)

// Bits of the kernel's bit field, by its own numbering.
const (
	bitDisabled              = 1 << 0
	bitInherit               = 1 << 1
	bitPinned                = 1 << 2
	bitExcludeUser           = 1 << 4
	bitExcludeKernel         = 1 << 5
	bitFreq                  = 1 << 10
	preciseShift             = 15
	sampleAddr               = 1 << 3
	sampleWeight, sampleData = 1 << 14, 1 << 15
)

// The rules of the kernel that every event must keep which runs a program that
// takes a stack, and brings an address along.
func checkPrecise(t *testing.T, name string, a *unix.PerfEventAttr) {
	t.Helper()
	bits := word(a, atBits)
	for _, rule := range []struct {
		holds bool
		says  string
	}{
		{word(a, 0)>>32 == uint64(unsafe.Sizeof(*a)), "the size is that of the struct"},
		{bits&bitDisabled != 0, "disabled until the program is attached"},
		{bits&(bitInherit|bitPinned|bitFreq|bitExcludeUser) == 0, "neither inherited nor pinned nor by frequency nor without user mode"},
		{word(a, atSample)&sampleAddr != 0, "addresses, or ctx->addr is empty"},
		{word(a, atSample)&sampleWeight != 0 && word(a, atSample)&sampleData != 0, "latency and data source"},
		{word(a, atWakeup)&0xffffffff == 1, "wakeup_events, or PEBS makes batches"},
		{word(a, atRead) == unix.PERF_FORMAT_TOTAL_TIME_ENABLED|unix.PERF_FORMAT_TOTAL_TIME_RUNNING, "times, to see who else has the counter"},
	} {
		if !rule.holds {
			t.Errorf("%s: not kept: %s: bits %#x, sample type %#x, read format %#x", name, rule.says, bits, word(a, atSample), word(a, atRead))
		}
	}
}

// fakePerf opens nothing: it notes what it is asked for and fails the n-th
// time with err.
type fakePerf struct {
	asked  []unix.PerfEventAttr
	groups []int
	failAt int
	err    error
}

func (f *fakePerf) open(attr *unix.PerfEventAttr, tid, group int) (int, error) {
	f.asked = append(f.asked, *attr)
	f.groups = append(f.groups, group)
	if f.err != nil && len(f.asked) == f.failAt {
		return -1, f.err
	}
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return fd, err
}

// ask opens source s of a machine in which perf_event_open works and all else
// fails, and returns what was asked for.
func ask(t *testing.T, s AccessSource, period uint64) *fakePerf {
	t.Helper()
	f := new(fakePerf)
	s.open = f.open
	for _, e := range s.events {
		ticker := &Ticker{groups: s.groups}
		// Attaching a program to /dev/null fails; the opening is over then.
		if err := s.openOne(ticker, e, 1, 0, period); err == nil {
			t.Fatal("/dev/null takes programs")
		}
		if err := ticker.Close(); err != nil {
			t.Error(err)
		}
	}
	return f
}

func TestIBS(t *testing.T) {
	for _, filter := range []bool{false, true} {
		files := map[string]string{"type": "11", "format/cnt_ctl": "config:19"}
		if filter {
			files["format/swfilt"] = "config2:0"
		}
		m := Machine{cpuinfo("AuthenticAMD", 0x19, 1), pmuFiles(map[string]map[string]string{"ibs_op": files, "cpu": amdFormat})}
		s, err := NewAccessSource(m, "ibs", false)
		if err != nil || len(s.events) != 1 || s.Unit() != Operations || s.Reports() != AtAccess {
			t.Fatal(s, err)
		}
		// The kernel refuses a period that is not a multiple of 16.
		for period, want := range map[uint64]uint64{1<<20 + 15: 1 << 20, 1 << 20: 1 << 20, 1: minPMUPeriod} {
			a := &ask(t, s, period).asked[0]
			checkPrecise(t, "ibs", a)
			if word(a, atConfig) != 1<<19 || word(a, atPeriod) != want || word(a, 0)&0xffffffff != 11 {
				t.Errorf("config %#x, period %d for %d, type %d", word(a, atConfig), word(a, atPeriod), period, word(a, 0)&0xffffffff)
			}
			if got := word(a, atConfig2) == 1; got != filter {
				t.Errorf("swfilt is %v, want %v", got, filter)
			}
			// Without the filter the kernel refuses to leave itself out.
			if got := word(a, atBits)&bitExcludeKernel != 0; got != filter || s.events[0].FilterUser == filter {
				t.Errorf("the kernel is excluded: %v, with a filter: %v", got, filter)
			}
		}
	}
	m := Machine{cpuinfo("AuthenticAMD", 0x19, 1), pmuFiles(map[string]map[string]string{"cpu": amdFormat})}
	if _, err := NewAccessSource(m, "ibs", false); err == nil || !strings.Contains(err.Error(), "no ibs_op") {
		t.Errorf("AMD without IBS: %v", err)
	}
}

func TestIBSPeriods(t *testing.T) {
	e := event{align: ibsAlign}
	for n, want := range map[uint64]uint64{0: 16, 1: 16, 16: 16, 31: 16, 100_001: 100_000, 1 << 40: 1 << 40} {
		if got := e.round(n); got != want {
			t.Errorf("period %d becomes %d, want %d", n, got, want)
		}
	}
}

// Generation by generation: which events, which precision, which groups.
func TestPEBS(t *testing.T) {
	type want struct {
		config, config1 uint64
		aux             uint64 // leader of its group, 0 for none
		pmu             uint64
	}
	plain := func(precise string) map[string]map[string]string {
		return map[string]map[string]string{"cpu": with(intelFormat, "caps/max_precise", precise)}
	}
	hybrid := map[string]map[string]string{"cpu_core": with(intelFormat, "caps/max_precise", "3"), "cpu_atom": with(intelFormat, "type", "10", "caps/max_precise", "3")}
	loads, stores := want{config: 0x81d0, pmu: 4}, want{config: 0x82d0, pmu: 4}
	ldlat := want{config: 0x01cd, config1: 3, pmu: 4}
	aux := want{config: 0x01cd, config1: 3, pmu: 4, aux: 0x8203}
	atom := func(w want) want { w.pmu = 10; return w }
	low := func(w want) want { w.pmu = 11; return w }
	three := map[string]map[string]string{"cpu_core": hybrid["cpu_core"], "cpu_atom": hybrid["cpu_atom"], "cpu_lowpower": with(intelFormat, "type", "11", "caps/max_precise", "3")}
	atomLatency := want{config: 0x05d0, config1: 3, pmu: 10}
	for _, tc := range []struct {
		name    string
		proc    fstest.MapFS
		pmus    map[string]map[string]string
		latency bool
		level   uint64
		want    []want
		err     string
	}{
		{"Skylake", cpuinfo("GenuineIntel", 6, 0x55), plain("3"), false, 3, []want{loads, stores}, ""},
		{"Skylake, latency", cpuinfo("GenuineIntel", 6, 0x55), plain("3"), true, 3, []want{ldlat, stores}, ""},
		{"Skylake, two levels", cpuinfo("GenuineIntel", 6, 0x55), plain("2"), false, 2, []want{loads, stores}, ""},
		{"Ivy Bridge", cpuinfo("GenuineIntel", 6, 0x3a), plain("3"), false, 3, []want{ldlat, {config: 0x02cd, pmu: 4}}, ""},
		{"Sapphire Rapids", cpuinfo("GenuineIntel", 6, 0x8f), plain("3"), false, 3, []want{loads, stores}, ""},
		{"Sapphire Rapids, latency", cpuinfo("GenuineIntel", 6, 0x8f), plain("3"), true, 3, []want{aux, stores}, ""},
		{"Alder Lake", cpuinfo("GenuineIntel", 6, 0x97), hybrid, false, 3, []want{loads, stores, atom(loads), atom(stores)}, ""},
		{"Alder Lake, latency", cpuinfo("GenuineIntel", 6, 0x97), hybrid, true, 3, []want{aux, stores, atomLatency, atom(stores)}, ""},
		{"Granite Rapids, latency", cpuinfo("GenuineIntel", 6, 0xad), plain("3"), true, 3, []want{ldlat, stores}, ""},
		{"Lunar Lake", cpuinfo("GenuineIntel", 6, 0xbd), hybrid, false, 3, []want{loads, stores, atom(loads), atom(stores)}, ""},
		{"Lunar Lake, latency", cpuinfo("GenuineIntel", 6, 0xbd), hybrid, true, 3, []want{ldlat, stores, atomLatency, atom(stores)}, ""},
		{"Arrow Lake H", cpuinfo("GenuineIntel", 6, 0xc5), three, false, 3, []want{loads, stores, atom(loads), atom(stores), low(loads), low(stores)}, ""},
		{"Panther Lake", cpuinfo("GenuineIntel", 6, 0xcc), hybrid, false, 3, []want{loads, stores, atomLatency, {config: 0x06d0, pmu: 10}}, ""},
		{"Clearwater Forest", cpuinfo("GenuineIntel", 6, 0xdd), plain("3"), false, 3, []want{{config: 0x05d0, config1: 3, pmu: 4}, {config: 0x06d0, pmu: 4}}, ""},
		{"virtual, without PEBS", cpuinfo("GenuineIntel", 6, 0x55), plain("0"), false, 0, nil, "offers no precise events"},
		{"a future one", cpuinfo("GenuineIntel", 6, 0xfe), plain("3"), false, 0, nil, "0xfe"},
		{"AMD", cpuinfo("AuthenticAMD", 0x19, 1), map[string]map[string]string{"cpu": amdFormat}, false, 0, nil, "not an Intel processor"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := NewAccessSource(Machine{tc.proc, pmuFiles(tc.pmus)}, "pebs", tc.latency)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || len(s.events) != len(tc.want) || len(s.events) > MaxAccessEvents {
				t.Fatalf("%d events, %v", len(s.events), err)
			}
			f := ask(t, s, 1<<20)
			for _, w := range tc.want {
				if w.aux != 0 {
					a := &f.asked[0]
					if f.groups[0] != -1 || word(a, atConfig) != w.aux || word(a, atPeriod) != 0 || word(a, atBits)>>preciseShift&3 != 0 || word(a, 0)&0xffffffff != w.pmu {
						t.Errorf("auxiliary event %#x with period %d", word(a, atConfig), word(a, atPeriod))
					}
					if f.groups[1] == -1 {
						t.Error("the load-latency event is not in the auxiliary event's group")
					}
					f.asked, f.groups = f.asked[1:], f.groups[1:]
				} else if f.groups[0] != -1 {
					t.Error("in a group without need")
				}
				a := &f.asked[0]
				checkPrecise(t, tc.name, a)
				if word(a, atConfig) != w.config || word(a, atConfig1) != w.config1 || word(a, 0)&0xffffffff != w.pmu ||
					word(a, atBits)>>preciseShift&3 != tc.level || word(a, atBits)&bitExcludeKernel == 0 || word(a, atPeriod) != 1<<20 {
					t.Errorf("config %#x, config1 %#x, type %d, precise_ip %d, period %d; want %+v", word(a, atConfig), word(a, atConfig1),
						word(a, 0)&0xffffffff, word(a, atBits)>>preciseShift&3, word(a, atPeriod), w)
				}
				f.asked, f.groups = f.asked[1:], f.groups[1:]
			}
			if len(f.asked) != 0 {
				t.Errorf("%d events too many", len(f.asked))
			}
		})
	}
}

// What the kernel refuses comes with its remedy, and nothing stays open.
func TestAccessSourceRefused(t *testing.T) {
	m := Machine{cpuinfo("GenuineIntel", 6, 0x8f), pmuFiles(map[string]map[string]string{"cpu": with(intelFormat, "caps/max_precise", "3")})}
	for _, tc := range []struct {
		failAt int
		err    error
		says   string
	}{
		{1, explainPerf(unix.EBUSY), "nmi_watchdog"},
		{1, explainPerf(unix.EINVAL), "hypervisor"},
		{2, explainPerf(unix.ENODATA), "auxiliary"},
		{2, explainPerf(unix.EACCES), "perf_event_paranoid"},
	} {
		s, err := NewAccessSource(m, "pebs", true)
		if err != nil {
			t.Fatal(err)
		}
		f := &fakePerf{failAt: tc.failAt, err: tc.err}
		s.open = f.open
		ticker := new(Ticker)
		err = s.openOne(ticker, s.events[0], 1, 0, 1<<20)
		if !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%v, want %q in it", err, tc.says)
		}
		if err := ticker.Close(); err != nil {
			t.Error(err)
		}
	}
	ibs := AccessSourceOf("ibs", Operations, 1, minPMUPeriod, nil)
	ibs.open = (&fakePerf{failAt: 1, err: explainPerf(unix.EINVAL)}).open
	if err := ibs.openOne(new(Ticker), Precise{Align: ibsAlign}, 1, 0, 1<<20); err == nil || !strings.Contains(err.Error(), "6.2") {
		t.Errorf("IBS of a thread on an old kernel: %v", err)
	}
}

func TestAccessProbe(t *testing.T) {
	fine := AccessProbe{Ticks: 100, Memory: 80, Right: 79, Loads: 40, Stores: 39}
	if err := fine.Usable("pebs"); err != nil {
		t.Error(err)
	}
	for _, tc := range []struct {
		alter func(p *AccessProbe)
		says  string
	}{
		{func(p *AccessProbe) { *p = AccessProbe{} }, "reports nothing"},
		{func(p *AccessProbe) { *p = AccessProbe{Ticks: 100} }, "none of 100 samples"},
		{func(p *AccessProbe) { p.Right = 20 }, "60 of 80 addresses"},
		{func(p *AccessProbe) { p.Stores = 0 }, "40 loads and 0 stores"},
	} {
		p := fine
		tc.alter(&p)
		if err := p.Usable("pebs"); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%+v: %v, want %q", p, err, tc.says)
		}
	}
}

// Where the kernel asks for more than CAP_PERFMON at levels of its own, the setting is named: Debian's and Ubuntu's do.
func TestRefusedNamesParanoid(t *testing.T) {
	for _, errno := range []error{unix.EACCES, unix.EPERM} {
		if err := explainRefused(fmt.Errorf("arm: %w", errno)); !errors.Is(err, errno) || !strings.Contains(remedyIn(err), "sysctl kernel.perf_event_paranoid=2") {
			t.Errorf("%v", err)
		}
	}
	if err := explainRefused(unix.ENOSPC); err != unix.ENOSPC {
		t.Errorf("%v for something else than want of rights", err)
	}
}
