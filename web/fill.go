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
	leastAccesses float64 // records of fewer accesses are merged
	numbered      *numbered
	rows          []mergedCell
}

// numbered are the shown records' pairs, and the rows that they are merged to, where there are too many records.
type numbered struct {
	row  []int32   // by record: the number of its row, -1 if it is not shown
	keys []pairKey // by pair
	rowTable
	// Once all are numbered: by pair its index in Data.Pairs, and by row that in filler.rows.
	index, merged []int32
}

// rowTable numbers rows. Most pairs have one.
type rowTable struct {
	rows  []rowKey
	pairs []rowsOfPair
	more  map[rowKey]int32 // all but the first of each pair
}

// rowsOfPair are the first row of a pair and that of the record before, -1 before there are any.
type rowsOfPair struct{ first, last int32 }

// rowKey is what records of one row have in common.
type rowKey struct {
	pair, object int32
	tid          int
}

// rowFor is the number of a row.
func (t *rowTable) rowFor(k rowKey) int32 {
	p := &t.pairs[k.pair]
	switch {
	case p.first < 0:
		p.first = int32(len(t.rows))
		p.last, t.rows = p.first, append(t.rows, k)
	case t.rows[p.last] == k:
	case t.rows[p.first] == k:
		p.last = p.first
	default:
		i, ok := t.more[k]
		if !ok {
			i = int32(len(t.rows))
			t.more[k] = i
			t.rows = append(t.rows, k)
		}
		p.last = i
	}
	return p.last
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
		e = &end{place: f.d.PlaceTable.ofStack(stack)}
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

// mergedCell is small samples alike.
type mergedCell struct {
	key      rowKey // with the pair's index in Data.Pairs
	records  int
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

func (d *Data) newFiller() *filler {
	n := &names{}
	n.index("")
	d.PlaceTable = &placeTable{names: n}
	d.Nodes = newNodes(d.PlaceTable)
	d.sites, d.leaves = map[siteKey]int32{}, map[*model.Location]int32{}
	f := &filler{d: d, names: n, pairOf: map[pairKey]int32{}, ends: map[stackID]*end{}, objectOf: map[dataPart]int32{}, objects: map[[2]string]int32{}}
	for k := model.Reuse; k < model.NumKinds; k++ {
		f.endOf[k] = n.index(k.String())
	}
	return f
}

// findLeast says which records are merged, if there are too many.
func (f *filler) findLeast(p *model.Profile) {
	if len(p.Records) <= mostCells {
		return
	}
	weights := make([]float64, 0, len(p.Records))
	for i := range p.Records {
		if r := &p.Records[i]; shown(r) {
			weights = append(weights, r.Accesses)
		}
	}
	if len(weights) <= mostCells {
		return
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

// number numbers the shown records' pairs and rows, if there are too many records, and says which pairs are to be one.
func (f *filler) number(p *model.Profile) {
	f.d.Cells.grow(min(len(p.Records), mostCells))
	if len(p.Records) <= mostCells {
		return
	}
	some := len(p.Records) / recordsPerEnd
	f.ends = make(map[stackID]*end, some)
	numbers, accesses := make(map[pairKey]int32, some), make([]float64, 0, some) // by pair
	n := &numbered{row: make([]int32, len(p.Records)), keys: make([]pairKey, 0, some)}
	n.rowTable = rowTable{rows: make([]rowKey, 0, some), pairs: make([]rowsOfPair, 0, some), more: map[rowKey]int32{}}
	at, cells := int32(-1), 0
	for i := range p.Records {
		r := &p.Records[i]
		if !shown(r) {
			n.row[i] = -1
			continue
		}
		cells++
		if k, _, _ := f.key(r); at < 0 || k != n.keys[at] {
			var ok bool
			if at, ok = numbers[k]; !ok {
				at = int32(len(accesses))
				numbers[k] = at
				accesses, n.keys, n.pairs = append(accesses, 0), append(n.keys, k), append(n.pairs, rowsOfPair{-1, -1})
			}
		}
		accesses[at] += r.Accesses
		n.row[i] = n.rowFor(rowKey{at, f.object(r), r.TID})
	}
	if cells <= mostCells {
		return
	}
	least := math.Inf(-1)
	if len(accesses) > mostPairs {
		least = nth(slices.Clone(accesses), len(accesses)-mostPairs) + 1e-9
	}
	f.numbered = n
	f.place(func(pair int) bool { return accesses[pair] < least })
}

// place gives numbered pairs and rows their places. Pairs of too little are one.
func (f *filler) place(small func(pair int) bool) {
	n := f.numbered
	n.index, n.merged = make([]int32, len(n.keys)), make([]int32, len(n.rows))
	for i, k := range n.keys {
		if small(i) {
			other := f.d.PlaceTable.index("[small pairs]", "", 0)
			k = pairKey{other, -1, k.kind}
			if k.kind == model.Reuse || k.kind == model.Invalidated {
				k.reuse = other
			}
		}
		n.index[i] = f.pair(k)
	}
	merged := rowTable{pairs: slices.Repeat([]rowsOfPair{{-1, -1}}, len(f.pairOf)), more: map[rowKey]int32{}}
	for i, k := range n.rows {
		k.pair = n.index[k.pair]
		n.merged[i] = merged.rowFor(k)
	}
	f.rows = make([]mergedCell, len(merged.rows))
	for i, k := range merged.rows {
		f.rows[i].key = k
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

// add takes record i, which is shown.
func (f *filler) add(i int, r *model.Record, misses []float64) {
	var pair, object int32
	if n := f.numbered; n != nil {
		k := &f.rows[n.merged[n.row[i]]].key
		pair, object = k.pair, k.object
	} else {
		k, _, _ := f.key(r)
		pair, object = f.pair(k), f.object(r)
	}
	if !f.d.Exact {
		f.groups.records = append(f.groups.records, r)
		if f.leastAccesses > 0 {
			f.groups.add(pair, object, misses)
		}
	}
	if r.Accesses < f.leastAccesses {
		f.merge(i, r, misses)
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

// merge takes record i, which is a small one.
func (f *filler) merge(i int, r *model.Record, misses []float64) {
	m := &f.rows[f.numbered.merged[f.numbered.row[i]]]
	m.records++
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

// rowsAtOnce are so many rows that follow each other in parts that are merged by different goroutines: records that follow each
// other are of rows that do, too.
const rowsAtOnce = 256

// mergePart takes the small records of part i of n, in their order: so sums don't depend on how many goroutines there are.
func (f *filler) mergePart(p *model.Profile, of func(i int, misses []float64), part, n int) {
	misses := make([]float64, len(f.d.Sizes))
	for i, row := range f.numbered.row {
		if row < 0 || int(f.numbered.merged[row])/rowsAtOnce%n != part {
			continue
		}
		if r := &p.Records[i]; r.Accesses < f.leastAccesses {
			of(i, misses)
			f.merge(i, r, misses[:f.d.useStored(r, misses)])
		}
	}
}

// flush makes cells of what was merged, whose stacks are the pair's places.
func (f *filler) flush() {
	c, d := &f.d.Cells, f.d
	misses := make([]float64, len(d.Sizes))
	for i := range f.rows {
		m := &f.rows[i]
		if m.records == 0 { // all of them are shown by themselves
			continue
		}
		d.Merged += m.records
		k, pair := m.key, m.key.pair
		small := d.Nodes.child(0, d.PlaceTable.index("[small samples]", "", 0))
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
