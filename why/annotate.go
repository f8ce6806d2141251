package why

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Source is a file of the program with what is known of its lines.
type Source struct {
	File  string      `json:"file"` // as the profile names it
	Lines []LineCosts `json:"lines"`
	Level string      `json:"level"` // of the misses
	// Stale says that the file was changed after the profile was made, so that lines may be others.
	Stale bool `json:"stale,omitempty"`

	files []string // names that are taken for it
	text  []string
}

// LineCosts is what one line of the source costs. What is not known of it is nil.
type LineCosts struct {
	Line   int      `json:"line"`
	Misses float64  `json:"misses_share"` // of all predicted, of data used next here
	Time   float64  `json:"time_share"`   // of the CPU time, as sampled
	Waits  float64  `json:"wait_share"`   // of the CPU time, as sampled
	Stride string   `json:"stride,omitempty"`
	Step   int64    `json:"step_bytes,omitempty"`
	Used   *float64 `json:"line_use_bytes,omitempty"`
}

// SourceFiles are the names of the files that a profile's code has lines in.
func SourceFiles(p *model.Profile) (names []string) {
	seen := map[string]bool{}
	add := func(stack []*model.Location) {
		if len(stack) > 0 && len(stack[0].Lines) > 0 {
			if f := stack[0].Lines[0].File; f != "" && !seen[f] {
				seen[f] = true
				names = append(names, f)
			}
		}
	}
	for i := range p.Touches {
		add(p.Touches[i].Use)
	}
	for i := range p.Moments {
		add(p.Moments[i].Stack)
	}
	for i := range p.Records {
		add(p.Records[i].Use)
		add(p.Records[i].Reuse)
	}
	return names
}

// Annotate puts what a profile knows beside the lines of a file's text. file is its name, or the end of it, as
// the profile has it.
func Annotate(p *model.Profile, file, text string) (*Source, error) {
	found := filesNamed(p, file)
	if len(found) == 0 {
		return nil, fmt.Errorf("the profile has no code of %s: it has %s", path.Base(file), listed(SourceFiles(p)))
	}
	s := &Source{File: found[0], files: found, text: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	s.Lines = make([]LineCosts, len(s.text))
	for i := range s.Lines {
		s.Lines[i].Line = i + 1
	}
	s.addMisses(p)
	s.addTime(p)
	if v := verdict(p); v.Known {
		for _, w := range spots(p, &v) {
			s.at(w.File, w.Line).Waits += w.Time.Value
		}
	}
	s.addWalks(p)
	return s, nil
}

// filesNamed are those of a profile's source files that a name may mean.
func filesNamed(p *model.Profile, file string) (found []string) {
	for _, name := range SourceFiles(p) {
		if path.Base(name) == path.Base(file) {
			found = append(found, name)
		}
	}
	return found
}

// at is what is known of a line; of another file's, and of one that the text does not have, it is forgotten.
func (s *Source) at(file string, line int) *LineCosts {
	if !slices.Contains(s.files, file) || line < 1 || line > len(s.Lines) {
		return &LineCosts{}
	}
	return &s.Lines[line-1]
}

// atStack is that of the line where a stack is.
func (s *Source) atStack(stack []*model.Location) *LineCosts {
	at := report.PlaceOf(stack)
	return s.at(at.File, at.Line)
}

// addMisses adds each line's share of all misses, where they are made.
func (s *Source) addMisses(p *model.Profile) {
	value := missesIn(p)
	sum := 0.0
	for i := range p.Records {
		r := &p.Records[i]
		v := value(r)
		sum += v
		stack := r.Reuse
		if len(stack) == 0 || r.Kind != model.Reuse {
			stack = r.Use
		}
		s.atStack(stack).Misses += v
	}
	_, _, s.Level = missesAt(p, value)
	for i := range s.Lines {
		s.Lines[i].Misses /= max(sum, 1e-9)
	}
}

// addTime adds each line's share of the time.
func (s *Source) addTime(p *model.Profile) {
	all := 0.0
	for i := range p.Moments {
		m := &p.Moments[i]
		all += m.Nanoseconds
		s.atStack(m.Stack).Time += m.Nanoseconds
	}
	for i := range s.Lines {
		s.Lines[i].Time /= max(all, 1e-9)
	}
}

// addWalks adds in which steps lines go over memory: the first of a line fetches most.
func (s *Source) addWalks(p *model.Profile) {
	for _, w := range walks(p) {
		l := s.at(w.File, w.Line)
		if l.Stride != "" {
			continue
		}
		l.Stride, l.Step = w.Stride, w.Step
		if w.Fetches > 0 {
			used := w.Used
			l.Used = &used
		}
	}
}

// missesIn are a record's in the largest cache of which the profile tells.
func missesIn(p *model.Profile) func(*model.Record) float64 {
	k := max(p.Quotable(), 0)
	return func(r *model.Record) float64 {
		if k >= len(r.Misses) {
			return 0
		}
		return r.Misses[k]
	}
}

func listed(names []string) string {
	const most = 8
	if len(names) == 0 {
		return "no file names: its programs have no debug information"
	}
	more := ""
	if len(names) > most {
		names, more = names[:most], ", ..."
	}
	return strings.Join(names, ", ") + more
}

// Text is the source with a margin.
func (s *Source) Text() string {
	var b strings.Builder
	if s.Stale {
		b.WriteString("! the file was changed after the profile was made: lines may be others\n")
	}
	fmt.Fprintf(&b, "%s\n%7s %6s %6s %5s %-12s\n", report.Printable(s.File), s.Level+" miss", "time", "waits", "use", "stride")
	for i, l := range s.Lines {
		share := func(v float64) string {
			if v == 0 {
				return ""
			}
			return report.Percent(v, 1)
		}
		used, stride := "", l.Stride
		if l.Used != nil {
			used = fmt.Sprintf("%.0f/64", *l.Used)
		}
		switch stride {
		case model.StrideWithin.String(), model.StrideLarger.String(), model.StrideLine.String():
			stride = strconv.FormatInt(l.Step, 10)
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%7s %6s %6s %5s %-12s %5d  %s", share(l.Misses), share(l.Time), share(l.Waits), used, stride, l.Line, report.Printable(strings.ReplaceAll(s.text[i], "\t", "    "))), " ") + "\n")
	}
	return b.String()
}

// Table has a row a line.
func (s *Source) Table() [][]string {
	rows := [][]string{{"line", "misses_share", "time_share", "wait_share", "stride", "step_bytes", "line_use_bytes"}}
	for _, l := range s.Lines {
		rows = append(rows, []string{strconv.Itoa(l.Line), report.Float(l.Misses), report.Float(l.Time), report.Float(l.Waits), l.Stride, strconv.FormatInt(l.Step, 10), report.FloatOr(l.Used)})
	}
	return rows
}
