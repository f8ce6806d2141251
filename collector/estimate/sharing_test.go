package estimate

import (
	"testing"

	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// A draft of a profile, by which its rate is foretold, has no stacks: of who takes a word from whom neither.
func TestDraftHasNoStacks(t *testing.T) {
	m := recorder{stage: &stage{bare: true}}
	if s := m.stackAt(&target.Process{}, 1, 0x1000); s != nil {
		t.Errorf("a stack of %d", len(s))
	}
}

// A hold of which all observations were lost stands for nothing: what it shows of who takes a word makes no record, whose time
// would be that of no access.
func TestTakenByLostHolds(t *testing.T) {
	process := &target.Process{}
	m := recorder{stage: &stage{}, locations: make(locationTable), data: make(dataTable)}
	m.Rates.Fixed = 1
	var p model.Profile
	m.addSums(&p, map[takenKey]*takenSum{
		{process: process, tid: 1, writer: 2, reader: 0x1000, by: 0x2000, kind: model.FalseSharing, line: 1}: {holds: 1},
		{process: process, tid: 1, writer: 2, reader: 0x1000, by: 0x3000, kind: model.FalseSharing, line: 2}: {accesses: 10, soon: 70, holds: 1},
	})
	if len(p.Records) != 1 || p.Records[0].Time != 7 {
		t.Errorf("%+v, want one record, of time 7", p.Records)
	}
}
