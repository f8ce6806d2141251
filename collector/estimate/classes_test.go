package estimate

import (
	"math"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
)

// compareAndCopy are windows of which most leave little open, and some nearly half.
func compareAndCopy() *foretold {
	windows := make(map[int]foretoldWindow)
	for hold := 1; hold <= 40; hold++ {
		windows[hold] = windowOf(0.5, 20, 0.01)
		if hold%5 == 0 {
			windows[hold] = windowOf(0.5, 20, 0.1)
		}
	}
	f := foretoldOf(windows)
	f.settle([]origins{{{0.02, 0.005, 0.002}}})
	return f
}

// Windows that leave as much open are of one class, and each record is of the class of its hold.
func TestClassify(t *testing.T) {
	f := compareAndCopy()
	f.classify()
	if len(f.classes) != 2 {
		t.Fatalf("%d classes, want 2: %+v", len(f.classes), f.classes)
	}
	in := f.parts()
	for hold, w := range f.windows {
		want := 0
		if hold%5 == 0 {
			want = 1
		}
		r := model.Record{Cluster: model.Cluster{Open: w.open}}
		if w.class != want || in[want](&r) != true || in[1-want](&r) != false {
			t.Errorf("hold %d, of which %v are open, is of class %d, want %d", hold, w.open, w.class, want)
		}
	}
	alike := make(map[int]foretoldWindow)
	for hold := 1; hold <= 40; hold++ {
		alike[hold] = windowOf(0.5, 20, 0.05)
	}
	f = foretoldOf(alike)
	f.settle([]origins{{{0.02, 0.005, 0.002}}})
	if f.classify(); len(f.classes) != 1 {
		t.Errorf("%d classes of windows that are alike", len(f.classes))
	}
	p := &model.Profile{Block: 64, Records: []model.Record{{Kind: model.Cold, Weight: model.Weight{Observations: 1, Accesses: 1}}}}
	ranges, err := p.PlainMissRanges([]uint64{512}, f.parts())
	if err != nil {
		t.Fatal(err)
	}
	if got := f.pool(ranges, nil); len(got) != 1 || got[0].High[0] != 1 {
		t.Errorf("of windows that are alike %v misses, want all, as is true of the profile", got)
	}
}

// Classes begin where numbers lie apart, however many there are of each.
func TestSplits(t *testing.T) {
	numbers := func(groups ...float64) (in []float64) { // how many, and what they are
		for i := 0; i < len(groups); i += 2 {
			for k := range int(groups[i]) {
				in = append(in, groups[i+1]+0.001*float64(k))
			}
		}
		return in
	}
	for _, c := range []struct {
		in   []float64
		want []int
	}{
		{nil, nil},
		{numbers(40, -6), nil},
		{numbers(130, -6, 10, -0.7), []int{130}},
		{numbers(10, -6, 130, -0.7), []int{10}},
		{numbers(20, -6, 20, -3, 20, -0.7), []int{20, 40}},
		{numbers(20, -6, 20, -5, 20, -3, 20, -0.7), []int{40, 60}},
		{numbers(40, -6, classHolds-1, -0.7), []int{39}}, // too few by themselves
		{numbers(40, -6, 40, -5.5), nil},                 // too near
	} {
		if got := splits(c.in, slices.Repeat([]float64{0.5}, len(c.in))); !slices.Equal(got, c.want) {
			t.Errorf("%d numbers fall apart at %v, want %v", len(c.in), got, c.want)
		}
	}
}

// Where what a copy leaves open comes from memory, and what a compare does from near, the copy's holds take their time for it; where
// nothing was watched in them they are as all.
func TestPoolByClass(t *testing.T) {
	const compared, copied = 0.001, 0.1 // miss ratios
	f := compareAndCopy()
	f.classify()
	_, accesses := f.byClass()
	all := (accesses[0]*compared + accesses[1]*copied) / (accesses[0] + accesses[1])
	flat := func(r float64) model.MissRange { return model.MissRange{Low: []float64{r}, High: []float64{r}} }
	ranges := []model.MissRange{flat(all), flat(compared), flat(copied)}
	watched := func(n int) (seen []*record.Observation) {
		for i := range n {
			seen = append(seen, &record.Observation{Hold: i%40 + 1, State: record.Done, Kind: [...]model.Kind{model.Reuse, model.Pruned}[i%2]})
		}
		return seen
	}
	many := f.pool(ranges, watched(4000))
	for k, want := range []float64{compared, copied} {
		if got := many[k].High[0]; math.Abs(got-want) > 0.05*want {
			t.Errorf("class %d misses in %v, want %v as was watched", k, got, want)
		}
	}
	open, n := f.byClass()
	perOpen := all * (n[0] + n[1]) / (open[0] + open[1])
	for k, r := range f.pool(ranges, nil) {
		if got, want := r.High[0], perOpen*open[k]/n[k]; math.Abs(got-want) > 1e-9 {
			t.Errorf("class %d, in which nothing was watched, misses in %v, want %v as all that is open", k, got, want)
		}
	}
	ranges[2] = model.MissRange{} // no record of it ended
	if got, want := f.pool(ranges, watched(4000))[1].High[0], perOpen*open[1]/n[1]; math.Abs(got-want) > 1e-9 {
		t.Errorf("a class without records misses in %v, want %v", got, want)
	}
}
