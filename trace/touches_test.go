package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	oldrand "math/rand"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// flat lists touches one by one: blocks, and for each first of a run in
// between, what it says of it.
func flat(t *model.Touches) (all []uint64) {
	for i, b := range t.Blocks {
		for range t.Runs[i]>>1 + 1 {
			all = append(all, b)
		}
	}
	return all
}

// touched lists the blocks that accesses touch.
func touched(g model.Granularity, accesses []model.Access) (all []uint64) {
	for i := range accesses {
		for b, last := g.Span(&accesses[i]); ; b++ {
			all = append(all, b)
			if b == last {
				break
			}
		}
	}
	return all
}

// bothSinks hands every entry to two sinks.
type bothSinks struct {
	accesses *batcher
	touches  *toucher
}

func (b bothSinks) open(int) (sink, error) { return b, nil }
func (b bothSinks) after(f func())         { f() }

func (b bothSinks) enter(d *decoder, w []uint64, i int) (int, error) {
	next, err := b.accesses.enter(d, w, i)
	n, terr := b.touches.enter(d, w, i) // both take the entries before one that is broken
	if n != next || (terr == nil) != (err == nil) {
		return 0, fmt.Errorf("sinks differ: word %d, %v and word %d, %v", next, err, n, terr)
	}
	return next, err
}

// fuzzedStream makes the words of a stream from arbitrary bytes: segments that are
// described, and entries of them, some of which stop at a fault.
func fuzzedStream(data []byte) (w []uint64) {
	next := func() uint64 {
		if len(data) == 0 {
			return 0
		}
		v := uint64(data[0])
		data = data[1:]
		return v
	}
	type described struct {
		number       uint32
		words, sites int
	}
	var segments []described
	for len(data) > 0 && len(w) < 1<<16 {
		switch k := next(); {
		case k < 48 || len(segments) == 0:
			d := described{sites: int(next()%6) + 1}
			w = append(w, wordDefine|uint64(1+2*d.sites)<<32, 0)
			at := len(w) - 1
			for s := range d.sites {
				kind := next()
				site := uint64(0x400000+s) | kind%3<<(siteOpsShift) | (1+next())<<pcBits
				base := uint64(baseNewWord)<<offsetBits | next()
				switch {
				case kind&0x40 != 0 && d.words > 0:
					base = next()%uint64(d.words)<<offsetBits | next()*0x1234567&(1<<offsetBits-1)
				case kind&0x80 != 0:
					base = uint64(baseNone)<<offsetBits | next()<<20
				default:
					d.words++
					if kind&0x20 != 0 {
						site |= siteGuarded << siteOpsShift
					}
				}
				w = append(w, site, base)
			}
			d.number = numberOf(len(segments), d.words)
			w[at] = uint64(d.number) | uint64(d.sites)<<32
			segments = append(segments, d)
		case k < 56:
			w = append(w, wordThread|1<<32, next())
		default:
			n := k % uint64(len(segments))
			words := make([]uint64, segments[n].words)
			for i := range words {
				words[i] = next() * next() << (next() % 56)
			}
			w = appendEntry(w, segments[n].number, words)
			if k >= 250 {
				w = append(w, wordFault|1<<32, 0x400000+next()%8)
			}
		}
	}
	return w
}

// A segment may have more touches than a batch has at first.
func TestTouchesOfLargeSegment(t *testing.T) {
	const sites, size, entries = 30, 4000, 9
	w := []uint64{wordDefine | (1+2*sites)<<32, wordFirstSegment | sites<<32}
	for i := range uint64(sites) {
		w = append(w, 0x400000+i|siteLoad<<siteOpsShift|size<<pcBits, uint64(baseNone)<<offsetBits|i<<20)
	}
	for range entries {
		w = append(w, wordFirstSegment)
	}
	g, err := model.NewGranularity(1)
	if err != nil {
		t.Fatal(err)
	}
	touches := newToucher(g)
	done := make(chan int)
	go func() {
		n := 0
		for b := range touches.full {
			n += len(flat(b))
			touches.spare <- b
		}
		done <- n
	}()
	d := decoder{}
	if _, err := d.buffer(w, false, touches); err != nil {
		t.Fatal(err)
	}
	touches.flush()
	close(touches.full)
	if n := <-done; n != sites*size*entries {
		t.Errorf("%d touches, want %d", n, sites*size*entries)
	}
}

// FuzzStream: no stream, however broken, makes the decoder panic, and touches are
// those of the accesses, whether the stream ends well or not. With asWords the
// bytes are the stream's words as they are.
func FuzzStream(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		data := make([]byte, r.IntN(2000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data, false, false, uint8(r.Uint32()))
		raw := []byte{}
		for _, x := range fuzzedStream(data) {
			raw = binary.LittleEndian.AppendUint64(raw, x)
		}
		f.Add(raw, true, true, uint8(r.Uint32()))
	}
	f.Fuzz(func(t *testing.T, data []byte, asWords, cut bool, shift uint8) {
		var w []uint64
		if asWords {
			for ; len(data) >= 8; data = data[8:] {
				x := binary.LittleEndian.Uint64(data)
				if uint32(x) > 1<<16 {
					x &^= 0xffff0000 // numbers of segments, or memory for a table of them
				}
				w = append(w, x)
			}
		} else {
			w = fuzzedStream(data)
		}
		g, err := model.NewGranularity(1 << (shift % 13))
		if err != nil {
			t.Fatal(err)
		}
		touches := newToucher(g)
		var got, want []uint64
		var repeats, wantRepeats [2]uint64 // loads, stores
		var begun [2]uint64
		var inRuns uint64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for b := range touches.full {
				got = append(got, flat(b)...)
				for i := range repeats {
					repeats[i] += b.Repeats[i]
				}
				for _, run := range b.Runs {
					inRuns += uint64(run >> 1)
					begun[run&1]++
				}
				touches.spare <- b
			}
		}()
		accesses := newBatcher(func(a []model.Access) {
			want = append(want, touched(g, a)...)
			for i := range a {
				wantRepeats[a[i].Op-model.Load] += uint64(len(touched(g, a[i:i+1])))
			}
		})
		d := decoder{skipped: func(uint64) {}}
		if _, err := d.buffer(w, cut, bothSinks{accesses, touches}); err != nil && strings.Contains(err.Error(), "sinks differ") {
			t.Error(err)
		}
		accesses.flush()
		touches.flush()
		close(touches.full)
		<-done
		if !slices.Equal(got, want) {
			t.Errorf("%d touches are not the %d of the accesses", len(got), len(want))
		}
		for op := range begun {
			wantRepeats[op] -= begun[op]
		}
		if repeats != wantRepeats || repeats[0]+repeats[1] != inRuns {
			t.Errorf("%d repeats, want %d, and the runs have %d", repeats, wantRepeats, inRuns)
		}
	})
}

// A recording read as touches is what its accesses touch.
func TestSourceTouches(t *testing.T) {
	seed := rand.Int64()
	as := someAccesses(oldrand.New(oldrand.NewSource(seed)), 300_000, 3)
	file := write(t, as, Header{})
	for _, size := range []int{8, 64} {
		g, err := model.NewGranularity(size)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		var ops [model.Store + 1]uint64
		err = NewSource(open(t, file)).Touches(g, func(b *model.Touches) error {
			got = append(got, flat(b)...)
			for op, n := range b.Ops {
				ops[op] += n
			}
			return nil
		})
		if want := touched(g, as); err != nil || !slices.Equal(got, want) {
			t.Errorf("seed %d, blocks of %d: error %v, %d touches, want %d", seed, size, err, len(got), len(want))
		}
		if n := ops[model.Load] + ops[model.Store]; n != uint64(len(as)) {
			t.Errorf("seed %d: %d accesses, want %d", seed, n, len(as))
		}
		stop := errors.New("stop")
		if err := NewSource(open(t, file)).Touches(g, func(*model.Touches) error { return stop }); err != stop {
			t.Errorf("error %v, want that of the reader", err)
		}
		bad := slices.Clone(file)
		bad[len(bad)/2] ^= 1
		if err := NewSource(open(t, bad)).Touches(g, func(*model.Touches) error { return nil }); err == nil {
			t.Error("a damaged recording reads like a whole one")
		}
	}
}
