// Needs: nothing; the machines are made up.
package sampler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// pmuFiles describes event sources as sysfs does.
func pmuFiles(pmus map[string]map[string]string) fstest.MapFS {
	out := make(fstest.MapFS)
	for pmu, files := range pmus {
		for name, text := range files {
			out[eventSources+"/"+pmu+"/"+name] = file(text + "\n")
		}
	}
	return out
}

var (
	intelFormat = map[string]string{"type": "4", "format/event": "config:0-7", "format/umask": "config:8-15",
		"format/ldlat": "config1:0-15", "format/edge": "config:18", "events/mem-loads": "event=0xcd,umask=0x1,ldlat=3"}
	amdFormat = map[string]string{"type": "4", "format/event": "config:0-7,32-35", "format/umask": "config:8-15"}
	armFormat = map[string]string{"type": "8", "format/event": "config:0-15", "events/mem_access": "event=0x013"}
)

func with(base map[string]string, kv ...string) map[string]string {
	out := make(map[string]string)
	for k, v := range base {
		out[k] = v
	}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = kv[i+1]
	}
	return out
}

func TestPMUEvent(t *testing.T) {
	sys := pmuFiles(map[string]map[string]string{"cpu": intelFormat, "amd": amdFormat, "odd": {"type": "9", "format/wide": "config2:0-63", "format/one": "config1:3"}})
	for _, tc := range []struct {
		pmu, terms string
		want       [3]uint64
		err        string
	}{
		{"cpu", "event=0xd0,umask=0x81", [3]uint64{0x81d0, 0, 0}, ""},
		{"cpu", "mem-loads", [3]uint64{0x1cd, 3, 0}, ""},
		{"cpu", "event=0xd0,edge", [3]uint64{0x400d0, 0, 0}, ""},
		{"cpu", "config=0x1234,config1=7", [3]uint64{0x1234, 7, 0}, ""},
		{"cpu", "event=0x100", [3]uint64{}, "too large for the 8 bits of event"},
		{"cpu", "event=0xzz", [3]uint64{}, "is not a number"},
		{"cpu", "nonsense=1", [3]uint64{}, `no field "nonsense"`},
		{"cpu", "", [3]uint64{}, "no field"},
		// The upper nibble of AMD's event goes to bits 32 to 35.
		{"amd", "event=0x120,umask=0x01", [3]uint64{1<<32 | 0x120&0xff | 0x100, 0, 0}, ""},
		{"odd", "wide=0xffffffffffffffff,one=1", [3]uint64{0, 8, 1<<64 - 1}, ""},
	} {
		p, err := ReadPMU(sys, tc.pmu)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Event(tc.terms)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s/%s/: error %v, want %q", tc.pmu, tc.terms, err, tc.err)
			}
			continue
		}
		if got := [3]uint64{e.Config, e.Config1, e.Config2}; err != nil || got != tc.want || e.Type != p.Type {
			t.Errorf("%s/%s/ = %#x, %v, want %#x", tc.pmu, tc.terms, got, err, tc.want)
		}
	}
}

func TestReadPMUBad(t *testing.T) {
	for _, tc := range []map[string]string{
		{},
		{"type": "x"},
		{"type": "4", "format/event": "config:7-0"},
		{"type": "4", "format/event": "config:64"},
		{"type": "4", "format/event": "config9:0-7"},
		{"type": "4", "format/event": ""},
	} {
		if _, err := ReadPMU(pmuFiles(map[string]map[string]string{"cpu": tc}), "cpu"); err == nil {
			t.Errorf("no error for %v", tc)
		}
	}
}

func cpuinfo(vendor string, family, model int) fstest.MapFS {
	return fstest.MapFS{"cpuinfo": file(fmt.Sprintf("processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: X\n\nprocessor\t: 1\nvendor_id\t: other\n", vendor, family, model))}
}

// Row by row what each processor's accesses are counted by.
func TestAccessEvents(t *testing.T) {
	intel := map[string]map[string]string{"cpu": intelFormat}
	hybrid := map[string]map[string]string{"cpu_core": with(intelFormat, "cpus", "0-3"), "cpu_atom": with(intelFormat, "type", "10", "cpus", "4-7")}
	three := map[string]map[string]string{"cpu_lowpower": with(intelFormat, "type", "11"), "cpu_core": hybrid["cpu_core"], "cpu_atom": hybrid["cpu_atom"]}
	amd := map[string]map[string]string{"cpu": amdFormat}
	for _, tc := range []struct {
		name          string
		vendor        string
		family, model int
		pmus          map[string]map[string]string
		want          []uint64 // type<<32 | config
		err           string
	}{
		{"Sandy Bridge", "GenuineIntel", 6, 0x2a, intel, []uint64{4<<32 | 0x81d0, 4<<32 | 0x82d0}, ""},
		{"Ivy Bridge EP", "GenuineIntel", 6, 0x3e, intel, []uint64{4<<32 | 0x81d0, 4<<32 | 0x82d0}, ""},
		{"Haswell", "GenuineIntel", 6, 0x3c, intel, []uint64{4<<32 | 0x81d0, 4<<32 | 0x82d0}, ""},
		{"Broadwell EP", "GenuineIntel", 6, 0x4f, intel, []uint64{4<<32 | 0x81d0, 4<<32 | 0x82d0}, ""},
		{"Cascade Lake", "GenuineIntel", 6, 0x55, intel, []uint64{4<<32 | 0x83d0}, ""},
		{"Ice Lake", "GenuineIntel", 6, 0x6a, intel, []uint64{4<<32 | 0x83d0}, ""},
		{"Tiger Lake", "GenuineIntel", 6, 0x8c, intel, []uint64{4<<32 | 0x83d0}, ""},
		{"Sapphire Rapids", "GenuineIntel", 6, 0x8f, intel, []uint64{4<<32 | 0x83d0}, ""},
		{"Emerald Rapids", "GenuineIntel", 6, 0xcf, intel, []uint64{4<<32 | 0x83d0}, ""},
		{"Granite Rapids", "GenuineIntel", 6, 0xad, intel, []uint64{4<<32 | 0x83d0}, ""},
		{"Sierra Forest", "GenuineIntel", 6, 0xaf, intel, []uint64{4<<32 | 0x83d0}, ""},
		{"Clearwater Forest", "GenuineIntel", 6, 0xdd, intel, []uint64{4<<32 | 0x83d0}, ""},
		{"Alder Lake", "GenuineIntel", 6, 0x97, hybrid, []uint64{4<<32 | 0x83d0, 10<<32 | 0x83d0}, ""},
		{"Lunar Lake", "GenuineIntel", 6, 0xbd, hybrid, []uint64{4<<32 | 0x87d0, 10<<32 | 0x83d0}, ""},
		{"Arrow Lake H", "GenuineIntel", 6, 0xc5, three, []uint64{4<<32 | 0x87d0, 10<<32 | 0x83d0, 11<<32 | 0x83d0}, ""},
		{"Arrow Lake U", "GenuineIntel", 6, 0xb5, hybrid, []uint64{4<<32 | 0x83d0, 10<<32 | 0x83d0}, ""},
		{"Panther Lake", "GenuineIntel", 6, 0xcc, hybrid, []uint64{4<<32 | 0x87d0, 10<<32 | 0x83d0}, ""},
		{"a hybrid whose small cores are off", "GenuineIntel", 6, 0x97, map[string]map[string]string{"cpu_core": intelFormat}, []uint64{4<<32 | 0x83d0}, ""},
		{"a hybrid of old cores", "GenuineIntel", 6, 0x55, hybrid, nil, "beside Skylake"},
		{"another family", "GenuineIntel", 18, 0x97, intel, nil, "family 18"},
		{"Pentium 4", "GenuineIntel", 15, 2, intel, nil, "family 15"},
		{"a future one", "GenuineIntel", 6, 0xfe, intel, nil, "0xfe"},
		{"a future hybrid", "GenuineIntel", 6, 0xfe, hybrid, nil, "0xfe"},
		{"Zen 4", "AuthenticAMD", 0x19, 0x11, amd, []uint64{4<<32 | 0x0729}, ""},
		{"Zen 5", "AuthenticAMD", 0x1a, 0x44, amd, []uint64{4<<32 | 0x0729}, ""},
		{"Bulldozer", "AuthenticAMD", 0x15, 1, amd, nil, "family 0x15"},
		{"arm64", "", 0, 0, map[string]map[string]string{"armv8_pmuv3_0": armFormat}, []uint64{8<<32 | 0x13}, ""},
		{"big.LITTLE", "", 0, 0, map[string]map[string]string{"armv8_cortex_a53": armFormat, "armv8_cortex_a72": with(armFormat, "type", "9")},
			[]uint64{8<<32 | 0x13, 9<<32 | 0x13}, ""},
		{"three kinds of cores", "", 0, 0, map[string]map[string]string{"armv8_a": armFormat, "armv8_b": with(armFormat, "type", "9"), "armv9_c": with(armFormat, "type", "10")},
			[]uint64{8<<32 | 0x13, 9<<32 | 0x13, 10<<32 | 0x13}, ""},
		{"four kinds of cores", "", 0, 0, map[string]map[string]string{"armv8_a": armFormat, "armv8_b": armFormat, "armv8_d": armFormat, "armv9_c": armFormat}, nil, "4 types"},
		{"arm64 without the event", "", 0, 0, map[string]map[string]string{"armv8_pmuv3_0": {"type": "8"}}, nil, "no counter of loads and stores"},
		{"no PMU", "GenuineIntel", 6, 0x8f, map[string]map[string]string{"software": {"type": "1"}}, nil, "software"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := Machine{cpuinfo(tc.vendor, tc.family, tc.model), pmuFiles(tc.pmus)}
			c, err := m.AccessEvents()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			var got []uint64
			for _, e := range c.Events {
				got = append(got, uint64(e.Type)<<32|e.Config)
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%#x, %v, want %#x", got, err, tc.want)
			}
			types := make(map[uint32]bool)
			for _, e := range c.Events {
				types[e.Type] = true
			}
			if c.Hybrid != (len(types) > 1) {
				t.Errorf("hybrid is %v with %d types of PMU", c.Hybrid, len(types))
			}
			if c.Unit != Accesses {
				t.Errorf("unit %q", c.Unit)
			}
		})
	}
}

// Row by row, by the model numbers of the kernel's asm/intel-family.h and what
// Intel's event lists (perfmon) say of each: MEM_INST_RETIRED or
// MEM_UOPS_RETIRED.ALL_LOADS, ALL_STORES and ANY or ALL, the load-latency event,
// and the kernel's mem-loads-aux.
func TestIntelRows(t *testing.T) {
	codes := func(g generation) string {
		return fmt.Sprintf("%x %x %x %x %x", g.loads, g.stores, g.counts, g.latency, g.aux)
	}
	const (
		sandy      = "1cd 2cd [81d0 82d0] 1cd 0"
		haswell    = "81d0 82d0 [81d0 82d0] 1cd 0"
		skylake    = "81d0 82d0 [83d0] 1cd 0" // Ice Lake and Redwood Cove, too
		goldenCove = "81d0 82d0 [83d0] 1cd 8203"
		lionCove   = "81d0 82d0 [87d0] 1cd 0"
		atom       = "81d0 82d0 [83d0] 5d0 0"
		dark       = "5d0 6d0 [83d0] 5d0 0"
	)
	rows := []struct {
		name         string
		model        int
		codes, small string
	}{
		{"SANDYBRIDGE", 0x2a, sandy, ""}, {"SANDYBRIDGE_X", 0x2d, sandy, ""},
		{"IVYBRIDGE", 0x3a, sandy, ""}, {"IVYBRIDGE_X", 0x3e, sandy, ""},
		{"HASWELL", 0x3c, haswell, ""}, {"HASWELL_X", 0x3f, haswell, ""}, {"HASWELL_L", 0x45, haswell, ""}, {"HASWELL_G", 0x46, haswell, ""},
		{"BROADWELL", 0x3d, haswell, ""}, {"BROADWELL_G", 0x47, haswell, ""}, {"BROADWELL_X", 0x4f, haswell, ""}, {"BROADWELL_D", 0x56, haswell, ""},
		{"SKYLAKE_L", 0x4e, skylake, ""}, {"SKYLAKE", 0x5e, skylake, ""}, {"SKYLAKE_X", 0x55, skylake, ""},
		{"KABYLAKE_L", 0x8e, skylake, ""}, {"KABYLAKE", 0x9e, skylake, ""}, {"COMETLAKE", 0xa5, skylake, ""}, {"COMETLAKE_L", 0xa6, skylake, ""},
		{"ICELAKE_X", 0x6a, skylake, ""}, {"ICELAKE_D", 0x6c, skylake, ""}, {"ICELAKE", 0x7d, skylake, ""}, {"ICELAKE_L", 0x7e, skylake, ""},
		{"ROCKETLAKE", 0xa7, skylake, ""}, {"TIGERLAKE_L", 0x8c, skylake, ""}, {"TIGERLAKE", 0x8d, skylake, ""},
		{"SAPPHIRERAPIDS_X", 0x8f, goldenCove, atom}, {"EMERALDRAPIDS_X", 0xcf, goldenCove, atom},
		{"ALDERLAKE", 0x97, goldenCove, atom}, {"ALDERLAKE_L", 0x9a, goldenCove, atom},
		{"RAPTORLAKE", 0xb7, goldenCove, atom}, {"RAPTORLAKE_P", 0xba, goldenCove, atom}, {"RAPTORLAKE_S", 0xbf, goldenCove, atom},
		{"METEORLAKE", 0xac, skylake, atom}, {"METEORLAKE_L", 0xaa, skylake, atom}, {"ARROWLAKE_U", 0xb5, skylake, atom},
		{"GRANITERAPIDS_X", 0xad, skylake, atom}, {"GRANITERAPIDS_D", 0xae, skylake, atom},
		{"LUNARLAKE_M", 0xbd, lionCove, atom}, {"ARROWLAKE_H", 0xc5, lionCove, atom}, {"ARROWLAKE", 0xc6, lionCove, atom},
		{"PANTHERLAKE_L", 0xcc, lionCove, dark}, {"WILDCATLAKE_L", 0xd5, lionCove, dark}, {"PANTHERLAKE_R", 0xe5, lionCove, dark},
		{"ATOM_GRACEMONT", 0xbe, atom, ""}, {"ATOM_CRESTMONT_X", 0xaf, atom, ""}, {"ATOM_CRESTMONT", 0xb6, atom, ""}, {"ATOM_DARKMONT_X", 0xdd, dark, ""},
	}
	known := 0
	for _, row := range rows {
		g, ok := intelGeneration(6, row.model)
		small := ""
		if g.small != nil {
			small = codes(*g.small)
		}
		if got := codes(g); !ok || got != row.codes || small != row.small {
			t.Errorf("%s, %#x: %s beside %q, want %s beside %q", row.name, row.model, got, small, row.codes, row.small)
		}
	}
	for _, g := range intelCores {
		known += len(g.models)
	}
	if known != len(rows) {
		t.Errorf("the table has %d models, %d of them checked", known, len(rows))
	}
}

// Whatever the table is changed to: no model twice, no code missing.
func TestIntelTable(t *testing.T) {
	seen := make(map[int]string)
	for _, g := range intelCores {
		if g.loads == 0 || g.stores == 0 || g.latency == 0 || len(g.counts) == 0 || len(g.counts) > maxCounters {
			t.Errorf("%s is not complete: %+v", g.name, g)
		}
		for _, m := range g.models {
			if seen[m] != "" {
				t.Errorf("model %#x is %s and %s", m, seen[m], g.name)
			}
			seen[m] = g.name
		}
	}
}

func TestPlausible(t *testing.T) {
	for _, tc := range []struct {
		unit string
		per  float64
		slow float64
		ok   bool
	}{
		{Accesses, 2, 2, true}, {Accesses, 2.15, 1.9, true}, {Accesses, 0, 0, false}, {Accesses, 1, 1, false}, {Accesses, 3, 3, false},
		{Accesses, 2, 17, false}, {Accesses, .4, 2, false}, // nanoseconds
		{Instructions, 7, 40, true}, {Instructions, 0, 0, false}, {Instructions, 1, 40, false},
		{Cycles, 1.5, 50, true}, {Cycles, 0, 0, false},
	} {
		c := Counted{Unit: tc.unit, Events: []Event{{Label: "x"}}}
		if err := c.plausible(tc.per, tc.slow); (err == nil) != tc.ok {
			t.Errorf("%v %s a round: %v", tc.per, tc.unit, err)
		}
	}
}
