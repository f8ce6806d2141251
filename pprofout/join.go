package pprofout

import (
	"slices"

	"github.com/google/pprof/profile"
)

// Join merges profiles by pprof's own rules, by which one of rdx stays one. pprof refuses those whose columns differ: the ones that
// a profile lacks, as nothing was seen to be in them, are added to it.
func Join(all ...*profile.Profile) (*profile.Profile, error) {
	var types []*profile.ValueType
	for _, p := range all {
		at := 0 // behind the type before
		for _, t := range p.SampleType {
			i := columnOf(types, t)
			if i < 0 {
				i = at
				types = slices.Insert(types, i, t)
			}
			at = i + 1
		}
	}
	for _, p := range all {
		if slices.EqualFunc(p.SampleType, types, sameColumn) {
			continue
		}
		for _, s := range p.Sample {
			values := make([]int64, len(types))
			for i, t := range p.SampleType {
				values[columnOf(types, t)] = s.Value[i]
			}
			s.Value = values
		}
		p.SampleType = types
	}
	return profile.Merge(all)
}

func columnOf(types []*profile.ValueType, want *profile.ValueType) int {
	return slices.IndexFunc(types, func(t *profile.ValueType) bool { return sameColumn(t, want) })
}

func sameColumn(a, b *profile.ValueType) bool { return a.Type == b.Type && a.Unit == b.Unit }
