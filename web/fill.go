package web

import (
	"cmp"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// filler takes a profile's records into cells.
type filler struct {
	d             *Data
	names         *names
	pairOf        map[pairKey]int32 // its index in Data.Pairs
	last          pairKey           // the one looked for last: records of one follow each other
	lastPair      int32
	lastObject    lastObject
	ends          map[stackID]*end
	lastUse       lastEnd
	lastReuse     lastEnd
	objectOf      map[dataPart]int32
	objects       map[[2]string]int32 // by name and member
	endOf         [model.NumKinds]int32
	groups        grouping
	shown         int     // records
	leastAccesses float64 // records of fewer accesses are merged
	numbered      numberedPairs
	merged        map[mergedKey]int32 // index of the row
	rows          []*mergedCell       // in the order that they came in
	rowRoom       []mergedCell
	rowOf         []int32 // by pair: the row added to last, -1 if there is none
}

// numberedPairs are those of the shown records, where some are merged.
type numberedPairs struct {
	of    []int32 // by shown record: the number of its pair
	keys  []pairKey
	index []int32 // in Data.Pairs, -1 before it is there
	small []bool  // where there are too many: whether it is one of little
}

// end is what a record's use or reuse becomes.
type end struct {
	place, node, site int32
	shown             bool // node and site are there: those of samples that are merged aren't
}

// lastEnd is the end looked for last: records of one stack follow each other.
type lastEnd struct {
	stack stackID
	end   *end
}

// end is that of a stack, which does not change.
func (f *filler) end(stack []*model.Location, last *lastEnd) *end {
	var k stackID
	if len(stack) > 0 {
		k = stackID{&stack[0], len(stack)}
	}
	if last.end != nil && last.stack == k {
		return last.end
	}
	e := f.ends[k]
	if e == nil {
		e = &end{place: f.d.Places.ofStack(stack)}
		f.ends[k] = e
	}
	*last = lastEnd{k, e}
	return e
}

func (f *filler) show(e *end, stack []*model.Location) {
	if !e.shown {
		e.node, e.site, e.shown = f.d.Nodes.index(stack), f.d.siteOf(stack, e.place), true
	}
}

// dataPart is what of data a record touches.
type dataPart struct {
	data   *model.Data
	member string
}

// lastObject is the object looked for last.
type lastObject struct {
	part  dataPart
	index int32
	known bool
}

type mergedKey struct {
	pair, object int32
	tid          int
}

// mergedCell is small samples alike.
type mergedCell struct {
	key      mergedKey
	seen     int64
	accesses float64
	reuses   float64
	misses   []float64 // to where they are 0
	times    float64   // weighted sums
	native   float64
	far      float64
}

// recordsPerEnd is about how many records of a large profile go by for each stack.
const recordsPerEnd = 10

func (d *Data) newFiller(p *model.Profile) *filler {
	n := &names{}
	n.index("")
	d.Places = &placeTable{names: n}
	d.Nodes = newNodes(d.Places)
	d.sites, d.leaves = map[siteKey]int32{}, map[*model.Location]int32{}
	f := &filler{d: d, names: n, pairOf: map[pairKey]int32{}, ends: map[stackID]*end{}, objectOf: map[dataPart]int32{}, objects: map[[2]string]int32{}, merged: map[mergedKey]int32{}}
	for k := model.Reuse; k < model.NumKinds; k++ {
		f.endOf[k] = n.index(k.String())
	}
	for i := range p.Records {
		if shown(&p.Records[i]) {
			f.shown++
		}
	}
	return f
}

// findLeast says which records are merged, if there are too many.
func (f *filler) findLeast(p *model.Profile) {
	if f.shown <= mostCells {
		return
	}
	weights := make([]float64, 0, f.shown)
	for i := range p.Records {
		if r := &p.Records[i]; shown(r) {
			weights = append(weights, r.Accesses)
		}
	}
	f.leastAccesses = nth(weights, len(weights)-mostCells/2) + 1e-9
}

// nth is what would have index k if the values were sorted, none of which is NaN. It changes their order.
func nth(values []float64, k int) float64 {
	for len(values) > 16 {
		// Of three, the middle one parts them into what is less, as much, and more.
		n := len(values)
		part := []float64{values[0], values[n/2], values[n-1]}
		slices.Sort(part)
		less, more := 0, n
		for i := 0; i < more; {
			switch v := values[i]; {
			case v < part[1]:
				values[i], values[less] = values[less], v
				less++
				i++
			case v > part[1]:
				more--
				values[i], values[more] = values[more], v
			default:
				i++
			}
		}
		switch {
		case k < less:
			values = values[:less]
		case k >= more:
			values, k = values[more:], k-more
		default:
			return part[1]
		}
	}
	slices.Sort(values)
	return values[k]
}

// number numbers the shown records' pairs where some are merged, and says which are to be one, if there are too many.
func (f *filler) number(p *model.Profile) {
	f.d.Cells.grow(min(f.shown, mostCells))
	if f.shown <= mostCells {
		return
	}
	f.ends = make(map[stackID]*end, f.shown/recordsPerEnd)
	numbers, n := make(map[pairKey]int32, f.shown/recordsPerEnd), &f.numbered
	n.of = make([]int32, 0, f.shown)
	var accesses []float64 // by number
	at := int32(-1)
	for i := range p.Records {
		r := &p.Records[i]
		if !shown(r) {
			continue
		}
		if k, _, _ := f.key(r); at < 0 || k != n.keys[at] {
			var ok bool
			if at, ok = numbers[k]; !ok {
				at = int32(len(accesses))
				numbers[k] = at
				accesses, n.keys, n.index = append(accesses, 0), append(n.keys, k), append(n.index, -1)
			}
		}
		accesses[at] += r.Accesses
		n.of = append(n.of, at)
	}
	if len(accesses) <= mostPairs {
		return
	}
	least := nth(slices.Clone(accesses), len(accesses)-mostPairs) + 1e-9
	n.small = make([]bool, len(accesses))
	for i, a := range accesses {
		n.small[i] = a < least
	}
}

// key is a record's, and its ends; nil where it has no reuse.
func (f *filler) key(r *model.Record) (k pairKey, use, reuse *end) {
	use = f.end(r.Use, &f.lastUse)
	k = pairKey{use.place, -1, r.Kind}
	if r.Kind == model.Reuse || r.Kind == model.Invalidated {
		reuse = f.end(r.Reuse, &f.lastReuse)
		k.reuse = reuse.place
	}
	return k, use, reuse
}

// next is the pair of the next shown record. Those of too little are one.
func (f *filler) next(r *model.Record) int32 {
	n := &f.numbered
	if n.of == nil {
		k, _, _ := f.key(r)
		return f.pair(k)
	}
	at := n.of[f.d.Samples]
	if n.index[at] < 0 {
		k := n.keys[at]
		if n.small != nil && n.small[at] {
			other := f.d.Places.index("[small pairs]", "", 0)
			k = pairKey{other, -1, k.kind}
			if k.kind == model.Reuse || k.kind == model.Invalidated {
				k.reuse = other
			}
		}
		n.index[at] = f.pair(k)
	}
	return n.index[at]
}

func (f *filler) pair(k pairKey) int32 {
	if len(f.pairOf) > 0 && k == f.last {
		return f.lastPair
	}
	i, ok := f.pairOf[k]
	if !ok {
		i = int32(len(f.pairOf))
		f.pairOf[k] = i
		q := &f.d.Pairs
		q.Use, q.Reuse, q.Kind = append(q.Use, k.use), append(q.Reuse, k.reuse), append(q.Kind, f.endOf[k.kind])
		f.rowOf = append(f.rowOf, -1)
	}
	f.last, f.lastPair = k, i
	return i
}

func (f *filler) object(r *model.Record) int32 {
	k := dataPart{data: r.Data}
	if r.Data != nil {
		k.member = r.Member()
	}
	last := &f.lastObject
	if last.known && last.part == k {
		return last.index
	}
	i, ok := f.objectOf[k]
	if !ok {
		i = f.newObject(k)
		f.objectOf[k] = i
	}
	*last = lastObject{k, i, true}
	return i
}

func (f *filler) newObject(k dataPart) int32 {
	name := "(not recorded)"
	if k.data != nil {
		name = k.data.Name
	}
	i := f.named(name, "", -1)
	if k.member != "" {
		i = f.named(name, k.member, i)
	}
	return i
}

// named is the object of that name, or a part of it.
func (f *filler) named(name, member string, whole int32) int32 {
	key := [2]string{name, member}
	i, ok := f.objects[key]
	if !ok {
		i = int32(len(f.objects))
		f.objects[key] = i
		o := &f.d.Objects
		if whole < 0 {
			whole = i
		}
		o.Name, o.Member, o.Whole = append(o.Name, f.names.index(name)), append(o.Member, f.names.index(member)), append(o.Whole, whole)
	}
	return i
}

func (f *filler) add(r *model.Record, misses []float64) {
	pair, object := f.next(r), f.object(r)
	if !f.d.Exact {
		f.groups.records = append(f.groups.records, r)
		if f.leastAccesses > 0 {
			f.groups.add(pair, object, misses)
		}
	}
	if r.Accesses < f.leastAccesses {
		f.merge(r, pair, object, misses)
		return
	}
	c, d := &f.d.Cells, f.d
	_, use, reuse := f.key(r)
	f.show(use, r.Use)
	c.Use, c.UseAt = append(c.Use, use.node), append(c.UseAt, use.site)
	if reuse == nil {
		reuse = &end{node: -1, site: -1}
	} else {
		f.show(reuse, r.Reuse)
	}
	c.Reuse, c.ReuseAt = append(c.Reuse, reuse.node), append(c.ReuseAt, reuse.site)
	c.Pair, c.Object = append(c.Pair, pair), append(c.Object, object)
	distance, ok := r.MeanDistance()
	if !ok {
		distance = math.NaN()
	}
	c.add(r, float64(r.Time), float64(r.Native), distance)
	c.addMisses(misses, d.First)
}

func (f *filler) merge(r *model.Record, pair, object int32, misses []float64) {
	f.d.Merged++
	m := f.rowFor(mergedKey{pair, object, r.TID})
	m.seen += r.Observations
	m.accesses += r.Accesses
	m.reuses += r.Reuses
	m.times += r.Accesses * float64(r.Time)
	m.native += r.Accesses * float64(r.Native)
	if far, ok := r.MeanDistance(); ok {
		m.far += r.Reuses * far
	}
	n := len(misses)
	for n > 0 && misses[n-1] == 0 {
		n--
	}
	if more := n - len(m.misses); more > 0 {
		m.misses = append(m.misses, make([]float64, more)...)
	}
	for i, v := range misses[:n] {
		m.misses[i] += v
	}
}

// rowsAtOnce are taken together.
const rowsAtOnce = 256

// rowFor is the row of a key.
func (f *filler) rowFor(k mergedKey) *mergedCell {
	last := &f.rowOf[k.pair]
	if *last < 0 || f.rows[*last].key != k {
		i, ok := f.merged[k]
		if !ok {
			i = int32(len(f.rows))
			f.merged[k] = i
			if len(f.rowRoom) == 0 {
				f.rowRoom = make([]mergedCell, rowsAtOnce)
			}
			f.rows = append(f.rows, &f.rowRoom[0])
			f.rowRoom[0].key, f.rowRoom = k, f.rowRoom[1:]
		}
		*last = i
	}
	return f.rows[*last]
}

// flush makes cells of what was merged, whose stacks are the pair's places.
func (f *filler) flush() {
	c, d := &f.d.Cells, f.d
	misses := make([]float64, len(d.Sizes))
	for _, m := range f.rows {
		k, pair := m.key, m.key.pair
		small := d.Nodes.child(0, d.Places.index("[small samples]", "", 0))
		c.Use, c.UseAt = append(c.Use, d.Nodes.child(small, d.Pairs.Use[pair])), append(c.UseAt, -1)
		node, distance := int32(-1), math.NaN()
		if d.Pairs.Reuse[pair] >= 0 {
			node = d.Nodes.child(small, d.Pairs.Reuse[pair])
		}
		if m.reuses > 0 {
			distance = m.far / m.reuses
		}
		c.Reuse, c.ReuseAt = append(c.Reuse, node), append(c.ReuseAt, -1)
		c.Pair, c.Object = append(c.Pair, pair), append(c.Object, k.object)
		sum := model.Record{TID: k.tid, Weight: model.Weight{Observations: m.seen, Accesses: m.accesses}, Derived: model.Derived{Reuses: m.reuses}}
		c.add(&sum, m.times/m.accesses, m.native/m.accesses, distance)
		clear(misses)
		copy(misses, m.misses)
		c.addMisses(misses, d.First)
	}
}

// grow makes room for n.
func (c *cells) grow(n int) {
	for _, v := range []*ints{&c.Use, &c.Reuse, &c.Pair, &c.Object, &c.TID, &c.Epoch, &c.Op, &c.Below, &c.UseAt, &c.ReuseAt, &c.Misses.From} {
		*v = slices.Grow(*v, n+1)
	}
	for _, v := range []*doubles{&c.First, &c.Seen, &c.Accesses, &c.Reuses, &c.Time, &c.Native, &c.Distance} {
		*v = slices.Grow(*v, n)
	}
}

// addMisses appends misses on the grid, with those at the size that pages begin with.
func (c *cells) addMisses(misses []float64, first int) {
	c.Misses.add(misses)
	c.First = append(c.First, c.Misses.last(first))
}

// add appends what needs no table.
func (c *cells) add(r *model.Record, time, native, distance float64) {
	below := int32(0)
	if r.BelowResolution {
		below = 1
	}
	c.TID, c.Epoch = append(c.TID, int32(r.TID)), append(c.Epoch, int32(r.Epoch))
	c.Op, c.Below = append(c.Op, int32(r.Op)), append(c.Below, below)
	c.Seen, c.Accesses, c.Reuses = append(c.Seen, float64(r.Observations)), append(c.Accesses, r.Accesses), append(c.Reuses, r.Reuses)
	c.Time, c.Native = append(c.Time, time), append(c.Native, native)
	c.Distance = append(c.Distance, distance)
}

// grouped are all records: the cells, where none was merged.
func (f *filler) grouped() grouping {
	g := f.groups
	if c := &f.d.Cells; f.leastAccesses == 0 {
		g.pair, g.object, g.misses = c.Pair, c.Object, c.Misses
	}
	return g
}

// grouping is what each record belongs to.
type grouping struct {
	records      []*model.Record
	pair, object []int32
	misses       steps
}

func (g *grouping) add(pair, object int32, misses []float64) {
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
