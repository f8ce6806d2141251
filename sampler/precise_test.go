// Needs: nothing; the machines are made up.
package sampler

import (
	"encoding/binary"
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
	atConfig, atPeriod, atSample, atBits, atConfig1, atConfig2 = 8, 16, 24, 40, 56, 64
)

// Bits of the kernel's bit field, by its own numbering.
const (
	bitExcludeKernel = 1 << 5
	preciseShift     = 15
)

func TestPEBSBytes(t *testing.T) {
	for level := 1; level <= 3; level++ {
		p := pebsEvent(Event{Label: "x", Type: 4, Config: 0x81d0}, 1<<16, level)
		if got := word(&p.Attr, atBits) >> preciseShift & 3; got != uint64(level) {
			t.Errorf("precise_ip is %d, want %d", got, level)
		}
		if word(&p.Attr, atBits)&bitExcludeKernel == 0 {
			t.Error("the kernel is not excluded")
		}
		if word(&p.Attr, atConfig) != 0x81d0 || word(&p.Attr, atPeriod) != 1<<16 {
			t.Errorf("config %#x, period %d", word(&p.Attr, atConfig), word(&p.Attr, atPeriod))
		}
		if head := word(&p.Attr, 0); head != 4|uint64(unsafe.Sizeof(p.Attr))<<32 {
			t.Errorf("type and size %#x", head)
		}
		const addr, callchain, weight, dataSrc = 1 << 3, 1 << 5, 1 << 14, 1 << 15
		for _, bit := range []uint64{addr, callchain, weight, dataSrc} {
			if word(&p.Attr, atSample)&bit == 0 {
				t.Errorf("sample type %#x lacks %#x", word(&p.Attr, atSample), bit)
			}
		}
	}
}

func TestIBSBytes(t *testing.T) {
	for _, filter := range []bool{false, true} {
		files := map[string]string{"type": "11", "format/cnt_ctl": "config:19"}
		if filter {
			files["format/swfilt"] = "config2:0"
		}
		m := Machine{cpuinfo("AuthenticAMD", 0x19, 1), pmuFiles(map[string]map[string]string{"ibs_op": files, "cpu": amdFormat})}
		events, err := m.PreciseEvents()
		if err != nil || len(events) != 1 {
			t.Fatal(events, err)
		}
		a := &events[0].Attr
		if word(a, atConfig) != 1<<19 || word(a, atPeriod)%16 != 0 || word(a, 0)&0xffffffff != 11 {
			t.Errorf("config %#x, period %d, type %d", word(a, atConfig), word(a, atPeriod), word(a, 0)&0xffffffff)
		}
		if got := word(a, atConfig2) == 1; got != filter {
			t.Errorf("swfilt is %v, want %v", got, filter)
		}
		if got := word(a, atBits)&bitExcludeKernel != 0; got != filter || events[0].FilterUser == filter {
			t.Errorf("the kernel is excluded: %v, with a filter: %v", got, filter)
		}
	}
	p, err := ReadPMU(pmuFiles(map[string]map[string]string{"ibs_op": {"type": "11", "format/cnt_ctl": "config:19"}}), "ibs_op")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := ibsEvent(p, 1001); err != nil || e.Attr.Sample != 992 {
		t.Errorf("period 1001 becomes %d, %v, want 992", e.Attr.Sample, err)
	}
}

func TestPreciseEvents(t *testing.T) {
	intel := func(precise string) map[string]map[string]string {
		return map[string]map[string]string{"cpu": with(intelFormat, "caps/max_precise", precise)}
	}
	hybrid := map[string]map[string]string{"cpu_core": with(intelFormat, "caps/max_precise", "3"), "cpu_atom": with(intelFormat, "type", "10", "caps/max_precise", "3")}
	for _, tc := range []struct {
		name  string
		proc  fstest.MapFS
		pmus  map[string]map[string]string
		want  []uint64 // config1<<32 | config
		level uint64
		err   string
	}{
		{"Skylake", cpuinfo("GenuineIntel", 6, 0x55), intel("3"), []uint64{0x81d0, 0x82d0}, 3, ""},
		{"Skylake, two levels", cpuinfo("GenuineIntel", 6, 0x55), intel("2"), []uint64{0x81d0, 0x82d0}, 2, ""},
		{"virtual, without PEBS", cpuinfo("GenuineIntel", 6, 0x55), intel("0"), nil, 0, "no precise events"},
		{"Ivy Bridge", cpuinfo("GenuineIntel", 6, 0x3a), intel("3"), []uint64{3<<32 | 0x01cd, 0x02cd}, 3, ""},
		{"Alder Lake", cpuinfo("GenuineIntel", 6, 0x97), hybrid, []uint64{0x81d0, 0x82d0, 0x81d0, 0x82d0}, 3, ""},
		{"AMD without IBS", cpuinfo("AuthenticAMD", 0x19, 1), map[string]map[string]string{"cpu": amdFormat}, nil, 0, "neither PEBS nor IBS"},
	} {
		events, err := Machine{tc.proc, pmuFiles(tc.pmus)}.PreciseEvents()
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %q", tc.name, err, tc.err)
			}
			continue
		}
		if err != nil || len(events) != len(tc.want) {
			t.Errorf("%s: %d events, %v", tc.name, len(events), err)
			continue
		}
		for i := range events {
			a := &events[i].Attr
			if got := word(a, atConfig1)<<32 | word(a, atConfig); got != tc.want[i] || word(a, atBits)>>preciseShift&3 != tc.level {
				t.Errorf("%s: event %d is %#x at level %d, want %#x", tc.name, i, got, word(a, atBits)>>preciseShift&3, tc.want[i])
			}
		}
	}
}
