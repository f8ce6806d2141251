package pprofout

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/rdx-profiler/rdx/model"
)

// Parts are the records of a profile in parts, of which one at a time is in memory: the exact
// profile of a large program has millions.
type Parts struct {
	// Uses are the instructions of the uses, each one once. All stacks are of one frame.
	Uses []*model.Location
	// Locations are those of the uses and reuses of all records, and Kinds their kinds, each one once.
	Locations []*model.Location
	Kinds     []model.Kind
	// Records are those of Uses[i], the same ones whenever it is called. Each need be valid until the next only.
	Records func(i int) iter.Seq[*model.Record]
}

// all are the records of all parts.
func (p *Parts) all(yield func(*model.Record) bool) {
	for i := range p.Uses {
		for r := range p.Records(i) {
			if !yield(r) {
				return
			}
		}
	}
}

// WithParts gives a profile's records, in the place of Profile.Records.
func WithParts(p *Parts) Option { return func(e *encoder) { e.parts = p } }

// encodeParts is encode for records in parts. A file's samples are ordered by their last frames, which are the uses:
// so the samples of each part follow each other.
func (e *encoder) encodeParts() ([]byte, error) {
	p := e.p
	if len(p.Records) > 0 || len(p.Latencies) > 0 || e.windows || e.useOmitted || p.Clock.Unit == nanoseconds {
		return nil, errors.New("records in parts: there are others, too, or no uses, or times in nanoseconds")
	}
	groups := newPartGroups(e)
	e.quotable = e.p.QuotableOf(e.parts.all)
	out, err := e.head()
	if err != nil {
		return nil, err
	}
	t := newTotals(out)
	// What comments say is not known yet, but where the other texts are does not depend on it.
	if err := e.comment(out, t); err != nil {
		return nil, err
	}
	var rest bytes.Buffer
	if err := out.WriteUncompressed(&rest); err != nil {
		return nil, err
	}
	samples := newSampleWriter(rest.Bytes())
	known := maps.Clone(samples.index)
	z := newPacker()
	defer z.abandon()
	for _, i := range groups.partsInOrder() {
		if err := groups.collect(i); err != nil {
			return nil, err
		}
		err := groups.each(func(s *group, k *partKey) error {
			if err := t.add(s); err != nil {
				return err
			}
			z.write(groups.encode(samples, s, k))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if err := e.comment(out, t); err != nil {
		return nil, err
	}
	rest.Reset()
	if err := out.WriteUncompressed(&rest); err != nil {
		return nil, err
	}
	last := newSampleWriter(rest.Bytes()).index
	for s, at := range known {
		if to, ok := last[s]; ok && to != at || len(last) != len(known) {
			return nil, errors.New("records in parts: texts have moved")
		}
	}
	z.write(rest.Bytes())
	z.write(samples.texts)
	return z.close(), nil
}

// packer is a gzip.Writer into memory that packs on a goroutine of its own.
type packer struct {
	packed pieces
	buf    []byte
	full   chan []byte
	spare  chan []byte
	done   chan struct{}
}

const packedAtOnce = 1 << 17

// pieces are what was written, in memory that is not moved while it grows.
type pieces [][]byte

const pieceSize = 1 << 18

func (p *pieces) Write(b []byte) (int, error) {
	for left := b; len(left) > 0; {
		if n := len(*p); n == 0 || len((*p)[n-1]) == pieceSize {
			*p = append(*p, make([]byte, 0, pieceSize))
		}
		last := &(*p)[len(*p)-1]
		n := min(len(left), pieceSize-len(*last))
		*last = append(*last, left[:n]...)
		left = left[n:]
	}
	return len(b), nil
}

func newPacker() *packer {
	p := &packer{full: make(chan []byte, 2), spare: make(chan []byte, 4), done: make(chan struct{})}
	for range cap(p.spare) {
		p.spare <- nil
	}
	p.buf = <-p.spare
	// Level 2 takes a third of the time of the default, and a seventh more room.
	z, _ := gzip.NewWriterLevel(&p.packed, 2)
	full := p.full
	go func() {
		defer close(p.done)
		for b := range full {
			z.Write(b)
			p.spare <- b[:0]
		}
		z.Close()
	}()
	return p
}

func (p *packer) write(b []byte) {
	p.buf = append(p.buf, b...)
	if len(p.buf) >= packedAtOnce {
		p.full <- p.buf
		p.buf = <-p.spare
	}
}

// close packs the rest and returns all.
func (p *packer) close() []byte {
	p.full <- p.buf
	p.abandon()
	return slices.Concat(p.packed...)
}

// abandon ends the goroutine. It does nothing after close.
func (p *packer) abandon() {
	if p.full != nil {
		close(p.full)
		p.full = nil
		<-p.done
	}
}
