package web

import (
	"cmp"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// filler takes a profile's records into cells.
type filler struct {
	d         *Data
	names     *names
	pairOf    map[pairKey]int32
	objectOf  map[string]int32
	endOf     [model.NumKinds]int32
	groups    grouping
	own       float64             // records of fewer accesses are merged
	ownPair   float64             // and pairs of fewer
	accesses  map[pairKey]float64 // of pairs, where there are too many
	merged    map[mergedKey]*mergedCell
	mergedRow []mergedKey // in the order that they came in
}

type mergedKey struct {
	pair, object int32
	tid          int
}

// mergedCell is small samples alike.
type mergedCell struct {
	sum    model.Record
	misses []float64
	times  float64 // weighted sums
	native float64
	far    float64
}

func (d *Data) newFiller(p *model.Profile, n *names) *filler {
	f := &filler{d: d, names: n, pairOf: map[pairKey]int32{}, objectOf: map[string]int32{}, merged: map[mergedKey]*mergedCell{}}
	for k := model.Reuse; k < model.NumKinds; k++ {
		f.endOf[k] = n.index(k.String())
	}
	var weights []float64
	for i := range p.Records {
		if r := &p.Records[i]; shown(r) {
			weights = append(weights, r.Accesses)
		}
	}
	if len(weights) <= mostCells {
		return f
	}
	slices.Sort(weights)
	f.own = weights[len(weights)-mostCells/2] + 1e-9
	f.accesses = map[pairKey]float64{}
	for i := range p.Records {
		if r := &p.Records[i]; shown(r) {
			f.accesses[f.key(r)] += r.Accesses
		}
	}
	if len(f.accesses) > mostPairs {
		weights = weights[:0]
		for _, w := range f.accesses {
			weights = append(weights, w)
		}
		slices.Sort(weights)
		f.ownPair = weights[len(weights)-mostPairs] + 1e-9
	}
	return f
}

func (f *filler) key(r *model.Record) pairKey {
	k := pairKey{f.d.Places.ofStack(r.Use), -1, r.Kind}
	if r.Kind == model.Reuse || r.Kind == model.Invalidated {
		k.reuse = f.d.Places.ofStack(r.Reuse)
	}
	return k
}

// pair is the number of a record's pair. Those of too little are one.
func (f *filler) pair(k pairKey) int32 {
	if f.ownPair > 0 && f.accesses[k] < f.ownPair {
		other := f.d.Places.index("[small pairs]", "", 0)
		k = pairKey{other, -1, k.kind}
		if k.kind == model.Reuse || k.kind == model.Invalidated {
			k.reuse = other
		}
	}
	i, ok := f.pairOf[k]
	if !ok {
		i = int32(len(f.pairOf))
		f.pairOf[k] = i
		q := &f.d.Pairs
		q.Use, q.Reuse, q.Kind = append(q.Use, k.use), append(q.Reuse, k.reuse), append(q.Kind, f.endOf[k.kind])
	}
	return i
}

func (f *filler) object(r *model.Record) int32 {
	name := "(not recorded)"
	if r.Data != nil {
		name = r.Data.Name
	}
	i, ok := f.objectOf[name]
	if !ok {
		i = int32(len(f.objectOf))
		f.objectOf[name] = i
		f.d.Objects.Name = append(f.d.Objects.Name, f.names.index(name))
	}
	return i
}

func (f *filler) add(r *model.Record, misses []float64) {
	k := f.key(r)
	pair, object := f.pair(k), f.object(r)
	if !f.d.Exact {
		f.groups.add(r, pair, object, misses)
	}
	if r.Accesses < f.own {
		f.merge(r, pair, object, misses)
		return
	}
	c, d := &f.d.Cells, f.d
	c.Use, c.UseAt = append(c.Use, d.Nodes.index(r.Use)), append(c.UseAt, d.siteOf(r.Use, k.use))
	node, site := int32(-1), int32(-1)
	if k.reuse >= 0 {
		node, site = d.Nodes.index(r.Reuse), d.siteOf(r.Reuse, k.reuse)
	}
	c.Reuse, c.ReuseAt = append(c.Reuse, node), append(c.ReuseAt, site)
	c.Pair, c.Object = append(c.Pair, pair), append(c.Object, object)
	distance, ok := r.MeanDistance()
	if !ok {
		distance = math.NaN()
	}
	c.add(r, float64(r.Time), float64(r.Native), distance)
	c.Misses.add(misses)
}

func (f *filler) merge(r *model.Record, pair, object int32, misses []float64) {
	f.d.Merged++
	k := mergedKey{pair, object, r.TID}
	m := f.merged[k]
	if m == nil {
		m = &mergedCell{sum: model.Record{Kind: r.Kind, TID: r.TID}, misses: make([]float64, len(misses))}
		f.merged[k] = m
		f.mergedRow = append(f.mergedRow, k)
	}
	m.sum.Observations += r.Observations
	m.sum.Accesses += r.Accesses
	m.sum.Reuses += r.Reuses
	m.sum.Distance += r.Distance
	m.times += r.Accesses * float64(r.Time)
	m.native += r.Accesses * float64(r.Native)
	if far, ok := r.MeanDistance(); ok {
		m.far += r.Reuses * far
	}
	for i, v := range misses {
		m.misses[i] += v
	}
}

// flush makes cells of what was merged, whose stacks are the pair's places.
func (f *filler) flush() {
	c, d := &f.d.Cells, f.d
	for _, k := range f.mergedRow {
		m, pair := f.merged[k], k.pair
		small := d.Nodes.child(0, d.Places.index("[small samples]", "", 0))
		c.Use, c.UseAt = append(c.Use, d.Nodes.child(small, d.Pairs.Use[pair])), append(c.UseAt, -1)
		node, distance := int32(-1), math.NaN()
		if d.Pairs.Reuse[pair] >= 0 {
			node = d.Nodes.child(small, d.Pairs.Reuse[pair])
		}
		if m.sum.Reuses > 0 {
			distance = m.far / m.sum.Reuses
		}
		c.Reuse, c.ReuseAt = append(c.Reuse, node), append(c.ReuseAt, -1)
		c.Pair, c.Object = append(c.Pair, pair), append(c.Object, k.object)
		c.add(&m.sum, m.times/m.sum.Accesses, m.native/m.sum.Accesses, distance)
		c.Misses.add(m.misses)
	}
}

// add appends what needs no table.
func (c *cells) add(r *model.Record, time, native, distance float64) {
	below := int32(0)
	if r.BelowResolution {
		below = 1
	}
	c.TID, c.EndTID, c.Epoch = append(c.TID, int32(r.TID)), append(c.EndTID, int32(r.EndTID)), append(c.Epoch, int32(r.Epoch))
	c.Op, c.Below = append(c.Op, int32(r.Op)), append(c.Below, below)
	c.Seen, c.Accesses, c.Reuses = append(c.Seen, float64(r.Observations)), append(c.Accesses, r.Accesses), append(c.Reuses, r.Reuses)
	c.Time, c.Native, c.Total = append(c.Time, time), append(c.Native, native), append(c.Total, r.Distance)
	c.Distance = append(c.Distance, distance)
}

// grouping is what each record belongs to.
type grouping struct {
	records      []*model.Record
	pair, object []int32
	misses       steps
}

func (g *grouping) add(r *model.Record, pair, object int32, misses []float64) {
	g.records = append(g.records, r)
	g.pair, g.object = append(g.pair, pair), append(g.object, object)
	g.misses.add(misses)
}

// squares are the clusters' of each of n groups.
func (g *grouping) squares(p *model.Profile, of []int32, n, sizes int) (out steps) {
	order := make([]int, len(of))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(of[a], of[b]) })
	out.From = ints{0}
	scratch := make([]float64, sizes)
	for group := range int32(n) {
		end := 0
		for end < len(order) && of[order[end]] == group {
			end++
		}
		mine := order[:end]
		order = order[end:]
		records := make([]*model.Record, len(mine))
		for k, i := range mine {
			records[k] = g.records[i]
		}
		out.add(p.ClusterSquares(records, sizes, func(k int) []float64 { return g.misses.values(mine[k], scratch) }))
	}
	return out
}
