package pipeline

import "math"

const (
	lineSize = 64
	codeLine = 64 // bytes of code, of which one line is fetched in a cycle, from where it was jumped to
	longest  = 15 // bytes of an instruction
	wordSize = 8
)

// Costs are what the machine was measured to take, in ns.
type Costs struct {
	Cycle float64
	// Waits is what an access takes whose data are in the first, second, third cache, or in memory, where the next
	// depends on it; Rows what a line takes in a row of them.
	Waits, Rows [Levels]float64
	Conflicts   Conflicts
}

// Levels are where a line can come from: three caches and memory.
const Levels = 4

// shares are those of the lone lines that come from a further level in the cases that are tried: one in each of these.
var shares = [...]uint64{8, 1}

// Times are how long the stretch takes, in ns.
type Times struct {
	Instructions, Accesses int
	Cold                   int          // accesses to lines that the stretch has not touched before
	Lone                   int          // of these, those that may come from afar: what comes again and again is near; 0: all
	Crowded                [Degrees]int // of the cold ones, those that compete for few sets, by degree; none of degree 0
	Missed                 int          // branches foretold wrongly
	Near                   float64      // if all lines are in the first cache
	// Far is the further time if the lone ones come from a further level, the second cache first: one in eight, and all.
	Far [Levels - 1][len(shares)]float64
}

// Elapsed is the time if such shares of the cold lines come from the second cache, the third, and memory: the lone ones before others.
func (t *Times) Elapsed(from [Levels - 1]float64) float64 {
	ns := t.Near
	for i, far := range t.Far {
		share := min(max(from[i], 0), 1) * float64(t.Cold) / float64(max(t.Apart(), 1))
		few := 1 / float64(shares[0])
		switch {
		case share <= few:
			ns += far[0] * share / few
		case share <= 1:
			ns += far[0] + (far[1]-far[0])*(share-few)/(1-few)
		default:
			ns += far[1] * share
		}
	}
	return ns
}

// Apart is how many lines Far is about.
func (t *Times) Apart() int {
	if t.Lone > 0 {
		return t.Lone
	}
	return t.Cold
}

// Access is one of a stretch's, in order.
type Access struct {
	Addr  uint64
	Size  int32
	Inst  int32 // number of its instruction
	Store bool
	Lone  bool // its line does not come again and again
	Row   bool // it is as far from the one before of its instruction as that from its own, or as the next
}

// Model keeps what it has learnt of the code. It belongs to one goroutine.
type Model struct {
	costs     Costs
	boards    []board
	known     map[uint64]*operation
	recent    [recentSize]*operation
	predictor predictor
	words     map[uint64]int32
	lines     map[uint64]int32
	crowds    crowds
	touches   []touch
}

const (
	recentSize = 2048
	mostKnown  = 1 << 16
)

// New is a model of the machine.
func New(c Costs) *Model {
	m := &Model{costs: c, known: make(map[uint64]*operation), words: make(map[uint64]int32), lines: make(map[uint64]int32)}
	conflicts := newConflictCycles(&c)
	m.boards = append(m.boards, board{every: 1, costs: conflicts})
	cycles := func(ns float64) float64 { return ns / c.Cycle }
	for level := 1; level < Levels; level++ {
		for _, every := range shares {
			m.boards = append(m.boards, board{level: level, every: every, costs: conflicts,
				wait: conflicts.waits[level], row: cycles(c.Rows[level])})
		}
	}
	return m
}

// Foretell passes a stretch of instructions, by their addresses, through the core. code gives the bytes at one,
// as many as there are.
func (m *Model) Foretell(path []uint64, accesses []Access, code func(pc uint64) []byte) Times {
	for len(accesses) > 0 && int(accesses[len(accesses)-1].Inst) >= len(path) {
		accesses = accesses[:len(accesses)-1]
	}
	t := Times{Instructions: len(path), Accesses: len(accesses)}
	m.enter(accesses, &t)
	for i := range m.boards {
		m.boards[i].reset(len(m.words), len(m.lines))
	}
	at, before := 0, uint64(0)
	for i, pc := range path {
		o := m.operation(pc, code)
		apart := pc/codeLine != before/codeLine || pc-before > longest
		before = pc
		from := at
		for at < len(accesses) && int(accesses[at].Inst) <= i {
			at++
		}
		missed := i+1 < len(path) && m.misses(o, path[i+1])
		if missed {
			t.Missed++
		}
		for k := range m.boards {
			m.boards[k].pass(o, m.touches[from:at], apart, missed)
		}
	}
	t.Near = m.boards[0].elapsed() * m.costs.Cycle
	for i := range t.Far {
		for k := range shares {
			t.Far[i][k] = max(m.boards[1+i*len(shares)+k].elapsed()*m.costs.Cycle-t.Near, 0)
		}
	}
	return t
}

// enter numbers the words and lines that a stretch touches, and finds out which compete for few sets.
func (m *Model) enter(accesses []Access, t *Times) {
	clear(m.words)
	clear(m.lines)
	m.touches = m.touches[:0]
	for i := range accesses {
		a := &accesses[i]
		line, seen := number(m.lines, a.Addr/lineSize)
		word, _ := number(m.words, a.Addr/wordSize)
		if !seen {
			t.Cold++
		}
		m.touches = append(m.touches, touch{word: word, line: line, store: a.Store, cold: !seen, lone: a.Lone, row: a.Row, draw: fold(a.Addr/lineSize, 1) >> 7})
	}
	if m.costs.Conflicts.Rooms[0] > 0 {
		m.crowd(accesses, t)
	}
	for i := range m.touches {
		a := &m.touches[i]
		if a.lone = a.cold && (a.lone || a.degree > 0); a.lone {
			t.Lone++
		}
	}
	if t.Lone > 0 {
		return
	}
	t.Lone = t.Cold // where none is, all are
	for i := range m.touches {
		m.touches[i].lone = m.touches[i].cold
	}
}

// number is that of a key, the next one if it has none.
func number(of map[uint64]int32, key uint64) (n int32, seen bool) {
	n, seen = of[key]
	if !seen {
		n = int32(len(of))
		of[key] = n
	}
	return n, seen
}

// operation is what is known of the instruction at pc.
func (m *Model) operation(pc uint64, code func(pc uint64) []byte) *operation {
	slot := &m.recent[fold(pc, 0)%recentSize]
	if o := *slot; o != nil && o.pc == pc {
		return o
	}
	o := m.known[pc]
	if o == nil {
		if len(m.known) >= mostKnown {
			clear(m.known)
		}
		o = decode(pc, code(pc))
		m.known[pc] = o
	}
	*slot = o
	return o
}

// Forget drops the code, as of a process that runs another program now, or one that is gone.
func (m *Model) Forget() {
	clear(m.known)
	m.recent = [recentSize]*operation{}
}

// misses says whether a branch is foretold wrongly.
func (m *Model) misses(o *operation, next uint64) bool {
	switch o.branch {
	case conditional:
		return !m.predictor.conditional(o.pc, next != o.next)
	case indirect:
		return !m.predictor.indirect(o.pc, next)
	}
	return false
}

// Usual are the costs taken where none were measured.
func Usual() Costs {
	return Costs{Cycle: 0.3, Waits: [Levels]float64{1.5, 4, 15, 90}, Rows: [Levels]float64{0.4, 1, 2, 5}}
}

// Of are the costs by what was measured for caches of so many levels and memory: where there are fewer than three, the last one's
// is memory's.
func Of(cycle float64, waits, rows []float64) Costs {
	c := Usual()
	if cycle > 0 && !math.IsInf(cycle, 0) {
		c.Cycle = cycle
	}
	for i := range c.Waits {
		if n := len(waits); n > 0 {
			c.Waits[i], c.Rows[i] = waits[min(i, n-1)], rows[min(i, n-1)]
		}
	}
	if n := len(waits); n > 0 {
		c.Waits[Levels-1], c.Rows[Levels-1] = waits[n-1], rows[n-1]
	}
	return c
}
