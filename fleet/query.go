package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// A Query is what to merge.
type Query struct {
	// Labels are NAME=VALUE, NAME!=VALUE, NAME=~REGEXP or NAME!~REGEXP.
	Labels   []string
	From, To time.Time
	Mix      bool // machines of several kinds
}

var (
	matcherRx   = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.]*)(=~|!~|!=|=)(?s:(.*))$`)
	errMatchers = errors.New("want NAME=VALUE, NAME!=VALUE, NAME=~REGEXP or NAME!~REGEXP")
)

// Selector is the labels in the server's language.
func Selector(labels []string) (string, error) {
	var parts []string
	for _, l := range labels {
		m := matcherRx.FindStringSubmatch(l)
		if m == nil {
			return "", fmt.Errorf("label %q: %w", l, errMatchers)
		}
		parts = append(parts, m[1]+m[2]+strconv.Quote(m[3]))
	}
	return "{" + strings.Join(parts, ",") + "}", nil
}

// With is the query for one more label.
func (q Query) With(name, value string) Query {
	q.Labels = append(slices.Clone(q.Labels), name+"="+value)
	return q
}

// ErrEmpty says that nothing was found.
type ErrEmpty struct {
	Selector string
	From, To time.Time
}

func (e *ErrEmpty) Error() string {
	return fmt.Sprintf("no profiles of rdx with %s from %s to %s (consider: rdx fleet top --by-label service_name, a longer --since, the agents' /metrics)",
		e.Selector, e.From.Format(time.DateTime), e.To.Format(time.DateTime))
}

// Profile is the merge of all windows that the query selects.
func (c *Client) Profile(ctx context.Context, q Query) (*model.Profile, error) {
	selector, err := Selector(q.Labels)
	if err != nil {
		return nil, err
	}
	u := Unpacker{Mix: q.Mix}
	for _, column := range RawColumns {
		unit := count
		if column == squaresColumn {
			unit = squaresUnit
		}
		typeID := strings.Join([]string{RawName, column, unit, "cpu_time", "nanoseconds"}, ":")
		err := split(q.From, q.To, func(from, to time.Time) error {
			p, err := c.merge(ctx, typeID, selector, from, to)
			if err != nil || p == nil {
				return err
			}
			return u.Add(column, p)
		})
		if err != nil {
			return nil, err
		}
		if u.Empty() {
			return nil, &ErrEmpty{selector, q.From, q.To}
		}
	}
	p, err := u.Profile(q.From)
	if err == nil {
		p.Command = selector
	}
	return p, err
}

// Values are those that a label has in the query's range, in order, "" left out.
func (c *Client) Values(ctx context.Context, q Query, label string) ([]string, error) {
	sets, err := c.LabelSets(ctx, q, label)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range sets {
		if s[0] != "" {
			out = append(out, s[0])
		}
	}
	return out, nil
}

// LabelSets are the different values that the named labels have together, in order.
func (c *Client) LabelSets(ctx context.Context, q Query, names ...string) ([][]string, error) {
	selector, err := Selector(append(slices.Clone(q.Labels), "__name__="+RawName))
	if err != nil {
		return nil, err
	}
	series, err := c.Series(ctx, selector, names, q.From, q.To)
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, s := range series {
		values := make([]string, len(names))
		for _, l := range s {
			if i := slices.Index(names, l.Name); i >= 0 {
				values[i] = l.Value
			}
		}
		out = append(out, values)
	}
	slices.SortFunc(out, slices.Compare[[]string])
	return slices.CompactFunc(out, slices.Equal[[]string]), nil
}

const (
	longestRange  = 24 * time.Hour // what Pyroscope's defaults take of one query
	shortestRange = 5 * time.Minute
)

// split asks for a range in parts that the server takes: of a day, and of less if it says
// that those are too long. Ends are exclusive, so that a window at a border counts once.
func split(from, to time.Time, ask func(from, to time.Time) error) error {
	if !from.Before(to) {
		return fmt.Errorf("a range from %s to %s is empty", from.Format(time.DateTime), to.Format(time.DateTime))
	}
	step := longestRange
	for at := from; at.Before(to); {
		end := at.Add(step)
		last := to
		if end.Before(to) {
			last = end.Add(-time.Millisecond)
		}
		err := ask(at, last)
		if tooLong(err) && step > shortestRange {
			step /= 2
			continue
		}
		if err != nil {
			return err
		}
		at = end
	}
	return nil
}

func tooLong(err error) bool {
	var e *StatusError
	return errors.As(err, &e) && e.Status == http.StatusBadRequest && strings.Contains(e.Message, "query time range exceeds")
}
