package sampler

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/rdx-profiler/rdx/bpf"
)

// MaxAccessEvents is how many events a source with addresses may have: loads
// and stores on three types of core.
const MaxAccessEvents = 6

// Needs are the BPF programs of a session beside those that all have. What is
// not needed is not loaded: the kernel takes a millisecond or two to verify each.
type Needs struct {
	Access int  // events of sources with addresses, MaxAccessEvents at most
	Others bool // other threads are watched
	Stamps bool // threads are stamped, for the access rate
	Steps  bool // held threads are moved on, see Steps
}

// programs are the names of those to be loaded.
func (n Needs) programs() []string {
	names := []string{sampleProgram}
	if n.Stamps {
		names = append(names, stampProgram)
	}
	if n.Steps {
		names = append(names, stepProgram)
	}
	for i := range MaxCPUSlots {
		if n.Others {
			names = append(names, cpuProgram(i))
		}
	}
	for i := range NumSlots {
		names = append(names, trapProgram(i))
		if n.Others {
			names = append(names, otherProgram(i))
		}
	}
	for i := range n.Access {
		names = append(names, accessProgram(i))
	}
	return names
}

const (
	sampleProgram = "on_sample"
	stampProgram  = "on_stamp"
	stepProgram   = "on_step"
)

// A sample does not say of which event it is, nor a trap of which slot: each has
// a program of its own.
func accessProgram(event int) string { return fmt.Sprint("on_access", event) }
func trapProgram(slot int) string    { return fmt.Sprint("on_trap", slot) }
func otherProgram(slot int) string   { return fmt.Sprint("on_other", slot) }
func cpuProgram(slot int) string     { return fmt.Sprint("on_cpu", slot) }

// objects are what is loaded.
type objects struct {
	bpf.RDXMaps
	bpf.RDXVariables
	programs map[string]*ebpf.Program
}

func (o *objects) load(spec *ebpf.CollectionSpec, programs []string) error {
	wanted := make(map[string]*ebpf.ProgramSpec)
	for _, name := range programs {
		if wanted[name] = spec.Programs[name]; wanted[name] == nil {
			return fmt.Errorf("no program %s", name)
		}
	}
	spec.Programs = wanted
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		return err
	}
	if err := errors.Join(loaded.Assign(&o.RDXMaps), loaded.Assign(&o.RDXVariables)); err != nil {
		loaded.Close()
		o.RDXMaps.Close()
		return err
	}
	o.programs, loaded.Programs = loaded.Programs, nil
	loaded.Close() // the maps of variables, which live on in the programs
	return nil
}

// program returns the one of that name, or an error if it was not among the
// session's Needs.
func (o *objects) program(name string) (*ebpf.Program, error) {
	if p := o.programs[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("bpf program %s is not loaded", name)
}

func (o *objects) Close() error {
	errs := []error{o.RDXMaps.Close()}
	for _, p := range o.programs {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
