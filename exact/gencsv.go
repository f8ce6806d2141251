package exact

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// HistLaw is the law of a histogram of stack distances in blocks, uniform in
// each bin. Its cold, censored, invalidated and pruned masses are first
// accesses.
func HistLaw(h *model.Hist) (*DistanceLaw, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	var c lawClasses
	for i, w := range h.W {
		// Bin 0 starts at distance 0, unlike that of a reuse time.
		hi := h.Bins.Hi(i)
		if h.Bins.IsOpen(i) {
			hi = h.Bins.Lo(i) + 1
		}
		c.add(h.Bins.Lo(i), hi, w)
	}
	c.add(model.Infinite, 0, h.Endless())
	return c.law(0)
}

// lawClasses collects the classes of a law.
type lawClasses struct {
	weight    []float64
	lo, width []uint64
}

// add enters the distances lo to hi-1, or the cold mass if lo is Infinite.
func (c *lawClasses) add(lo, hi uint64, weight float64) {
	if weight == 0 {
		return
	}
	width := uint64(1)
	if lo != model.Infinite {
		width = hi - lo
	}
	c.weight = append(c.weight, weight)
	c.lo, c.width = append(c.lo, lo), append(c.width, width)
}

// law makes the law. For n above 0 it is one for n distinct blocks: what is
// cold or at distances of n or more is left out.
func (c *lawClasses) law(n uint64) (*DistanceLaw, error) {
	if n == 0 {
		return newLaw(c.weight, c.lo, c.width)
	}
	var kept lawClasses
	for i, w := range c.weight {
		lo, width := c.lo[i], c.width[i]
		if lo >= n {
			continue
		}
		if width > n-lo {
			w, width = w*float64(n-lo)/float64(width), n-lo
		}
		kept.add(lo, lo+width, w)
	}
	return newLaw(kept.weight, kept.lo, kept.width)
}

// LawTable is a histogram of stack distances read from a file.
type LawTable struct {
	classes     lawClasses
	cold, total float64
}

// ColdShare is the part of the weight that is first accesses.
func (t *LawTable) ColdShare() float64 { return t.cold / t.total }

// ShareFrom is the part of the weight that lies at distances of n or more,
// first accesses not included.
func (t *LawTable) ShareFrom(n uint64) float64 {
	var s float64
	for i, w := range t.classes.weight {
		lo, width := t.classes.lo[i], t.classes.width[i]
		switch {
		case lo == model.Infinite || lo+width <= n:
		case lo >= n:
			s += w
		default:
			s += w * float64(lo+width-n) / float64(width)
		}
	}
	return s / t.total
}

// Law is the law of the table over n distinct blocks: first accesses and
// distances of n or more are left out (see ColdShare and ShareFrom). With n = 0
// it is the whole table.
func (t *LawTable) Law(n uint64) (*DistanceLaw, error) { return t.classes.law(n) }

// ReadLawTable reads a histogram of stack distances in CSV. Without a header
// the columns are distance and weight, or from, to and weight, in blocks; the
// distance "cold", "invalidated", "pruned", "censored" or "inf" is that of first
// accesses. With a header, columns are known by name, and others ignored:
//
//	from or distance    lowest distance, in blocks
//	from_bytes          the same in bytes, blockBytes to a block
//	to, to_bytes        one more than the highest; without it, of one block
//	weight, accesses, touches, value or share
//	quantity            rows in which it is not stack_distance are skipped
//	name                cold, never or invalidated, in rows without a distance:
//	                    first accesses; rows with other names are skipped
//
// which covers what rdx exact and rdx hist --kind stack write. name is for
// messages. Errors give the line.
func ReadLawTable(r io.Reader, name string, blockBytes int) (*LawTable, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	in.TrimLeadingSpace = true
	in.Comment = '#'
	in.ReuseRecord = true
	t := &LawTable{}
	var cols *lawColumns
	for {
		row, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := in.FieldPos(0)
		fail := func(format string, args ...any) (*LawTable, error) {
			return nil, fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, args...))
		}
		if cols == nil {
			var isHeader bool
			if cols, isHeader, err = findLawColumns(row, blockBytes); err != nil {
				return fail("%v", err)
			}
			if isHeader {
				continue
			}
		}
		if err := cols.add(t, row); err != nil {
			return fail("%v", err)
		}
	}
	if cols == nil {
		return nil, fmt.Errorf("%s: no rows (want distance,weight or from,to,weight)", name)
	}
	if !(t.total > 0) || math.IsInf(t.total, 0) {
		return nil, fmt.Errorf("%s: the weights of stack distances sum to %v, want a finite sum above 0", name, t.total)
	}
	return t, nil
}

// lawColumns says in which column of a table is what; -1 for nowhere.
type lawColumns struct {
	from, to, weight, quantity, name int
	scale                            float64 // blocks per unit of from and to
}

func findLawColumns(row []string, blockBytes int) (c *lawColumns, isHeader bool, err error) {
	if first := strings.TrimSpace(row[0]); isEndless(first) || isNumber(first) {
		switch len(row) {
		case 2:
			return &lawColumns{from: 0, to: -1, weight: 1, quantity: -1, name: -1, scale: 1}, false, nil
		case 3:
			return &lawColumns{from: 0, to: 1, weight: 2, quantity: -1, name: -1, scale: 1}, false, nil
		}
		return nil, false, fmt.Errorf("%d columns, want distance and weight, or from, to and weight", len(row))
	}
	find := func(names ...string) int {
		for _, n := range names {
			if i := slices.IndexFunc(row, func(s string) bool { return strings.TrimSpace(s) == n }); i >= 0 {
				return i
			}
		}
		return -1
	}
	c = &lawColumns{
		from: find("from", "distance"), to: find("to"), scale: 1,
		weight:   find("weight", "accesses", "touches", "value", "share"),
		quantity: find("quantity"), name: find("name"),
	}
	if c.from < 0 {
		if c.from, c.to = find("from_bytes"), find("to_bytes"); c.from >= 0 {
			if blockBytes <= 0 {
				return nil, true, fmt.Errorf("distances are in bytes but the block size is %d", blockBytes)
			}
			c.scale = 1 / float64(blockBytes)
		}
	}
	if c.from < 0 || c.weight < 0 {
		return nil, true, errors.New("no columns from (or distance, from_bytes) and weight (or accesses, touches, value, share)")
	}
	return c, true, nil
}

// isEndless says whether a distance is that of what was never reused.
func isEndless(s string) bool {
	switch s {
	case "cold", "invalidated", "pruned", "censored", "inf":
		return true
	}
	return false
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

func (c *lawColumns) add(t *LawTable, row []string) error {
	get := func(i int) string {
		if i < 0 || i >= len(row) {
			return ""
		}
		return strings.TrimSpace(row[i])
	}
	if c.quantity >= 0 && get(c.quantity) != "stack_distance" {
		return nil
	}
	from, name := get(c.from), get(c.name)
	cold := isEndless(from)
	if from == "" && c.name >= 0 {
		switch name {
		case "cold", "never", "invalidated":
			cold = true
		default:
			return nil
		}
	}
	w, err := strconv.ParseFloat(get(c.weight), 64)
	if err != nil || !(w >= 0) || math.IsInf(w, 0) {
		return fmt.Errorf("weight %q is not a finite number of 0 or more", get(c.weight))
	}
	if w == 0 {
		return nil
	}
	t.total += w
	if cold {
		t.cold += w
		t.classes.add(model.Infinite, 0, w)
		return nil
	}
	lo, err := c.blocks(from)
	if err != nil {
		return err
	}
	hi := lo + 1
	if c.to >= 0 && get(c.to) != "" {
		if hi, err = c.blocks(get(c.to)); err != nil {
			return err
		}
		if hi == lo && c.scale < 1 {
			hi++ // a part of a block
		}
		if hi <= lo {
			return fmt.Errorf("distances from %s to %s: the end is not above the start", from, get(c.to))
		}
	}
	t.classes.add(lo, hi, w)
	return nil
}

// blocks reads a distance.
func (c *lawColumns) blocks(s string) (uint64, error) {
	const tooLarge = 1 << 62
	x, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil || !(f >= 0) || f >= tooLarge || f != math.Trunc(f) {
			return 0, fmt.Errorf("distance %q is not a whole number of 0 or more", s)
		}
		x = uint64(f)
	}
	if x >= tooLarge {
		return 0, fmt.Errorf("distance %q is too large", s)
	}
	if c.scale != 1 {
		x = uint64(float64(x) * c.scale)
	}
	return x, nil
}
