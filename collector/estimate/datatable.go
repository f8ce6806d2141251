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
	d := o.Data
	if frame := stacks.Holder(o.UseStack); frame >= 0 {
		d = model.Data{Kind: model.DataStack, Frame: frame}
	} else if d.Kind == model.DataOtherStack && o.TID == o.Process.PID {
		d = model.Data{Kind: model.DataStack, Frame: -1}
	}
	if d.Kind == model.DataStack {
		return &d // named by the record's own stack
	}
	key := dataKey{kind: d.Kind, mapping: d.Mapping, name: d.Name, address: d.Address}
	if o.Site > 0 {
		key.process, key.site = o.Process, stacks.ID(o.Site-1)
		d = model.Data{Kind: model.DataBlock}
		key.kind = d.Kind
	}
	if dt[key] == nil {
		if o.Site > 0 {
			d.Site = locations.stack(o.Process, stacks.Stack(o.Site-1))
		}
		dt[key] = &d
	}
	return dt[key]
}
