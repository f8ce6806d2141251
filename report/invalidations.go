package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

const lineBytes = 64

// An invalidation is all that one place did to data that another place used:
// it wrote them before the user touched them again, or, false sharing, it
// wrote elsewhere in their line.
type invalidation struct {
	Kind         string   `json:"kind"` // true or false, of sharing
	Writer       place    `json:"writer"`
	Reader       place    `json:"reader"`
	Accesses     float64  `json:"accesses"` // of the reader, that find the line gone
	Share        float64  `json:"share"`    // of all accesses observed in private stacks
	Observations int64    `json:"observations"`
	WriterStack  []place  `json:"writer_stack"` // of the observation with most weight, leaf first
	ReaderStack  []place  `json:"reader_stack"`
	From         uint64   `json:"from"` // addresses of the first line
	To           uint64   `json:"to"`   // and behind the last
	ReadAt       []uint64 `json:"read_offsets"`
	WrittenAt    []uint64 `json:"written_offsets"` // in their lines, bytes
	Threads      int      `json:"thread_pairs"`
	Data         []string `json:"data,omitempty"`         // objects that the reader used, where known
	Read         []string `json:"read_members,omitempty"` // of structs, where known
	Written      []string `json:"written_members,omitempty"`

	heaviest float64
	lines    map[uint64]bool // addresses
}

// invalidations of a profile, those with most accesses first, and all accesses
// that what was observed in private stacks stands for.
func invalidations(p *model.Profile) (all []*invalidation, total float64) {
	type key struct {
		kind           model.Kind
		writer, reader place
	}
	type threads [2]int
	found := map[key]*invalidation{}
	scale := p.StackScale(model.StackPrivate)
	reads, writes, pairs := map[key]map[uint64]bool{}, map[key]map[uint64]bool{}, map[key]map[threads]bool{}
	byWord := p.CountOf(model.JoinedHolds) == 0
	for i := range p.Records {
		r := &p.Records[i]
		if r.Stack != model.StackPrivate || r.Kind == model.Lost {
			continue
		}
		if !r.Kind.OfLine() {
			total += scale * r.Accesses
		}
		if !takes(r.Kind, byWord) {
			continue
		}
		k := key{r.Kind, PlaceOf(r.Reuse), PlaceOf(r.Use)}
		v := found[k]
		w := r.Words()
		line, end := w.Address&^(lineBytes-1), w.Address&^(lineBytes-1)+lineBytes
		if v == nil {
			v = &invalidation{Kind: "true", Writer: k.writer, Reader: k.reader, From: line, lines: map[uint64]bool{}}
			if r.Kind == model.FalseSharing {
				v.Kind = "false"
			}
			found[k] = v
			reads[k], writes[k], pairs[k] = map[uint64]bool{}, map[uint64]bool{}, map[threads]bool{}
			all = append(all, v)
		}
		v.Accesses += scale * r.Estimated()
		v.Observations += r.Observations
		v.From, v.To = min(v.From, line), max(v.To, end)
		v.lines[line] = true
		reads[k][w.Address%lineBytes], writes[k][w.Written%lineBytes] = true, true
		pairs[k][threads{r.TID, w.EndTID}] = true
		if r.Data != nil {
			v.Data = with(v.Data, r.Data.Name)
		}
		v.Read, v.Written = with(v.Read, w.Member), with(v.Written, w.WrittenMember)
		if e := r.Estimated(); e > v.heaviest {
			v.heaviest = e
			v.WriterStack, v.ReaderStack = placesOf(r.Reuse), placesOf(r.Use)
		}
	}
	for k, v := range found {
		v.ReadAt, v.WrittenAt = slices.Sorted(maps.Keys(reads[k])), slices.Sorted(maps.Keys(writes[k]))
		v.Threads = len(pairs[k])
		if total > 0 {
			v.Share = v.Accesses / total
		}
	}
	slices.SortStableFunc(all, func(a, b *invalidation) int {
		return cmp.Or(cmp.Compare(b.Accesses, a.Accesses), cmp.Compare(a.Writer.String(), b.Writer.String()), cmp.Compare(a.Reader.String(), b.Reader.String()))
	})
	return all, total
}

// with is a list with a name that is not yet in it.
func with(list []string, name string) []string {
	if name == "" || slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// takes says whether records of a kind tell of what another thread took: of words, where nothing tells of lines.
func takes(k model.Kind, byWord bool) bool {
	return k == model.FalseSharing || k == model.TrueSharing || k == model.Invalidated && byWord
}

// placesOf is a whole call stack.
func placesOf(stack []*model.Location) []place {
	out := make([]place, len(stack))
	for i := range stack {
		out[i] = PlaceOf(stack[i:])
	}
	return out
}

// invalidationList is what rdx top --by invalidations prints.
type invalidationList struct {
	Profile  *overview         `json:"profile"`
	Accesses float64           `json:"accesses"`
	True     float64           `json:"true_share"`
	False    float64           `json:"false_share"`
	Sharing  model.Sharing     `json:"sharing"`
	Findings []*sharingFinding `json:"findings"`
	All      int               `json:"pairs_in_all"`
	Pairs    []*invalidation   `json:"pairs"`
}

func NewInvalidationList(p *model.Profile, n int) (*invalidationList, error) {
	if !slices.Contains(p.StackKinds(), model.StackPrivate) {
		return nil, fmt.Errorf("other threads' writes were not watched (record with rdx attach --stack private)")
	}
	if err := p.Derive(); err != nil {
		return nil, err
	}
	private := p.OnStack(model.StackPrivate)
	if err := private.Derive(); err != nil {
		return nil, err
	}
	all, total := invalidations(p)
	l := &invalidationList{Profile: Survey(private), Accesses: total, Sharing: p.Sharing(), Findings: findings(p, all), All: len(all), Pairs: all[:min(n, len(all))]}
	for _, v := range all {
		if v.Kind == "true" {
			l.True += v.Share
		} else {
			l.False += v.Share
		}
	}
	return l, nil
}

func (l *invalidationList) overviews() []*overview { return []*overview{l.Profile} }

func (l *invalidationList) Text() string {
	var b strings.Builder
	WriteOverview(&b, l.Profile)
	share := func(v float64) string {
		if v == 0 { // none was seen, which few observations would not show
			return l.Profile.share(v)
		}
		return Percent(v, 1)
	}
	fmt.Fprintf(&b, "\n%s;\n%d of %d writer -> reader pairs\n", sharingSummary(l.Sharing, l.Profile.FalseUnknown, share), len(l.Pairs), l.All)
	for _, f := range l.Findings {
		fmt.Fprintf(&b, "\n%s sharing: %s\n", f.Kind, f.Text)
	}
	if len(l.Pairs) == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	fmt.Fprintf(&b, "%6s %8s %5s %-7s %s\n", "share", "accesses", "seen", "sharing", "writer -> reader")
	for _, v := range l.Pairs {
		fmt.Fprintf(&b, "%6s %8s %5d %-7s %s\n", Percent(v.Share, 1), Amount(v.Accesses), v.Observations, v.Kind, path(v.WriterStack))
		const indent = 30
		fmt.Fprintf(&b, "%*s-> %s\n", indent, "", path(v.ReaderStack))
		fmt.Fprintf(&b, "%*slines %#x-%#x, read at %s, written at %s; %s of threads\n", indent, "", v.From, v.To, offsets(v.ReadAt), offsets(v.WrittenAt), Plural(int64(v.Threads), "pair"))
		if len(v.Data) > 0 {
			slices.Sort(v.Data)
			fmt.Fprintf(&b, "%*sdata %s\n", indent, "", Printable(Shorten(strings.Join(v.Data, ", "), 100)))
		}
		if len(v.Read)+len(v.Written) > 0 {
			fmt.Fprintf(&b, "%*sreads %s, written %s\n", indent, "", Members(v.Read), Members(v.Written))
		}
	}
	return b.String()
}

// path writes a call stack on a line, leaf first.
func path(stack []place) string {
	const most = 4
	var names []string
	for i, p := range stack {
		if i == most {
			names = append(names, "...")
			break
		}
		if i == 0 {
			names = append(names, p.String())
		} else {
			names = append(names, Printable(Shorten(p.Function, 30)))
		}
	}
	return strings.Join(names, " < ")
}

func offsets(list []uint64) string {
	var out []string
	for _, o := range list {
		out = append(out, fmt.Sprintf("+%d", o))
	}
	return strings.Join(out, ",")
}

func (l *invalidationList) Table() [][]string {
	out := [][]string{{"sharing", "writer_function", "writer_file", "writer_line", "reader_function", "reader_file", "reader_line",
		"accesses", "share", "observations", "from", "to", "read_offsets", "written_offsets", "thread_pairs"}}
	for _, v := range l.Pairs {
		out = append(out, []string{v.Kind, v.Writer.Function, v.Writer.File, strconv.Itoa(v.Writer.Line), v.Reader.Function, v.Reader.File, strconv.Itoa(v.Reader.Line),
			Float(v.Accesses), Float(v.Share), strconv.FormatInt(v.Observations, 10), fmt.Sprintf("%#x", v.From), fmt.Sprintf("%#x", v.To),
			offsets(v.ReadAt), offsets(v.WrittenAt), strconv.Itoa(v.Threads)})
	}
	return out
}
