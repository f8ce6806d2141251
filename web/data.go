package web

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Data is all that the pages show of one profile, observed in one kind of stack. Sizes are bytes,
// times accesses, weights accesses of the program.
type Data struct {
	Version  int      `json:"version"` // of the server's profiles
	File     string   `json:"file"`
	Stack    string   `json:"stack"`
	Stacks   []string `json:"stacks"`
	Rows     []row    `json:"rows"` // what rdx prints above every list
	Survey   any      `json:"survey"`
	Exact    bool     `json:"exact"` // counted: there is no chance in it
	Block    int      `json:"block"`
	Unit     string   `json:"clock_unit"`
	Accesses float64  `json:"accesses"`
	Holds    int64    `json:"holds"`
	Samples  int      `json:"samples"`
	Merged   int      `json:"merged"` // of those, how many small ones are shown together, by pairs

	Sizes  []uint64   `json:"sizes"` // the grid
	First  int        `json:"first"` // its index that pages begin with
	Caches []cacheAt  `json:"caches"`
	Curve  *curve     `json:"curve"` // nil without observations
	Bands  countBands `json:"count_bands"`

	Strings    []string    `json:"strings"`
	PlaceTable *placeTable `json:"places"`
	Cells      cells       `json:"cells"`
	Pairs      pairs       `json:"pairs"`
	Objects    objects     `json:"objects"`

	more `json:"-"`

	SourceFiles []int32 `json:"source_files"` // strings that are the names of files whose source can be had
	source      map[int32]string
	sites       map[siteKey]int32
	leaves      map[*model.Location]int32 // sites
	groups      grouping
	rest        func() *rest
}

// more is what the first picture, the overview at the size First, does without: the columns of many samples are megabytes.
type more struct {
	Cells   *moreCells `json:"cells"`
	Nodes   *nodes     `json:"nodes"`
	Moments moments    `json:"moments"`
	Touched []touched  `json:"touched"` // how memory is touched, by place and by data object
	Sites   []site     `json:"sites"`
}

// rest is what takes rdx longer than all that.
type rest struct {
	// Sums of clusters' squares, for bands of pairs and of objects; nothing of an exact profile.
	Pairs   steps `json:"pairs"`
	Objects steps `json:"objects"`
	Wholes  steps `json:"wholes"` // of objects with all their parts; nothing where none has parts

	Threads       any `json:"threads"`       // as rdx threads --format json
	Invalidations any `json:"invalidations"` // as rdx top --by invalidations; null where others' writes were not watched
}

type row struct {
	Key  string `json:"key"` // "!" for a warning
	Text string `json:"text"`
}

type cacheAt struct {
	Level string `json:"level"`
	Bytes int64  `json:"bytes"`
	At    int    `json:"at"` // in the grid, -1 where it holds no block
}

// curve is the miss ratio curve on the grid, as rdx mrc has it.
type curve struct {
	Ratio []float64 `json:"ratio"`
	Low   []float64 `json:"low"`
	High  []float64 `json:"high"`
	Note  []string  `json:"note"` // why a ratio is not to be quoted
	// Unknown is of such a ratio: nothing is known beside the band, and its upper end is no bound that tells something.
	Unknown []bool `json:"unknown"`
}

// countBands is Garwood's band of counts, for k in equal steps of its logarithm: the browser takes
// from it the band of a sum with clusters' squares, as model.PerAccess does.
type countBands struct {
	Least   float64   `json:"least"`    // the first k
	PerStep float64   `json:"per_step"` // factor from one k to the next
	Low     []float64 `json:"low"`      // of k, as a factor
	High    []float64 `json:"high"`
	None    float64   `json:"none"` // the upper end for k = 0
}

// cells are the samples: all that was seen of one use stack, reuse stack and time.
type cells struct {
	Pair      ints    `json:"pair"`
	First     doubles `json:"first"` // misses at the size that pages begin with
	moreCells `json:"-"`
}

type moreCells struct {
	Use      ints    `json:"use"`   // node
	Reuse    ints    `json:"reuse"` // node; -1 where no reuse was seen
	Object   ints    `json:"object"`
	TID      ints    `json:"tid"`
	Epoch    ints    `json:"epoch"`
	Op       ints    `json:"op"`    // 1 load, 2 store, 0 not known
	Below    ints    `json:"below"` // 1: Time is an upper bound
	UseAt    ints    `json:"use_at"`
	ReuseAt  ints    `json:"reuse_at"` // sites of the leaves
	Seen     doubles `json:"seen"`     // observations
	Accesses doubles `json:"accesses"`
	Reuses   doubles `json:"reuses"`
	Time     doubles `json:"time"`
	Native   doubles `json:"native"`
	Distance doubles `json:"distance"` // mean, bytes; NaN where there is none
	Misses   steps   `json:"misses"`
}

// pairs are use -> reuse pairs of places. They have their end in a reuse, an invalidating write, or
// a kind.
type pairs struct {
	Use   ints `json:"use"`   // place
	Reuse ints `json:"reuse"` // place; -1 where no reuse was seen
	Kind  ints `json:"kind"`  // in Data.Strings
}

// moments are samples of CPU time: what a program does then, whether it waits for data or not.
type moments struct {
	Node ints    `json:"node"`
	TID  ints    `json:"tid"`
	Time doubles `json:"time"` // ns that they stand for
}

// objects are data objects, and their parts where the profile tells: members of structs, variables of a stack. Samples are of a part,
// or of the whole if it is not known of which.
type objects struct {
	Name   ints `json:"name"`   // of the whole
	Member ints `json:"member"` // of the part, in Data.Strings; 0, "", of a whole
	Whole  ints `json:"whole"`  // the object that it is part of; a whole is its own
}

// parted says whether any has parts.
func (o *objects) parted() bool {
	for i, w := range o.Whole {
		if int(w) != i {
			return true
		}
	}
	return false
}

// Options say what to make of a profile.
type Options struct {
	Sizes  []uint64 // of the grid besides its own, bytes
	Source *Source  // nil: there is none
	Made   func()   // called once what the first picture needs is made; nil: nobody
}

// New makes the data of a profile that was read; file is what it is called. The profile is not
// changed and may be shared.
func New(raw *model.Profile, file, stack string, o Options) (*Data, error) {
	return newData(raw, file, stack, o, func(*Data) {})
}

// newData is New, and gives begun what there is before anything is known of single samples: the curve, and what was measured.
func newData(raw *model.Profile, file, stack string, o Options, begun func(first *Data)) (*Data, error) {
	p, err := report.Ready(raw, stack)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if p.Block <= 0 {
		return nil, fmt.Errorf("%s: the profile does not tell its block size", file)
	}
	d := &Data{File: file, Exact: p.ExactDistances, Block: p.Block, Unit: p.Clock.Unit, Bands: newCountBands()}
	// Nothing of this changes the profile. Who is to be shown does not depend on the sizes.
	var drawn, filled error
	f, quotable, sized := d.newFiller(), make(chan int, 1), make(chan struct{})
	both(func() {
		quotable <- p.Quotable()
		f.findLeast(p)
		f.number(p)
		<-sized
		filled = d.fill(p, f)
	}, func() {
		estimated, broken := p.Estimated()
		d.Sizes = grid(p, estimated, o.Sizes)
		d.placeCaches(p, <-quotable)
		close(sized)
		if drawn = d.observed(raw, p, estimated, broken); drawn == nil {
			begun(d.first())
		}
	})
	if err := errors.Join(drawn, filled); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if o.Source != nil {
		d.findSource(o.Source)
	}
	// What only New needs may go.
	d.PlaceTable = &placeTable{Function: d.PlaceTable.Function, File: d.PlaceTable.File, Line: d.PlaceTable.Line}
	d.Nodes = &nodes{Parent: d.Nodes.Parent, Place: d.Nodes.Place}
	d.sites, d.leaves = nil, nil
	d.more.Cells = &d.Cells.moreCells
	return d, nil
}

// first is what there is before the samples: all tables of theirs are empty.
func (d *Data) first() *Data {
	return &Data{File: d.File, Stack: d.Stack, Stacks: d.Stacks, Rows: d.Rows, Survey: d.Survey, Exact: d.Exact, Block: d.Block, Unit: d.Unit,
		Accesses: d.Accesses, Holds: d.Holds, Sizes: d.Sizes, First: d.First, Caches: d.Caches, Curve: d.Curve, Bands: d.Bands,
		Strings: []string{""}, PlaceTable: &placeTable{}}
}

// observed fills what is told of all that was observed. The estimate is the profile's, or why there is none.
func (d *Data) observed(raw, p *model.Profile, e *model.Estimated, broken error) error {
	kinds := p.StackKinds()
	if len(kinds) == 1 {
		d.Stack = kinds[0].String()
	}
	if raw != p {
		kinds = raw.StackKinds()
	}
	for _, k := range kinds {
		d.Stacks = append(d.Stacks, k.String())
	}
	known, err := d.draw(p, e, broken)
	switch {
	case err != nil:
		return err
	case known != nil:
		d.Holds = int64(known.Holds)
	default:
		d.Holds = p.Holds()
	}
	return d.survey(raw, p, known)
}

// both runs two functions at once.
func both(one, other func()) {
	var done sync.WaitGroup
	done.Go(one)
	other()
	done.Wait()
}

// survey fills what is said of the whole profile, and of its threads. The curve is the profile's, or nil.
func (d *Data) survey(raw, p *model.Profile, known *model.Curve) error {
	survey := report.SurveyOf(p, known)
	survey.Full = true
	d.Survey, d.Accesses = survey, survey.Accesses
	d.rest = sync.OnceValue(func() *rest {
		r := &rest{}
		var both sync.WaitGroup
		both.Go(func() { r.share(raw, func(all *model.Profile) any { return survey.Threads(all, p, mostThreads) }) })
		if !d.Exact {
			g := &d.groups
			r.Pairs = g.squares(p, g.pair, len(d.Pairs.Use), len(d.Sizes))
			r.Objects = g.squares(p, g.object, len(d.Objects.Name), len(d.Sizes))
			if d.Objects.parted() {
				whole := make([]int32, len(g.object))
				for i, o := range g.object {
					whole[i] = d.Objects.Whole[o]
				}
				r.Wholes = g.squares(p, whole, len(d.Objects.Name), len(d.Sizes))
			}
		}
		both.Wait()
		d.groups = grouping{}
		return r
	})
	var text strings.Builder
	err := report.WriteOverview(&text, survey)
	d.Rows = append(rowsOf(text.String()), costOf(survey.Remarks)...)
	return err
}

// costOf is what sampling cost the program, by the session's own account.
func costOf(remarks []string) []row {
	var parts []string
	said := model.Profile{Comments: remarks}
	for _, kind := range []struct {
		is     model.CommentKind
		before string
	}{{model.Overhead, ""}, {model.HeldFor, "a thread was held per sample "}} {
		for _, rest := range said.Said(kind.is) {
			rest, _, _ = strings.Cut(rest, ";")
			parts = append(parts, kind.before+rest)
		}
	}
	if parts == nil {
		return nil
	}
	slices.Sort(parts) // the overhead, a number, first
	return []row{{"cost", strings.Join(parts, "; ")}}
}

// rowsOf takes an overview's text apart: keys are in its first columns, and lines that begin with blanks go on.
func rowsOf(text string) []row {
	const keys = 13
	var rows []row
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "! "):
			rows = append(rows, row{"!", line[2:]})
		case len(rows) > 0 && strings.HasPrefix(line, "  "):
			rows[len(rows)-1].Text += " " + strings.TrimSpace(line)
		case len(line) > keys:
			rows = append(rows, row{strings.TrimSpace(line[:keys]), line[keys:]})
		}
	}
	return rows
}

// placeCaches finds the machine's caches in the grid. Pages begin with the largest that is quotable, of which misses
// are more than chance.
func (d *Data) placeCaches(p *model.Profile, quotable int) {
	d.First = len(d.Sizes) / 2
	for i, c := range p.Caches {
		size := uint64(max(c.Size, 0))
		at, ok := slices.BinarySearch(d.Sizes, size-size%uint64(p.Block))
		if !ok {
			at = -1
		}
		d.Caches = append(d.Caches, cacheAt{c.Level, c.Size, at})
		if i == max(quotable, 0) && at >= 0 {
			d.First = at
		}
	}
}

func (d *Data) draw(p *model.Profile, e *model.Estimated, broken error) (*model.Curve, error) {
	if !report.Observed(p) {
		return nil, nil
	}
	if broken != nil {
		return nil, fmt.Errorf("miss ratios: %w", broken)
	}
	c, err := e.MissRatios(d.blocks(), model.CurveOptions{})
	if err != nil {
		return nil, err
	}
	d.Curve = newCurve(c)
	return c, nil
}

func newCurve(c *model.Curve) *curve {
	out := &curve{}
	for _, q := range c.Points {
		out.Ratio, out.Low, out.High = append(out.Ratio, q.MissRatio), append(out.Low, q.Low), append(out.High, q.High)
		out.Note, out.Unknown = append(out.Note, q.Quote.String()), append(out.Unknown, q.Quote.Unknown())
	}
	return out
}

// drawBy is the curve by another model.
func (d *Data) drawBy(raw *model.Profile, stack, by string) (*curve, error) {
	p, err := report.Ready(raw, stack)
	if err != nil {
		return nil, err
	}
	c, err := p.MissRatios(d.blocks(), model.CurveOptions{Model: by})
	if err != nil {
		return nil, err
	}
	return newCurve(c), nil
}

func (d *Data) blocks() []uint64 {
	blocks := make([]uint64, len(d.Sizes))
	for i, s := range d.Sizes {
		blocks[i] = s / uint64(d.Block)
	}
	return blocks
}

// shown says whether a record is in the lists: rdx top has the same.
func shown(r *model.Record) bool {
	return r.Kind != model.Lost && !r.Kind.OfLine() && r.Accesses > 0
}

type pairKey struct {
	use, reuse int32
	kind       model.Kind
}

type siteKey struct {
	mapping *model.Mapping
	address uint64
}

// site is where an instruction is.
type site struct {
	Mapping string `json:"mapping"`
	Build   string `json:"build_id"`
	Offset  string `json:"offset"` // in the file, hexadecimal
	Place   int32  `json:"place"`

	m *model.Mapping
	l *model.Location
}

func (d *Data) siteOf(stack []*model.Location, place int32) int32 {
	if len(stack) == 0 || stack[0].Mapping == nil {
		return -1
	}
	l := stack[0]
	if i, ok := d.leaves[l]; ok {
		return i
	}
	i := d.newSite(l, place)
	d.leaves[l] = i
	return i
}

func (d *Data) newSite(l *model.Location, place int32) int32 {
	key := siteKey{l.Mapping, l.Address}
	i, ok := d.sites[key]
	if !ok {
		i = int32(len(d.Sites))
		d.sites[key] = i
		m := l.Mapping
		d.Sites = append(d.Sites, site{report.Printable(report.Shorten(m.File, longestName)), m.BuildID, fmt.Sprintf("%x", l.Address-m.Start+m.Offset), place, m, l})
	}
	return i
}

// Of more samples the smallest are merged: pages must stay quick.
const (
	mostCells = 200_000
	mostPairs = 100_000
)

// fill makes cells, pairs, objects and all tables that they point to.
func (d *Data) fill(p *model.Profile, f *filler) error {
	of, err := p.MissesBy(d.blocks())
	if err != nil {
		return err
	}
	var merging sync.WaitGroup
	apart := d.Exact && f.numbered != nil // groups of others need all in their order
	if apart {
		for i, n := 0, runtime.GOMAXPROCS(0); i < n; i++ {
			merging.Go(func() { f.mergePart(p, of, i, n) })
		}
	}
	misses := make([]float64, len(d.Sizes))
	for i := range p.Records {
		r := &p.Records[i]
		if !shown(r) {
			continue
		}
		d.Samples++
		if !apart || r.Accesses >= f.leastAccesses {
			of(i, misses)
			f.add(i, r, misses[:d.useStored(r, misses)])
		}
	}
	merging.Wait()
	f.flush()
	d.groups = f.grouped()
	d.Touched = touchesOf(p, d.PlaceTable)
	for i := range p.Moments {
		m := &p.Moments[i]
		d.Moments.Node = append(d.Moments.Node, d.Nodes.index(m.Stack))
		d.Moments.TID, d.Moments.Time = append(d.Moments.TID, int32(m.TID)), append(d.Moments.Time, m.Nanoseconds)
	}
	d.Strings = f.names.list
	return nil
}

// useStored takes the misses that the profile has at its own caches, in whole accesses: what
// rdx top prints is what is in the file. From size n of the grid on there are none, if that is known.
func (d *Data) useStored(r *model.Record, misses []float64) (n int) {
	n = len(misses)
	if d.Exact { // of others there may be some at sizes behind one that has none
		n = sort.Search(n, func(i int) bool { return !(misses[i] > 0) })
	}
	for k, c := range d.Caches {
		if c.At < 0 || k >= len(r.Misses) {
			continue
		}
		misses[c.At] = r.Misses[k]
		if r.Misses[k] != 0 {
			n = max(n, c.At+1)
		}
	}
	return n
}

func newCountBands() countBands {
	b := countBands{Least: 1.0 / 16, PerStep: math.Exp2(0.125)}
	for k := b.Least; k < 1<<24; k *= b.PerStep {
		low, high := model.CountBand(k)
		b.Low, b.High = append(b.Low, low/k), append(b.High, high/k)
	}
	_, b.None = model.CountBand(0)
	return b
}

// mostThreads and mostInvalidations are what pages list of each at most.
const (
	mostThreads       = 64
	mostInvalidations = 500
)

// share fills what threads do to each other.
func (t *rest) share(raw *model.Profile, threads func(all *model.Profile) any) {
	all, kinds := *raw, raw.StackKinds()
	derived := all.ExactDistances && len(kinds) < 2 // nothing is changed
	if !derived {
		all.Records = slices.Clone(raw.Records)
		derived = all.Derive() == nil
	}
	if derived {
		t.Threads = threads(&all)
	}
	if slices.Contains(kinds, model.StackPrivate) {
		if l, err := report.NewInvalidationList(&all, mostInvalidations); err == nil {
			t.Invalidations = l
		}
	}
}
