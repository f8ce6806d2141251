package sampler

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// generation is a family of Intel cores whose retired loads and stores are
// counted by the same events. The codes are umask<<8 | event.
type generation struct {
	name   string
	models []int // CPUID model of family 6
	// loads and stores are sampled precisely, with their address (PEBS).
	loads, stores uint16
	// counts add up to all accesses.
	counts []uint16
	// latency samples loads, chosen by their latency; aux must come before it
	// in the group, 0 if nothing need.
	latency, aux uint16
	// small are the efficiency cores beside it in hybrid processors.
	small *generation
}

// Sources: Intel SDM volume 3 chapter 20, arch/x86/events/intel of Linux 7.2
// (which names mem-loads-aux in sysfs where a generation needs it), and Intel's
// perfmon event lists. Of Lion Cove and its successors 0x83d0 is none of the
// events listed: 0x87d0 counts software prefetches, too, which before counted as loads.
var intelCores = []generation{
	{"Sandy Bridge", []int{0x2a, 0x2d}, 0x01cd, 0x02cd, []uint16{0x81d0, 0x82d0}, 0x01cd, 0, nil},
	{"Ivy Bridge", []int{0x3a, 0x3e}, 0x01cd, 0x02cd, []uint16{0x81d0, 0x82d0}, 0x01cd, 0, nil},
	{"Haswell", []int{0x3c, 0x3f, 0x45, 0x46}, 0x81d0, 0x82d0, []uint16{0x81d0, 0x82d0}, 0x01cd, 0, nil},
	{"Broadwell", []int{0x3d, 0x47, 0x4f, 0x56}, 0x81d0, 0x82d0, []uint16{0x81d0, 0x82d0}, 0x01cd, 0, nil},
	{"Skylake", []int{0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6}, 0x81d0, 0x82d0, []uint16{0x83d0}, 0x01cd, 0, nil},
	{"Ice Lake", []int{0x7d, 0x7e, 0x6a, 0x6c, 0xa7, 0x8c, 0x8d}, 0x81d0, 0x82d0, []uint16{0x83d0}, 0x01cd, 0, nil},
	{"Golden Cove", []int{0x8f, 0xcf, 0x97, 0x9a, 0xb7, 0xba, 0xbf}, 0x81d0, 0x82d0, []uint16{0x83d0}, 0x01cd, 0x8203, &gracemont},
	{"Redwood Cove", []int{0xaa, 0xac, 0xad, 0xae, 0xb5}, 0x81d0, 0x82d0, []uint16{0x83d0}, 0x01cd, 0, &gracemont},
	{"Lion Cove", []int{0xbd, 0xc5, 0xc6}, 0x81d0, 0x82d0, []uint16{0x87d0}, 0x01cd, 0, &gracemont},
	{"Cougar Cove", []int{0xcc, 0xd5, 0xe5}, 0x81d0, 0x82d0, []uint16{0x87d0}, 0x01cd, 0, &darkmont},
	gracemont,
	darkmont,
}

// The efficiency cores, and the processors made of them alone. Darkmont has
// addresses with the two latency events only.
var (
	gracemont = generation{"Gracemont", []int{0xbe, 0xaf, 0xb6}, 0x81d0, 0x82d0, []uint16{0x83d0}, 0x05d0, 0, nil}
	darkmont  = generation{"Darkmont", []int{0xdd}, 0x05d0, 0x06d0, []uint16{0x83d0}, 0x05d0, 0, nil}
)

// corePart is one type of core of a processor: its PMU in sysfs, and its
// events.
type corePart struct {
	pmu string
	generation
}

// intelParts are the types of core of this Intel processor; one or, of a hybrid
// one, two or three.
func (m Machine) intelParts() ([]corePart, error) {
	vendor, family, model := processor(m.Proc)
	if vendor != "GenuineIntel" {
		return nil, errors.New("not an Intel processor")
	}
	core, ok := intelGeneration(family, model)
	if !ok {
		return nil, fmt.Errorf("the load and store events of Intel family %d model %#x are not known to rdx", family, model)
	}
	pmus := devices(m.Sys)
	if !slices.Contains(pmus, "cpu_core") {
		if !slices.Contains(pmus, "cpu") {
			return nil, errors.New("the kernel names no cpu (its hypervisor hides the PMU: use bare metal)")
		}
		return []corePart{{"cpu", core}}, nil
	}
	parts := []corePart{{"cpu_core", core}}
	for _, small := range []string{"cpu_atom", "cpu_lowpower"} {
		if !slices.Contains(pmus, small) {
			continue
		}
		if core.small == nil {
			return nil, fmt.Errorf("the events of the efficiency cores beside %s are not known to rdx", core.name)
		}
		parts = append(parts, corePart{small, *core.small})
	}
	return parts, nil
}

// amdAccesses counts dispatched loads, stores and load-op-stores on Zen:
// those on a wrong path included, a read-modify-write once.
const amdAccesses = 0x0729

// armAccesses is the name of the event in sysfs: MEM_ACCESS, 0x13.
const armAccesses = "mem_access"

// Counted is a set of events of one thread that, added up, count one thing.
type Counted struct {
	Events []Event
	Unit   string // Accesses, Instructions or Cycles
	// Hybrid: one event for each type of core, of which one counts at a time.
	Hybrid bool
}

// Label names all the events.
func (c Counted) Label() string {
	var labels []string
	for _, e := range c.Events {
		labels = append(labels, e.Label)
	}
	return strings.Join(labels, "+")
}

// processor reads vendor, family and model of the first CPU.
func processor(proc fs.FS) (vendor string, family, model int) {
	b, err := fs.ReadFile(proc, "cpuinfo")
	if err != nil {
		return "", 0, 0
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "vendor_id":
			vendor = value
		case "cpu family":
			family, _ = strconv.Atoi(value)
		case "model":
			model, _ = strconv.Atoi(value)
		case "":
			return vendor, family, model
		}
	}
	return vendor, family, model
}

// AccessEvents are the events that should count this processor's loads and
// stores, or an error that says why there are none. Whether they do count is
// for Validate to say.
func (m Machine) AccessEvents() (Counted, error) {
	c := Counted{Unit: Accesses}
	pmus := devices(m.Sys)
	vendor, family, _ := processor(m.Proc)
	switch {
	case vendor == "GenuineIntel" && (slices.Contains(pmus, "cpu") || slices.Contains(pmus, "cpu_core")):
		parts, err := m.intelParts()
		if err != nil {
			return c, err
		}
		// Of each type of core one event counts at a time.
		c.Hybrid = len(parts) > 1
		var codes []pmuCode
		for _, part := range parts {
			for _, code := range part.counts {
				codes = append(codes, pmuCode{part.pmu, code})
			}
		}
		return m.raw(c, codes)
	case vendor == "AuthenticAMD" && slices.Contains(pmus, "cpu"):
		if family < 0x17 {
			return c, fmt.Errorf("the load and store events of AMD family %#x are not known to rdx", family)
		}
		return m.raw(c, []pmuCode{{"cpu", amdAccesses}})
	}
	for _, name := range pmus {
		if !strings.HasPrefix(name, "armv8") && !strings.HasPrefix(name, "armv9") {
			continue
		}
		p, err := ReadPMU(m.Sys, name)
		if err != nil {
			return c, err
		}
		if _, ok := p.events[armAccesses]; ok {
			e, err := p.Event(armAccesses)
			if err != nil {
				return c, err
			}
			c.Events = append(c.Events, e)
		}
	}
	// big.LITTLE has one PMU for each type of core.
	c.Hybrid = len(c.Events) > 1
	switch {
	case len(c.Events) > maxCounters:
		return c, fmt.Errorf("%d types of cores, rdx can add up the counters of %d", len(c.Events), maxCounters)
	case len(c.Events) == 0:
		return c, fmt.Errorf("no counter of loads and stores among the event sources: %s", strings.Join(pmus, ", "))
	}
	return c, nil
}

type pmuCode struct {
	pmu  string
	code uint16
}

func (m Machine) raw(c Counted, codes []pmuCode) (Counted, error) {
	for _, pc := range codes {
		p, err := ReadPMU(m.Sys, pc.pmu)
		if err != nil {
			return c, err
		}
		e, err := p.Event(fmt.Sprintf("event=%#x,umask=%#x", pc.code&0xff, pc.code>>8))
		if err != nil {
			return c, err
		}
		c.Events = append(c.Events, e)
	}
	return c, nil
}

func intelGeneration(family, model int) (generation, bool) {
	for _, g := range intelCores {
		if family == 6 && slices.Contains(g.models, model) {
			return g, true
		}
	}
	return generation{}, false
}
