package estimate

import (
	"github.com/rdx-profiler/rdx/collector/callstack"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// dataTable has one model.Data of each kind.
type dataTable map[dataKey]*model.Data

type dataKey struct {
	kind    model.DataKind
	mapping *model.Mapping
	name    string
	address uint64
	process *target.Process
	site    int
}

// of returns an observation's. What lies in the frames of its stack has been
// found by unwinding that; the first thread's stack has a name of its own.
func (dt dataTable) of(stacks *callstack.Table, o *record.Observation, locations locationTable) *model.Data {
	if dt == nil {
		return nil
	}
	d := o.Data
	if at := stacks.Holder(o.UseStack); at.Frame >= 0 {
		d = model.Data{Kind: model.DataStack, Frame: at.Frame, Below: at.Below, Above: at.Above}
	} else if d.Kind == model.DataOtherStack && o.TID == o.Process.PID {
		d = model.Data{Kind: model.DataStack, Frame: -1}
	}
	if d.Kind == model.DataStack {
		return &d // named by the record's own stack
	}
	return dt.intern(stacks, o.Process, d, o.Site, locations)
}

// intern returns the one of its kind; site is where it was allocated, plus one, 0 if that is not known.
func (dt dataTable) intern(stacks *callstack.Table, p *target.Process, d model.Data, site int, locations locationTable) *model.Data {
	key := dataKey{kind: d.Kind, mapping: d.Mapping, name: d.Name, address: d.Address}
	if site > 0 {
		key.process, key.site = p, stacks.ID(site-1)
		d = model.Data{Kind: model.DataBlock}
		key.kind = d.Kind
	}
	if dt[key] == nil {
		if site > 0 {
			d.Site = locations.stack(p, stacks.Stack(site-1))
		}
		dt[key] = &d
	}
	return dt[key]
}

// at returns what a site's accesses touch.
func (dt dataTable) at(stacks *callstack.Table, p *target.Process, x *record.Site, locations locationTable) *model.Data {
	return dt.intern(stacks, p, x.Data, x.Block, locations)
}
