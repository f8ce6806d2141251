package sampler

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Precise is an event whose samples carry the address, the latency and the
// data source of an access: Intel's PEBS and AMD's IBS.
type Precise struct {
	Label string
	Attr  unix.PerfEventAttr
	// FilterUser: the event cannot leave the kernel out; the program must.
	FilterUser bool
}

const (
	preciseGap = 1 << 16
	ibsAlign   = 16 // IBS ignores the lowest four bits of a period
)

// PreciseEvents are the events that sample loads and stores here with their
// addresses. None of them selects by latency, which would prefer slow ones.
func (m Machine) PreciseEvents() ([]Precise, error) {
	pmus := devices(m.Sys)
	if slices.Contains(pmus, "ibs_op") {
		p, err := ReadPMU(m.Sys, "ibs_op")
		if err != nil {
			return nil, err
		}
		e, err := ibsEvent(p, preciseGap)
		return []Precise{e}, err
	}
	vendor, _, model := processor(m.Proc)
	core, ok := intelGeneration(model)
	if vendor != "GenuineIntel" || !ok {
		return nil, errors.New("neither PEBS nor IBS")
	}
	codes := []pmuCode{{"cpu", core.loads}, {"cpu", core.stores}}
	if slices.Contains(pmus, "cpu_core") {
		codes = []pmuCode{{"cpu_core", core.loads}, {"cpu_core", core.stores}, {"cpu_atom", intelAtom.loads}, {"cpu_atom", intelAtom.stores}}
	}
	c, err := m.raw(Counted{}, codes)
	if err != nil {
		return nil, err
	}
	var out []Precise
	for i, e := range c.Events {
		if codes[i].code == core.latency && core.latency != 0 {
			// These cores sample loads by latency only: from the lowest on.
			e.Config1 = lowestLatency
		}
		level := 3
		if text, err := readLine(m.Sys, eventSources+"/"+codes[i].pmu+"/caps/max_precise"); err == nil {
			if _, err := fmt.Sscan(text, &level); err != nil {
				return nil, fmt.Errorf("read max_precise: %w", err)
			}
		}
		if level == 0 {
			return nil, fmt.Errorf("%s offers no precise events", codes[i].pmu)
		}
		out = append(out, pebsEvent(e, preciseGap, level))
	}
	return out, nil
}

// lowestLatency is the smallest threshold that ldlat takes, in cycles.
const lowestLatency = 3

// preciseSample is what a sample must hold: without ADDR the programs see no
// address, without CALLCHAIN they may take no stack, and without it or a
// wake-up a batch of records reaches them as its last one alone.
const preciseSample = unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_ADDR |
	unix.PERF_SAMPLE_CALLCHAIN | unix.PERF_SAMPLE_DATA_SRC | unix.PERF_SAMPLE_WEIGHT

const preciseBits = unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv | unix.PerfBitExcludeCallchainKernel

// pebsEvent samples e with precise_ip at the given level, 1 to 3.
func pebsEvent(e Event, gap uint64, level int) Precise {
	bits := uint64(preciseBits)
	if level&1 != 0 {
		bits |= unix.PerfBitPreciseIPBit1
	}
	if level&2 != 0 {
		bits |= unix.PerfBitPreciseIPBit2
	}
	return Precise{
		Label: e.Label + strings.Repeat("p", level),
		Attr: unix.PerfEventAttr{
			Type: e.Type, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
			Config: e.Config, Ext1: e.Config1, Ext2: e.Config2,
			Sample: gap, Sample_type: preciseSample, Bits: bits, Wakeup: 1,
		},
	}
}

// ibsEvent samples every gap-th micro-operation. Where IBS has no software
// filter the kernel's own operations are sampled, too.
func ibsEvent(p *PMU, gap uint64) (Precise, error) {
	terms := "cnt_ctl=1"
	_, filter := p.format["swfilt"]
	if filter {
		terms += ",swfilt=1"
	}
	e, err := p.Event(terms)
	if err != nil {
		return Precise{}, err
	}
	bits := uint64(preciseBits)
	if !filter {
		bits &^= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	return Precise{
		Label:      e.Label,
		FilterUser: !filter,
		Attr: unix.PerfEventAttr{
			Type: e.Type, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
			Config: e.Config, Ext1: e.Config1, Ext2: e.Config2,
			Sample: gap &^ (ibsAlign - 1), Sample_type: preciseSample | unix.PERF_SAMPLE_RAW, Bits: bits, Wakeup: 1,
		},
	}, nil
}

// ProbePrecise opens the precise events in a thread of rdx itself.
func ProbePrecise(m Machine) Check {
	const name = "addresses by PEBS, IBS"
	events, err := m.PreciseEvents()
	var labels []string
	for _, e := range events {
		fd, openErr := unix.PerfEventOpen(&e.Attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if openErr != nil {
			err = fmt.Errorf("%s: %w", e.Label, os.NewSyscallError("perf_event_open", openErr))
			break
		}
		unix.Close(fd)
		labels = append(labels, e.Label)
	}
	if err != nil {
		// The hold and the decoder supply the address, so this is no loss of
		// accuracy.
		return good(name, "no: %v; addresses are decoded from the held thread", err)
	}
	return good(name, "%s can be opened; rdx does not use them yet and decodes addresses from the held thread", strings.Join(labels, ", "))
}
