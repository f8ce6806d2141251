package pprofout_test

import (
	"bytes"
	"fmt"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// A profile is written for go tool pprof, and read back with all that it says.
func Example() {
	at := func(function string, line int) []*model.Location {
		return []*model.Location{{Lines: []model.Line{{Function: function, File: "grid.c", Line: line}}}}
	}
	p := &model.Profile{
		Block: 64, BinsPerOctave: 16, Source: "cpu-clock", Period: 1e6,
		Clock:  model.Clock{Name: "cpu-time", Unit: "nanoseconds", Rate: 2, RateSource: "flag"},
		Caches: []model.Cache{{Level: "L1d", Size: 32 << 10, Ways: 8, Line: 64}},
		Records: []model.Record{{
			Kind: model.Reuse, Use: at("fill", 10), Ending: model.Ending{Reuse: at("sum", 20)},
			Timing: model.Timing{Time: 1000, Native: 500}, Weight: model.Weight{Observations: 3, Accesses: 3e6},
		}},
	}
	var file bytes.Buffer
	if err := pprofout.Write(&file, p); err != nil {
		panic(err)
	}
	back, err := pprofout.Read(&file)
	if err != nil {
		panic(err)
	}
	r := back.Records[0]
	fmt.Println(r.Use[0].Lines[0].Function, "->", r.Reuse[0].Lines[0].Function, r.Observations, r.Accesses)
	// Output: fill -> sum 3 3e+06
}
