package fleet

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// tagPrefix names the format and its version.
const (
	tagName   = "rdx/"
	tagPrefix = tagName + "1?"
)

// PackBins is how many bins to an octave times have in a pack.
const PackBins = 4

// tag is what a pack's root frame says of a record.
type tag struct {
	kind            model.Kind
	op              model.Op
	stack           model.StackKind
	below, exact    bool
	time            uint64
	distinct, after uint64
	hot             uint64
	half            bool
	pair            model.Kind
	pairTime        uint64
	group           int
}

var packBins = model.LogBins(PackBins)

func middle(v uint64) uint64 { return packBins.Mid(packBins.Index(v)) }

func tagOf(r *model.Record, group int) tag {
	t := tag{kind: r.Kind, op: r.Op, stack: r.Stack, group: group}
	if r.Kind == model.Cold || r.Kind == model.Lost {
		return t
	}
	t.below, t.exact = r.BelowResolution, r.Exact
	t.time = middle(r.Time)
	if r.Distinct > 0 {
		t.distinct = 1 + middle(r.Distinct-1) // the distance, one less, stays in its bin
	}
	t.after, t.hot = r.After, r.Hot
	if t.after > exactAfter {
		t.after = middle(t.after)
	}
	if r.Half {
		t.half, t.pair, t.pairTime = true, r.Pair, middle(r.PairTime)
	}
	return t
}

// exactAfter is up to where the number of accesses read ahead is kept as it is: it is
// the same for most samples.
const exactAfter = 1 << 14

// String is the frame. Keys are in the order of the alphabet.
func (t tag) String() string {
	v := url.Values{"kind": {t.kind.String()}}
	number := func(key string, n uint64) {
		if n > 0 {
			v.Set(key, strconv.FormatUint(n, 10))
		}
	}
	if t.op != model.OpUnknown {
		v.Set("access", t.op.String())
	}
	if t.stack != model.StackOwn {
		v.Set("stack", t.stack.String())
	}
	if t.below {
		v.Set("below", "1")
	}
	if t.exact {
		v.Set("exact", "1")
	}
	number("time", t.time)
	number("distinct", t.distinct)
	number("after", t.after)
	number("hot", t.hot)
	number("group", uint64(t.group))
	if t.half {
		v.Set("pair", t.pair.String())
		number("pair_time", t.pairTime)
	}
	return tagPrefix + v.Encode()
}

// parseTag reads a root frame. What a server returns is not trusted.
func parseTag(frame string) (url.Values, error) {
	rest, ok := strings.CutPrefix(frame, tagPrefix)
	switch {
	case !ok && strings.HasPrefix(frame, tagName):
		version, _, _ := strings.Cut(frame[len(tagName):], "?")
		return nil, fmt.Errorf("packed in format %.20q, which this version of rdx does not know (it reads format 1): use a later one", version)
	case !ok:
		return nil, fmt.Errorf("root frame %.60q is none of rdx's", frame)
	}
	v, err := url.ParseQuery(rest)
	if err != nil {
		return nil, fmt.Errorf("root frame %.60q: %w", frame, err)
	}
	return v, nil
}

// record reads what a tag says into a record without stacks.
func record(v url.Values) (model.Record, error) {
	var r model.Record
	var ok bool
	if r.Kind, ok = model.ParseKind(v.Get("kind")); !ok {
		return r, fmt.Errorf("kind %.40q is not known", v.Get("kind"))
	}
	for _, op := range []model.Op{model.Load, model.Store} {
		if v.Get("access") == op.String() {
			r.Op = op
		}
	}
	if s := v.Get("stack"); s != "" {
		if r.Stack, ok = model.ParseStackKind(s); !ok {
			return r, fmt.Errorf("stack %.40q is not known", s)
		}
	}
	r.BelowResolution, r.Exact = v.Get("below") == "1", v.Get("exact") == "1"
	for _, n := range []struct {
		key string
		to  *uint64
	}{{"time", &r.Time}, {"distinct", &r.Distinct}, {"after", &r.After}, {"hot", &r.Hot}, {"pair_time", &r.PairTime}} {
		if s := v.Get(n.key); s != "" {
			var err error
			if *n.to, err = strconv.ParseUint(s, 10, 63); err != nil {
				return r, fmt.Errorf("%s %.40q is not a number", n.key, s)
			}
		}
	}
	if s := v.Get("group"); s != "" {
		g, err := strconv.ParseUint(s, 10, 16)
		if err != nil || g < 1 || g > model.JackknifeGroups {
			return r, fmt.Errorf("group %.40q is not one of 1 to %d", s, model.JackknifeGroups)
		}
		r.Group = int(g)
	}
	if s := v.Get("pair"); s != "" {
		r.Half = true
		if r.Pair, ok = model.ParseKind(s); !ok {
			return r, fmt.Errorf("pair %.40q is not known", s)
		}
	}
	return r, nil
}
