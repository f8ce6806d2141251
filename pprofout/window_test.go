package pprofout

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// windowProfile has touches and moments beside a record.
func windowProfile() *model.Profile {
	at := func(name string) []*model.Location {
		return []*model.Location{{Address: 0x1000, Lines: []model.Line{{Function: name, SystemName: name, File: "f.c", Line: 3}}}}
	}
	table := &model.Data{Name: "table"}
	return &model.Profile{
		Duration: time.Second, Source: "cpu-clock", BinsPerOctave: 16, Block: 64,
		Clock:   model.Clock{Name: "cpu-time", Unit: "nanoseconds", Rate: 1},
		Caches:  []model.Cache{{Level: "L1d", Size: 32768, Ways: 8, Line: 64}},
		CostsOn: []model.Cost{{Bytes: 16384, Waits: 2.2, Streams: 0.5, Apart: 0.7}, {Bytes: 1 << 28, Waits: 301, Streams: 5.6, Apart: 24}},
		Records: []model.Record{{Kind: model.Censored, Use: at("walk"), Op: model.Load, TID: 7, Weight: model.Weight{Observations: 1, Accesses: 5}, Timing: model.Timing{Time: 9, Native: 9}, Derived: model.Derived{Misses: []float64{5}}}},
		Touches: []model.Touch{
			{Use: at("walk"), Op: model.Load, Data: table, Manner: model.MannerStride, Stride: -64, Windows: 3, Accesses: 1000, Fetches: 900, Used: 7200, Written: 0, Member: "mass of struct particle"},
			{Use: at("walk"), Op: model.Store, Manner: model.MannerChase, Windows: 1, Accesses: 10, Fetches: 10, Used: 80, Written: 10},
		},
		Moments: []model.Moment{
			{Stack: at("walk"), TID: 7, Wait: model.WaitMemory, Op: model.Load, Data: table, Manner: model.MannerStride, Stride: -4096, MomentRates: model.MomentRates{Near: 125, Chases: 5, Apart: 2, Streams: 3, Runs: 170}, Samples: 2, Nanoseconds: 5e6},
			{Stack: at("other"), TID: 7, Wait: model.WaitNo, MomentRates: model.MomentRates{Near: 100}, Samples: 1, Nanoseconds: 1e6},
			{Stack: at("other"), TID: 7, Wait: model.WaitNo, MomentRates: model.MomentRates{Near: 100, Runs: 250}, Samples: 3, Nanoseconds: 4e6},
		},
	}
}

func TestWindowsRoundTrip(t *testing.T) {
	p := windowProfile()
	var file bytes.Buffer
	if err := Write(&file, p); err != nil {
		t.Fatal(err)
	}
	data := file.Bytes()
	q, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	type touch struct {
		name, data string
		model.Touch
	}
	touches := func(p *model.Profile) (out []touch) {
		for _, x := range p.Touches {
			u := touch{name: x.Use[0].Lines[0].Function, Touch: x}
			if x.Data != nil {
				u.data = x.Data.Name
			}
			u.Use, u.Data = nil, nil
			out = append(out, u)
		}
		return out
	}
	if got, want := touches(q), touches(p); !reflect.DeepEqual(got, want) {
		t.Errorf("touches:\n%+v\nwant\n%+v", got, want)
	}
	if len(q.Moments) != len(p.Moments) {
		t.Fatalf("%d moments, want %d", len(q.Moments), len(p.Moments))
	}
	for _, m := range q.Moments {
		want := p.Moments[slices.IndexFunc(p.Moments, func(w model.Moment) bool { return w.Wait == m.Wait && w.Runs == m.Runs })]
		if m.Data != nil && m.Data.Name != want.Data.Name || m.Stack[0].Lines[0].Function != want.Stack[0].Lines[0].Function {
			t.Errorf("moment of %v in %v", m.Data, m.Stack[0].Lines)
		}
		m.Stack, m.Data, want.Stack, want.Data = nil, nil, nil, nil
		if !reflect.DeepEqual(m, want) {
			t.Errorf("moment %+v, want %+v", m, want)
		}
	}
	if len(q.Records) != 1 || q.Records[0].Accesses != 5 {
		t.Errorf("records %+v", q.Records)
	}

	// Of an older file.
	older := q.Moments[slices.IndexFunc(q.Moments, func(m model.Moment) bool { return m.Chases > 0 })].MomentRates
	older.Chases, older.Apart, older.Streams = 10*older.Chases, 10*older.Apart, 10*older.Streams
	old, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range old.Sample {
		for now, then := range map[string]string{chasesLabel: chases1k, apartLabel: apart1k, streamsLabel: streams1k} {
			if v := s.NumLabel[now]; v != nil {
				s.NumLabel[then] = v
				delete(s.NumLabel, now)
			}
		}
	}
	if q, err = Decode(old); err != nil || !slices.ContainsFunc(q.Moments, func(m model.Moment) bool { return m.MomentRates == older }) {
		t.Errorf("of an older file: %v; %+v, want %+v", err, q.Moments, older)
	}

	// Merged by pprof's rules all doubles.
	one, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := profile.Merge([]*profile.Profile{one, one.Copy()})
	if err != nil {
		t.Fatal(err)
	}
	q, err = Decode(merged)
	if err != nil {
		t.Fatal(err)
	}
	cpu, fetches := 0.0, 0.0
	for _, m := range q.Moments {
		cpu += m.Nanoseconds
	}
	for _, x := range q.Touches {
		fetches += x.Fetches
	}
	if len(q.Moments) != 3 || len(q.Touches) != 2 || cpu != 20e6 || fetches != 2*910 {
		t.Errorf("merged: %d moments of %v ns, %d touches with %v fetches", len(q.Moments), cpu, len(q.Touches), fetches)
	}
}

func TestWindowsOfOtherFiles(t *testing.T) {
	for label, want := range map[string]string{patternLabel: "pattern", waitLabel: "wait"} {
		p := windowProfile()
		var file bytes.Buffer
		if err := Write(&file, p); err != nil {
			t.Fatal(err)
		}
		in, err := profile.ParseData(file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range in.Sample {
			if s.Label[label] != nil {
				s.Label[label] = []string{"sideways"}
			}
		}
		if _, err := Decode(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s=sideways: %v", label, err)
		}
	}
	p := windowProfile()
	p.Touches[0].Fetches = -1
	if err := Write(&bytes.Buffer{}, p); err == nil {
		t.Error("a negative weight was written")
	}
}
