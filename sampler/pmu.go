package sampler

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// PMU is one perf event source as sysfs describes it: its number, its named
// events, and where in the event's attribute each of its fields goes.
type PMU struct {
	Name string
	Type uint32
	CPUs string // list of the CPUs it counts on; "" for all

	format map[string]bitField
	events map[string]string
}

// Event is what a PMU is asked to count.
type Event struct {
	Label   string // such as cpu/event=0xd0,umask=0x83/
	Type    uint32
	Config  uint64
	Config1 uint64
	Config2 uint64
}

// bitField says which bits of config, config1 or config2 hold a value, the
// lowest first.
type bitField struct {
	word int // 0, 1, 2
	bits []uint8
}

// ReadPMU reads one event source from sysfs (os.DirFS("/sys")).
func ReadPMU(sys fs.FS, name string) (*PMU, error) {
	dir := path.Join(eventSources, name)
	line, err := readLine(sys, path.Join(dir, "type"))
	if err != nil {
		return nil, fmt.Errorf("read pmu %s: %w", name, err)
	}
	number, err := strconv.ParseUint(line, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read pmu %s: type: %w", name, err)
	}
	p := &PMU{Name: name, Type: uint32(number), format: make(map[string]bitField)}
	// Hybrid PMUs name their CPUs in cpus; uncore ones have a cpumask.
	p.CPUs, _ = readLine(sys, path.Join(dir, "cpus"))
	fields, err := readFiles(sys, path.Join(dir, "format"))
	if err != nil {
		return nil, fmt.Errorf("read pmu %s: %w", name, err)
	}
	for field, text := range fields {
		f, err := parseBitField(text)
		if err != nil {
			return nil, fmt.Errorf("read pmu %s: format %s: %w", name, field, err)
		}
		p.format[field] = f
	}
	if p.events, err = readFiles(sys, path.Join(dir, "events")); err != nil {
		return nil, fmt.Errorf("read pmu %s: %w", name, err)
	}
	return p, nil
}

// readFiles reads all files of a folder; none if there is no such folder.
func readFiles(sys fs.FS, dir string) (map[string]string, error) {
	out := make(map[string]string)
	entries, err := fs.ReadDir(sys, dir)
	if err != nil {
		return out, nil
	}
	for _, e := range entries {
		if out[e.Name()], err = readLine(sys, path.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseBitField reads "config:0-7,32-35" or "config1:3".
func parseBitField(text string) (bitField, error) {
	var f bitField
	word, ranges, ok := strings.Cut(text, ":")
	f.word = slices.Index([]string{"config", "config1", "config2"}, word)
	if !ok || f.word < 0 {
		return f, fmt.Errorf("%q is not a field such as config:0-7", text)
	}
	for r := range strings.SplitSeq(ranges, ",") {
		low, high, isRange := strings.Cut(r, "-")
		if !isRange {
			high = low
		}
		lo, err1 := strconv.ParseUint(low, 10, 6)
		hi, err2 := strconv.ParseUint(high, 10, 6)
		if err1 != nil || err2 != nil || lo > hi {
			return f, fmt.Errorf("%q is not a field such as config:0-7", text)
		}
		for b := lo; b <= hi; b++ {
			f.bits = append(f.bits, uint8(b))
		}
	}
	return f, nil
}

// Event makes an event of terms such as "event=0xd0,umask=0x81", or of the
// name of one of the PMU's own events. A term without a value is 1.
func (p *PMU) Event(terms string) (Event, error) {
	e := Event{Label: p.Name + "/" + terms + "/", Type: p.Type}
	if named, ok := p.events[terms]; ok {
		terms = named
	}
	words := [3]*uint64{&e.Config, &e.Config1, &e.Config2}
	for term := range strings.SplitSeq(terms, ",") {
		name, text, hasValue := strings.Cut(term, "=")
		value := uint64(1)
		if hasValue {
			var err error
			if value, err = strconv.ParseUint(text, 0, 64); err != nil {
				return e, fmt.Errorf("event %s: %q is not a number", e.Label, text)
			}
		}
		if i := slices.Index([]string{"config", "config1", "config2"}, name); i >= 0 {
			*words[i] |= value
			continue
		}
		f, ok := p.format[name]
		if !ok {
			return e, fmt.Errorf("event %s: the pmu has no field %q", e.Label, name)
		}
		if len(f.bits) < 64 && value>>len(f.bits) != 0 {
			return e, fmt.Errorf("event %s: %s is too large for the %d bits of %s", e.Label, text, len(f.bits), name)
		}
		for i, bit := range f.bits {
			*words[f.word] |= value >> i & 1 << bit
		}
	}
	return e, nil
}
