package web

import (
	"fmt"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Names are strings, each kept once.
type names struct {
	of   map[string]int32
	list []string
}

func (n *names) index(s string) int32 {
	if i, ok := n.of[s]; ok {
		return i
	}
	if n.of == nil {
		n.of = map[string]int32{}
	}
	i := int32(len(n.list))
	n.of[s] = i
	n.list = append(n.list, report.Printable(report.Shorten(s, longestName)))
	return i
}

// longestName is how many letters of a name pages have.
const longestName = 1000

// A placeTable has the frames of stacks: a function with the line it was at, an inlined one by itself.
type placeTable struct {
	Function ints `json:"function"` // in Data.Strings
	File     ints `json:"file"`
	Line     ints `json:"line"`

	names *names
	of    map[[3]int32]int32
	at    map[*model.Location][]int32
	leaf  map[*model.Location]int32
}

func (t *placeTable) index(function, file string, line int) int32 {
	key := [3]int32{t.names.index(function), t.names.index(file), int32(line)}
	i, ok := t.of[key]
	if !ok {
		if t.of == nil {
			t.of = map[[3]int32]int32{}
		}
		i = int32(len(t.Function))
		t.of[key] = i
		t.Function, t.File, t.Line = append(t.Function, key[0]), append(t.File, key[1]), append(t.Line, key[2])
	}
	return i
}

// ofLocation are a location's, the innermost first.
func (t *placeTable) ofLocation(l *model.Location) []int32 {
	if p := t.at[l]; p != nil {
		return p
	}
	var p []int32
	if len(l.Lines) == 0 {
		p = []int32{t.ofStack([]*model.Location{l})}
	}
	for _, ln := range l.Lines {
		p = append(p, t.index(ln.Function, ln.File, ln.Line))
	}
	if t.at == nil {
		t.at = map[*model.Location][]int32{}
	}
	t.at[l] = p
	return p
}

// ofStack is that of report.PlaceOf, which goes by the leaf.
func (t *placeTable) ofStack(stack []*model.Location) int32 {
	if len(stack) == 0 {
		q := report.PlaceOf(nil)
		return t.index(q.Function, q.File, q.Line)
	}
	i, ok := int32(0), false
	if len(stack) > 1 { // others of that leaf may come; a stack of one is asked for once
		i, ok = t.leaf[stack[0]]
	}
	if !ok {
		q := report.PlaceOf(stack[:1])
		i = t.index(q.Function, q.File, q.Line)
		if len(stack) == 1 {
			return i
		}
		if t.leaf == nil {
			t.leaf = map[*model.Location]int32{}
		}
		t.leaf[stack[0]] = i
	}
	return i
}

// Nodes are call stacks as a tree. Node 0 is the root; a parent comes before its children.
type nodes struct {
	Parent ints `json:"parent"`
	Place  ints `json:"place"`

	table  *placeTable
	of     map[[2]int32]int32
	stacks map[stackID]int32
}

// stackID is of a slice that does not change, which stacks of a profile that was read are.
type stackID struct {
	first **model.Location
	n     int
}

// Of deeper stacks the middle is left out.
const (
	deepest   = 512
	rootwards = 64
)

func newNodes(t *placeTable) *nodes {
	return &nodes{table: t, of: map[[2]int32]int32{}, stacks: map[stackID]int32{}, Parent: ints{-1}, Place: ints{t.index("[all]", "", 0)}}
}

func (n *nodes) child(parent, place int32) int32 {
	key := [2]int32{parent, place}
	i, ok := n.of[key]
	if !ok {
		i = int32(len(n.Parent))
		n.of[key] = i
		n.Parent, n.Place = append(n.Parent, parent), append(n.Place, place)
	}
	return i
}

// index is the node of a stack, leaf first.
func (n *nodes) index(stack []*model.Location) int32 {
	if len(stack) == 0 {
		return n.add(stack)
	}
	k := stackID{&stack[0], len(stack)}
	i, ok := n.stacks[k]
	if !ok {
		i = n.add(stack)
		n.stacks[k] = i
	}
	return i
}

func (n *nodes) add(stack []*model.Location) int32 {
	at := int32(0)
	step := func(from, to int) { // from the root's side
		for i := from; i >= to; i-- {
			frames := n.table.ofLocation(stack[i])
			for k := len(frames) - 1; k >= 0; k-- {
				at = n.child(at, frames[k])
			}
		}
	}
	last := len(stack) - 1
	if last < 0 {
		return n.child(0, n.table.ofStack(nil))
	}
	if len(stack) > deepest {
		step(last, last-rootwards+1)
		at = n.child(at, n.table.index(fmt.Sprintf("[%d frames are left out]", len(stack)-deepest), "", 0))
		last = deepest - rootwards - 1
	}
	step(last, 0)
	return at
}
