package device

import (
	"math/bits"

	"github.com/rdx-profiler/rdx/gpu/opencl"
)

// primitives are what the analyses are made of. Elements are words of 32 bits.
type primitives struct {
	*opencl.Context
	sums  []*opencl.Buffer // of tiles, by level
	table *opencl.Buffer   // of digits and tiles
	value [2]*opencl.Buffer
	more  [2]*opencl.Buffer
}

// prepare makes room for sorting and counting n elements.
func (p *primitives) prepare(n uint64) (err error) {
	if p.table, err = p.Alloc(4 * 256 * tiles(n)); err != nil {
		return err
	}
	for i := range p.value {
		if p.value[i], err = p.Alloc(4 * n); err != nil {
			return err
		}
		if p.more[i], err = p.Alloc(4 * n); err != nil {
			return err
		}
	}
	return nil
}

func tiles(n uint64) uint64 { return (n + tile - 1) / tile }

// each runs a kernel with a work-item for each of n elements.
func (p *primitives) each(kernel string, n uint64, args ...any) error {
	return p.Run(kernel, (n+group-1)/group, group, args...)
}

func (p *primitives) fill(b *opencl.Buffer, n uint64, value uint32) error {
	return p.each("fill", n, b, n, value)
}

// scan replaces each of n elements by the sum of those before it.
func (p *primitives) scan(b *opencl.Buffer, n uint64) error { return p.scanLevel(b, n, 0) }

func (p *primitives) scanLevel(b *opencl.Buffer, n uint64, level int) error {
	t := tiles(n)
	if t <= 1 {
		return p.Run("scan_tiles", 1, group, b, n, b, uint32(1), b)
	}
	if level == len(p.sums) {
		p.sums = append(p.sums, nil)
	}
	if p.sums[level] == nil || p.sums[level].Size < 4*t {
		p.Free(p.sums[level])
		p.sums[level] = nil
		sums, err := p.Alloc(4 * t)
		if err != nil {
			return err
		}
		p.sums[level] = sums
	}
	sums := p.sums[level]
	if err := p.Run("scan_sums", t, group, b, n, sums); err != nil {
		return err
	}
	if err := p.scanLevel(sums, t, level+1); err != nil {
		return err
	}
	return p.Run("scan_tiles", t, group, b, n, sums, uint32(0), b)
}

// sortDigit is one pass of a sort by 8 bits of the key.
func (p *primitives) sortDigit(key, order *opencl.Buffer, first, n, shift uint32, keyOut, orderOut *opencl.Buffer) error {
	t := tiles(uint64(n))
	if err := p.Run("sort_count", t, group, key, n, shift, p.table); err != nil {
		return err
	}
	if err := p.scan(p.table, 256*t); err != nil {
		return err
	}
	return p.Run("sort_move", t, group, key, order, first, n, shift, p.table, keyOut, orderOut)
}

// inversions sets, for each value of 0 to n-1, how many elements before the one that has it have a greater one.
func (p *primitives) inversions(value *opencl.Buffer, n uint32, out *opencl.Buffer) error {
	const tileBits, digitBits = 11, 4
	t := tiles(uint64(n))
	more, first, to := p.more[0], uint32(1), 0
	for top := max(uint32(bits.Len32(n-1)), tileBits); top > tileBits; {
		shift := max(top-digitBits, tileBits)
		mask := uint32(1)<<(top-shift) - 1
		if err := p.Run("inv_count", t, group, value, n, shift, mask, p.table); err != nil {
			return err
		}
		if err := p.scan(p.table, 16*t); err != nil {
			return err
		}
		if err := p.Run("inv_move", t, group, value, more, first, n, shift, top, p.table, p.value[to], p.more[to]); err != nil {
			return err
		}
		value, more, first, to, top = p.value[to], p.more[to], 0, to^1, shift
	}
	return p.Run("inv_tile", t, group, value, more, first, n, out)
}
