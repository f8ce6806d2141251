package backend

import (
	"math/rand/v2"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// Made is a window of a program whose miss ratio is known by construction: a share of
// the accesses goes around a cycle of so many lines, and misses in every cache that is
// smaller; the others come back at once.
type Made struct {
	Name   string
	Share  float64
	Lines  uint64
	Seed   uint64
	N      int // observations
	Caches []model.Cache
}

var madeCaches = []model.Cache{{Level: "L1d", Size: 32 << 10, Ways: 8, Line: 64}, {Level: "L2", Size: 1 << 20, Ways: 16, Line: 64}, {Level: "L3", Size: 32 << 20, Ways: 16, Line: 64}}

// Profile is the window, derived. It panics if that can't be.
func (m Made) Profile() *model.Profile {
	r := rand.New(rand.NewPCG(m.Seed, 2))
	exe := &model.Mapping{Start: 0x400000, Limit: 0x500000, File: "/srv/bin/" + m.Name, BuildID: "b-" + m.Name}
	lib := &model.Mapping{Start: 0x7f0000000000 + m.Seed<<12, Limit: 0x7f0000100000 + m.Seed<<12, File: "/usr/lib/libc.so.6", BuildID: "beef"}
	at := func(addr uint64, fn string, line int) *model.Location {
		return &model.Location{Address: addr, Mapping: exe, Lines: []model.Line{{Function: fn, SystemName: fn, File: m.Name + ".c", Line: line, StartLine: line - 3}}}
	}
	mainF, hot, walk := at(0x401000, "main", 70), at(0x402000, m.Name+"_hot", 12), at(0x403000, m.Name+"_walk", 33)
	nameless := &model.Location{Address: lib.Start + 0x1234, Mapping: lib}
	if m.Caches == nil {
		m.Caches = madeCaches
	}
	p := &model.Profile{Start: time.Unix(1.8e9, 0), Duration: time.Minute, Command: m.Name, Source: "cpu-clock", Period: 1e6,
		Clock: model.Clock{Name: "cpu-time", Unit: "nanoseconds", Rate: 1, RateSource: "default", Touches: 1.1, Resolution: 500},
		Block: 64, BinsPerOctave: 16, Caches: m.Caches,
		Counts: []model.Count{{Name: model.LostBecause.Of(model.SignalsBlocked), N: 3}, {Name: model.CPUSampled, N: 6e10}, {Name: model.Holds, N: 17}}}
	for i := range m.N {
		rec := model.Record{Op: model.Load, TID: 100 + i%3, Weight: model.Weight{Observations: 1, Accesses: 1e6 * (1 + r.Float64())}}
		if r.Float64() < m.Share {
			rec.Kind, rec.Use, rec.Reuse = model.Reuse, []*model.Location{walk, mainF}, []*model.Location{walk, mainF}
			// One in share goes around: so many others lie between.
			rec.Time = uint64(float64(m.Lines) / m.Share)
			rec.After = 2047
			rec.Distinct = uint64(2047*m.Share) + 8
			if i%20 == 0 {
				rec.Kind, rec.Reuse, rec.Time, rec.Distinct = model.Censored, nil, rec.Time/2, 0
			}
		} else {
			rec.Kind, rec.Use, rec.Reuse = model.Reuse, []*model.Location{hot, mainF}, []*model.Location{nameless, hot, mainF}
			rec.Exact, rec.Time, rec.Distinct = true, 2+r.Uint64N(6), 2
		}
		rec.Native = rec.Time
		p.Records = append(p.Records, rec)
	}
	if err := p.Derive(); err != nil {
		panic(err)
	}
	return p
}
