package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

func newMrcCmd() *cobra.Command {
	var f curveFlags
	var format, stack string
	cmd := &cobra.Command{
		Use:   "mrc FILE...",
		Short: "Draw the miss ratio curve: predicted misses against cache size",
		Long: `mrc predicts which share of the accesses would miss in LRU caches of any size, with
95 % confidence bands. Without --sizes it goes through the powers of two and the
caches that the profile names; with --ways, which makes them set-associative,
through powers of two of sets, and those of the caches that can have so many ways.

The model turns reuse times into stack distances. The default, local, takes the
program as it was at the time, and each thread by itself; the others take one
histogram of the whole run: ssx, Shen and Shaw's, StatStack, AET, footprint theory.

In a private stack another thread's write makes the next access a miss at every
size; in a shared one all threads' data take up room, and any of them brings
data in for the others.

The bands cover the chance of sampling, the error of the conversion to distances
and that of the access rate; where that is assumed, all rates that are possible.
A ratio with too little behind it is not given, only its upper bound or its band.`,
		Example: `  rdx mrc xz.pb.gz
  rdx mrc --sizes 32k,1m,32m --ways 8 xz.pb.gz
  rdx mrc --format svg before.pb.gz after.pb.gz > curves.svg`,
		Args: profiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", format, append([]string{"svg"}, reportFormats...)); err != nil {
				return err
			}
			if err := oneOf("stack", stack, []string{"", "own", "private", "shared"}); err != nil {
				return err
			}
			options, err := f.options()
			if err != nil {
				return err
			}
			r := mrcReport{Model: options.Model, Ways: options.Ways}
			for _, path := range args {
				p, err := readOnStack(path, stack)
				if err != nil {
					return err
				}
				c, err := newMissCurve(p, f.sizes, options)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				c.File = path
				r.Curves = append(r.Curves, c)
			}
			if format == "svg" {
				return r.writeSVG(cmd.OutOrStdout())
			}
			return writeReport(cmd.OutOrStdout(), format, &r)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&format, "format", "text", "text, csv, json or svg")
	cmd.Flags().StringVar(&stack, "stack", "", "of a profile of several threads: own, private or shared, as it was recorded (default: private, if there is that)")
	return cmd
}

// curveFlags are the flags of all commands that compute miss ratio curves.
type curveFlags struct {
	model string
	sizes []string
	ways  int
}

func (f *curveFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.model, "model", model.Local, "from reuse times to stack distances: "+strings.Join(model.CurveModels, ", ")+" (local: ssx by epochs of the run and by threads)")
	cmd.Flags().StringSliceVar(&f.sizes, "sizes", nil, "cache sizes, such as 32k,1m,32m")
	cmd.Flags().IntVar(&f.ways, "ways", 0, "correct for caches of so many ways (Smith); 0: fully associative")
}

func (f *curveFlags) options() (model.CurveOptions, error) {
	o := model.CurveOptions{Model: f.model, Ways: f.ways}
	if err := oneOf("model", f.model, model.CurveModels); err != nil {
		return o, err
	}
	if f.ways < 0 {
		return o, usageError{fmt.Errorf("--ways %d: want 0 or more", f.ways)}
	}
	return o, nil
}

// mrcReport is what rdx mrc prints.
type mrcReport struct {
	Model  string       `json:"model"`
	Ways   int          `json:"ways"` // 0: fully associative
	Curves []*missCurve `json:"curves"`
}

// missCurve is one profile's.
type missCurve struct {
	File    string      `json:"file"`
	Profile *overview   `json:"profile"`
	Holds   int         `json:"holds"` // independent places at which the program was looked at
	Points  []missPoint `json:"points"`
}

// missPoint is one cache size. Without a ratio that may be quoted, Note says
// why and only the band stands.
type missPoint struct {
	Bytes     uint64   `json:"bytes"`
	Blocks    uint64   `json:"blocks"`
	MissRatio *float64 `json:"miss_ratio"` // null where it is not to be quoted
	Low       float64  `json:"low"`        // 95 % confidence
	High      float64  `json:"high"`
	Misses    *float64 `json:"misses"`
	Note      string   `json:"note,omitempty"`

	raw   model.Point
	cache string // that has this size
}

// newMissCurve computes the curve at the given sizes, or, if there are none,
// at the powers of two and the profile's caches.
func newMissCurve(p *model.Profile, sizes []string, o model.CurveOptions) (*missCurve, error) {
	if p.Block <= 0 {
		return nil, fmt.Errorf("the profile does not tell its block size")
	}
	var bytes []uint64
	for _, s := range sizes {
		n, err := sampler.ParseSize(s)
		if err != nil {
			return nil, usageError{fmt.Errorf("--sizes: %w", err)}
		}
		if n < int64(p.Block) {
			return nil, usageError{fmt.Errorf("--sizes: %s is less than one block of %d bytes", s, p.Block)}
		}
		bytes = append(bytes, uint64(n))
	}
	if len(sizes) == 0 {
		bytes = curveSizes(p, max(1, o.Ways))
	}
	slices.Sort(bytes)
	bytes = slices.Compact(bytes)
	blocks := make([]uint64, len(bytes))
	for i, b := range bytes {
		blocks[i] = b / uint64(p.Block)
		if o.Ways > 0 && blocks[i]%uint64(o.Ways) != 0 {
			return nil, usageError{fmt.Errorf("--ways %d: %s are not a whole number of sets of %d blocks of %d bytes (consider: --sizes)", o.Ways, siBytes(float64(b)), o.Ways, p.Block)}
		}
	}
	curve, err := p.MissRatios(blocks, o)
	if err != nil {
		return nil, err
	}
	c := &missCurve{Profile: survey(p), Holds: curve.Holds}
	for i, q := range curve.Points {
		m := missPoint{Bytes: bytes[i], Blocks: q.Blocks, Low: q.Low, High: q.High, Note: q.Quote.String(), raw: q}
		if q.Quote == model.Quoted {
			m.MissRatio, m.Misses = &q.MissRatio, &q.Misses
		}
		for _, cache := range p.Caches {
			if uint64(max(cache.Size, 0)) == m.Bytes {
				m.cache = strings.TrimSpace(m.cache + " " + cache.Level)
			}
		}
		c.Points = append(c.Points, m)
	}
	return c, nil
}

// curveSizes are those of powers of two of sets of so many ways, from 1 KiB, or 16 blocks, on to where all
// that was seen fits, and the profile's caches that have a whole number of sets.
func curveSizes(p *model.Profile, ways int) []uint64 {
	largest := uint64(1 << 20)
	var sizes []uint64
	set := uint64(p.Block * ways)
	for _, c := range p.Caches {
		if s := uint64(max(c.Size, 0)); s >= uint64(p.Block) {
			if s%set == 0 {
				sizes = append(sizes, s)
			}
			largest = max(largest, s)
		}
	}
	if h, err := p.Stacks(model.LogBins(1)); err == nil {
		for i, w := range h.W {
			if w > 0 && h.Bins.Hi(i) < 1<<40 {
				largest = max(largest, h.Bins.Hi(i)*uint64(p.Block))
			}
		}
	}
	for s := set; s <= min(2*largest, 1<<50); s *= 2 {
		if s >= uint64(max(1024, 16*p.Block)) {
			sizes = append(sizes, s)
		}
	}
	return sizes
}

func (r *mrcReport) rows() [][]string {
	rows := [][]string{{"file", "bytes", "blocks", "miss_ratio", "low", "high", "misses", "note"}}
	for _, c := range r.Curves {
		for _, q := range c.Points {
			rows = append(rows, []string{c.File, whole(q.Bytes), whole(q.Blocks), numberOr(q.MissRatio), number(q.Low), number(q.High), numberOr(q.Misses), q.Note})
		}
	}
	return rows
}

func (r *mrcReport) text() string {
	var b strings.Builder
	for i, c := range r.Curves {
		if i > 0 {
			b.WriteString("\n")
		}
		if len(r.Curves) > 1 {
			fmt.Fprintf(&b, "%-13s%s\n", "file", printable(c.File))
		}
		c.writeText(&b, r, hasUTF8())
	}
	return b.String()
}

func (c *missCurve) writeText(b *strings.Builder, r *mrcReport, utf8 bool) {
	writeOverview(b, c.Profile)
	kind := "fully associative"
	if r.Ways > 0 {
		kind = fmt.Sprintf("%d ways", r.Ways)
	}
	fmt.Fprintf(b, "\nmiss ratio, LRU, %s, %d-byte blocks, model %s; in brackets 95 %% confidence\n\n", kind, c.Profile.Block, r.Model)
	greatest := 0.0
	for _, q := range c.Points {
		greatest = max(greatest, q.High)
	}
	const labels = 44 // columns before the bars
	for _, q := range c.Points {
		ratio := percent(q.raw.MissRatio, 1)
		bar := q.raw.MissRatio
		if q.MissRatio == nil {
			ratio = "<" + percent(q.High, 1)
			if q.raw.Quote == model.BelowResolution || q.raw.Quote == model.RateUnknown {
				ratio = "?"
			}
			bar = 0
		}
		line := fmt.Sprintf("%-4s %9s %8s [%6s, %6s]  ", q.cache, siBytes(float64(q.Bytes)), ratio, percent(q.Low, 1), percent(q.High, 1))
		if q.Note != "" {
			line += q.Note
		} else {
			line += barOf(bar, greatest, 80-labels, utf8)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// errNothing is for drawings without a point.
var errNothing = errors.New("mrc: no cache size has a miss ratio to draw; profile longer")
