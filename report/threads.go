package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// oneThread is what one thread did. Shares are of its own accesses.
type oneThread struct {
	TID          int       `json:"tid"` // 0: all that are not listed
	Threads      int       `json:"threads"`
	Accesses     float64   `json:"accesses"`
	Observations int64     `json:"observations"`
	Times        []float64 `json:"reuse_time_shares"` // by the bins of threadList.Edges
	NotReused    float64   `json:"not_reused_share"`  // cold, or not within the time it was watched
	True         float64   `json:"invalidated_share"`
	False        float64   `json:"falsely_shared_share"`
	Misses       []float64 `json:"miss_ratios"` // by cache

	falseWeight float64
}

// threadList is what rdx threads prints.
type threadList struct {
	Profile *overview     `json:"profile"`
	Edges   []uint64      `json:"reuse_time_edges"` // accesses; the last bin is open
	Caches  []string      `json:"caches"`
	All     int           `json:"threads_in_all"`
	Threads []*oneThread  `json:"threads"`
	Matrix  []sharingCell `json:"sharing"`
}

// sharingCell says how many accesses of a thread find data gone by another
// one's writes.
type sharingCell struct {
	Writer int     `json:"writer_tid"`
	Reader int     `json:"reader_tid"`
	True   float64 `json:"accesses_invalidated"`
	False  float64 `json:"accesses_falsely_shared"`
}

// NewThreadList makes the list of profile p on one stack; raw is all of it.
func NewThreadList(raw, p *model.Profile, n int) *threadList { return Survey(p).Threads(raw, p, n) }

// Threads is NewThreadList for a profile that the overview is of.
func (o *overview) Threads(raw, p *model.Profile, n int) *threadList {
	l := &threadList{Profile: o, Edges: []uint64{0, 100, 10_000, 1_000_000, 100_000_000}}
	for _, c := range p.Caches {
		l.Caches = append(l.Caches, c.Level)
	}
	byTID := map[int]*oneThread{}
	get := func(tid int) *oneThread {
		t := byTID[tid]
		if t == nil {
			t = &oneThread{TID: tid, Threads: 1, Times: make([]float64, len(l.Edges)), Misses: make([]float64, len(p.Caches))}
			byTID[tid] = t
			l.Threads = append(l.Threads, t)
		}
		return t
	}
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == model.Lost {
			continue
		}
		t := get(r.TID)
		t.Accesses += r.Accesses
		t.Observations += r.Observations
		switch r.Kind {
		case model.Reuse:
			j, found := slices.BinarySearch(l.Edges, r.Time)
			if !found {
				j--
			}
			t.Times[j] += r.Estimated()
		case model.Invalidated:
			t.True += r.Estimated()
		}
		for k, m := range r.Misses {
			t.Misses[k] += m
		}
	}
	scale := raw.StackScale(model.StackPrivate)
	cells, byWord := map[[2]int]*sharingCell{}, raw.CountOf(model.JoinedHolds) == 0
	for i := range raw.Records {
		r := &raw.Records[i]
		if !takes(r.Kind, byWord) {
			continue
		}
		end := r.Words().EndTID
		c := cells[[2]int{end, r.TID}]
		if c == nil {
			c = &sharingCell{Writer: end, Reader: r.TID}
			cells[[2]int{end, r.TID}] = c
		}
		if r.Kind != model.FalseSharing {
			c.True += scale * r.Estimated()
		} else {
			c.False += scale * r.Accesses
			get(r.TID).falseWeight += scale * r.Accesses
		}
	}
	for _, c := range cells {
		l.Matrix = append(l.Matrix, *c)
	}
	slices.SortFunc(l.Matrix, func(a, b sharingCell) int {
		return cmp.Or(cmp.Compare(b.True+b.False, a.True+a.False), cmp.Compare(a.Writer, b.Writer), cmp.Compare(a.Reader, b.Reader))
	})
	l.All = len(l.Threads)
	slices.SortFunc(l.Threads, func(a, b *oneThread) int {
		return cmp.Or(cmp.Compare(b.Accesses, a.Accesses), cmp.Compare(a.TID, b.TID))
	})
	if l.All > n {
		l.Threads = append(l.Threads[:n:n], sumThreads(l.Threads[n:]))
	}
	for _, t := range l.Threads {
		t.finish()
	}
	return l
}

func sumThreads(rest []*oneThread) *oneThread {
	sum := *rest[0]
	sum.TID = 0
	for _, t := range rest[1:] {
		sum.Threads++
		sum.Accesses += t.Accesses
		sum.Observations += t.Observations
		sum.True += t.True
		sum.falseWeight += t.falseWeight
		for i := range sum.Times {
			sum.Times[i] += t.Times[i]
		}
		for i := range sum.Misses {
			sum.Misses[i] += t.Misses[i]
		}
	}
	return &sum
}

// finish turns weights into shares.
func (t *oneThread) finish() {
	if !(t.Accesses > 0) {
		return
	}
	t.False = t.falseWeight / t.Accesses
	t.True /= t.Accesses
	t.NotReused = 1 - t.True
	for i := range t.Times {
		t.Times[i] /= t.Accesses
		t.NotReused -= t.Times[i]
	}
	t.NotReused = max(t.NotReused, 0)
	for i := range t.Misses {
		t.Misses[i] /= t.Accesses
	}
}

func (t *oneThread) name() string {
	if t.TID == 0 {
		return fmt.Sprintf("%d more", t.Threads)
	}
	return strconv.Itoa(t.TID)
}

func (l *threadList) overviews() []*overview { return []*overview{l.Profile} }

func (l *threadList) Text() string {
	var b strings.Builder
	WriteOverview(&b, l.Profile)
	fmt.Fprintf(&b, "\n%s; shares are of each thread's accesses\n\n%10s %8s %5s", Plural(int64(l.All), "thread"), "thread", "accesses", "seen")
	for i, e := range l.Edges {
		if i+1 < len(l.Edges) {
			fmt.Fprintf(&b, " %7s", "<"+Amount(float64(l.Edges[i+1])))
		} else {
			fmt.Fprintf(&b, " %7s", Amount(float64(e))+"+")
		}
	}
	fmt.Fprintf(&b, " %7s %7s %7s", "never", "true", "false")
	for _, c := range l.Caches {
		fmt.Fprintf(&b, " %7s", c)
	}
	b.WriteString("\n")
	for _, t := range l.Threads {
		fmt.Fprintf(&b, "%10s %8s %5d", t.name(), Amount(t.Accesses), t.Observations)
		falsely := Percent(t.False, 1)
		if l.Profile.FalseUnknown {
			falsely = "?"
		}
		for _, v := range slices.Concat(t.Times, []float64{t.NotReused, t.True}) {
			fmt.Fprintf(&b, " %7s", Percent(v, 1))
		}
		fmt.Fprintf(&b, " %7s", falsely)
		for _, v := range t.Misses {
			fmt.Fprintf(&b, " %7s", Percent(v, 1))
		}
		b.WriteString("\n")
	}
	const most = 40
	if len(l.Matrix) > 0 {
		fmt.Fprintf(&b, "\n%10s    %-10s %18s %18s\n", "writer", "reader", "true sharing", "false sharing")
		for _, c := range l.Matrix[:min(len(l.Matrix), most)] {
			fmt.Fprintf(&b, "%10s -> %-10d %18s %18s\n", writerName(c.Writer), c.Reader, Amount(c.True), Amount(c.False))
		}
		if more := len(l.Matrix) - most; more > 0 {
			fmt.Fprintf(&b, "%d more pairs of threads; --format json has them\n", more)
		}
	}
	return b.String()
}

func (l *threadList) Table() [][]string {
	head := []string{"tid", "threads", "accesses", "observations"}
	for _, e := range l.Edges {
		head = append(head, fmt.Sprintf("reuse_from_%d", e))
	}
	head = append(head, "not_reused", "invalidated", "falsely_shared")
	for _, name := range l.Caches {
		head = append(head, strings.ToLower(name)+"_miss_ratio")
	}
	out := [][]string{head}
	for _, t := range l.Threads {
		row := []string{strconv.Itoa(t.TID), strconv.Itoa(t.Threads), Float(t.Accesses), strconv.FormatInt(t.Observations, 10)}
		for _, v := range slices.Concat(t.Times, []float64{t.NotReused, t.True, t.False}, t.Misses) {
			row = append(row, Float(v))
		}
		out = append(out, row)
	}
	return out
}

// writerName is a thread's number; the exact engine does not tell who wrote.
func writerName(tid int) string {
	if tid == 0 {
		return "not known"
	}
	return strconv.Itoa(tid)
}
