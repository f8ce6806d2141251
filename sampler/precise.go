package sampler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Precise is an event whose samples carry the address, the latency and the
// data source of an access: Intel's PEBS and AMD's IBS.
type Precise struct {
	Label string
	Attr  unix.PerfEventAttr
	// Aux must lead the event's group, nil if nothing must: without it some
	// generations refuse the load-latency event with ENODATA.
	Aux *unix.PerfEventAttr
	// Align is what a period must be a multiple of.
	Align uint64
	// After: a sample points at the instruction after the access.
	After bool
	// FilterUser: the event cannot leave the kernel out; the program must.
	FilterUser bool
}

// ibsAlign: the kernel refuses other periods, the hardware has no lower bits.
const ibsAlign = 16

// preciseSample is what a sample brings along.
const preciseSample = unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_ADDR |
	unix.PERF_SAMPLE_DATA_SRC | unix.PERF_SAMPLE_WEIGHT

// PreciseAttr is a sampling event that brings an address along. The programs
// take no stack with it: for that the kernel would want whole call chains
// (SET_BPF gives EPROTO).
func PreciseAttr(e Event) unix.PerfEventAttr {
	attr := samplingAttr(e)
	attr.Sample_type = preciseSample
	// One interrupt a sample: of a batch the program would see the last one only.
	attr.Wakeup = 1
	return attr
}

// pebsEvents sample loads and stores. Without latency none of them selects by
// latency, which would prefer slow ones, save where no other event samples
// loads.
func (m Machine) pebsEvents(latency bool) ([]Precise, error) {
	parts, err := m.intelParts()
	if err != nil {
		return nil, err
	}
	var out []Precise
	for _, p := range parts {
		level, err := m.maxPrecise(p.pmu)
		if err != nil {
			return nil, err
		}
		loads, aux := p.loads, uint16(0)
		if latency || p.loads == p.latency {
			loads, aux = p.latency, p.aux
		}
		for _, code := range []uint16{loads, p.stores} {
			c, err := m.raw(Counted{}, []pmuCode{{p.pmu, code}})
			if err != nil {
				return nil, err
			}
			e := pebsEvent(c.Events[0], level)
			if code == loads && loads == p.latency {
				e.Attr.Ext1 |= lowestLatency
				if aux != 0 {
					if e.Aux, err = m.auxEvent(p.pmu, aux); err != nil {
						return nil, err
					}
				}
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// lowestLatency is the smallest threshold that ldlat takes, in cycles.
const lowestLatency = 3

// maxPrecise is the highest precise_ip that the PMU takes.
func (m Machine) maxPrecise(pmu string) (int, error) {
	level := 3
	if text, err := readLine(m.Sys, eventSources+"/"+pmu+"/caps/max_precise"); err == nil {
		if _, err := fmt.Sscan(text, &level); err != nil {
			return 0, fmt.Errorf("read max_precise of %s: %w", pmu, err)
		}
	}
	if level < 1 || level > 3 {
		return 0, fmt.Errorf("%s offers no precise events (a virtual machine? use bare metal)", pmu)
	}
	return level, nil
}

// pebsEvent samples e with precise_ip at the given level, 1 to 3.
func pebsEvent(e Event, level int) Precise {
	attr := PreciseAttr(e)
	if level&1 != 0 {
		attr.Bits |= unix.PerfBitPreciseIPBit1
	}
	if level&2 != 0 {
		attr.Bits |= unix.PerfBitPreciseIPBit2
	}
	return Precise{Label: e.Label + strings.Repeat("p", level), Attr: attr, Align: 1, After: level == 1}
}

// auxEvent leads the group of a load-latency event and counts only.
func (m Machine) auxEvent(pmu string, code uint16) (*unix.PerfEventAttr, error) {
	c, err := m.raw(Counted{}, []pmuCode{{pmu, code}})
	if err != nil {
		return nil, err
	}
	attr := samplingAttr(c.Events[0])
	return &attr, nil
}

// ibsEvents sample micro-operations. Where IBS has no software filter the
// kernel's own operations are sampled, too.
func (m Machine) ibsEvents() ([]Precise, error) {
	if !slices.Contains(devices(m.Sys), "ibs_op") {
		return nil, errors.New("no IBS: the kernel names no ibs_op (not an AMD processor, or its hypervisor hides it: use bare metal)")
	}
	p, err := ReadPMU(m.Sys, "ibs_op")
	if err != nil {
		return nil, err
	}
	terms := "cnt_ctl=1"
	_, filter := p.format["swfilt"]
	if filter {
		terms += ",swfilt=1"
	}
	e, err := p.Event(terms)
	if err != nil {
		return nil, err
	}
	attr := PreciseAttr(e)
	attr.Sample_type |= unix.PERF_SAMPLE_RAW
	if !filter {
		attr.Bits &^= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	return []Precise{{Label: e.Label, FilterUser: !filter, Align: ibsAlign, Attr: attr}}, nil
}

// AccessSources names the sources with addresses that this machine may have,
// best first.
var AccessSources = []string{"pebs", "ibs"}

// ProbeAccess tries the sources with addresses out, in a thread of rdx itself.
func ProbeAccess(m Machine, k *Kernel) Check {
	const name = "addresses by PEBS, IBS"
	var why []string
	for _, source := range AccessSources {
		s, err := NewAccessSource(m, source, false)
		var p AccessProbe
		if err == nil {
			p, err = s.Probe(k)
		}
		if err == nil {
			err = p.Usable(source)
		}
		if err == nil {
			return good(name, "%s: %d of %d samples of a known loop have an address, %d of them right; %d have a latency, %d a data source",
				source, p.Memory, p.Ticks, p.Right, p.Latencies, p.Sources)
		}
		why = append(why, err.Error())
	}
	return good(name, "no: %s; addresses are decoded from the held thread", strings.Join(why, "; "))
}
