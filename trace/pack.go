package trace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// How a section of a block is stored.
const (
	storedPlain = 0
	storedZstd  = 1
)

// What the middle of a section tells about the whole.
const (
	sampleBytes = 4 << 10
	sampleLeast = 8 << 10 // sections below this are packed whole
	sampleEvery = 8       // blocks to one that is asked about while a section is stored plain
	sampleGain  = 0.15    // of what shrinks to more than that share of it, the section is stored plain
	leastShare  = 16      // sections that are less than one of so many parts of their block are stored plain
)

// packer packs sections with zstd where there are many repetitions, which a part
// that is packed first tells. Packing the others as well, to 0.6 bytes per access of gzip
// instead of 1.05, costs more than half as much time as encoding them.
type packer struct {
	encoder *zstd.Encoder
	buf     []byte
	at      int                // section of a block
	block   int                // bytes of all its sections
	plain   [blockSections]int // blocks whose section is not asked about: it was stored plain before
}

func newPacker() (*packer, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	return &packer{encoder: e}, nil
}

func (p *packer) close() { p.encoder.Close() }

// section appends a count and bytes.
func (p *packer) section(dst []byte, n int, b []byte) []byte {
	packed, method := p.pack(b)
	p.at++
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	dst = append(dst, method)
	dst = binary.AppendUvarint(dst, uint64(len(packed)))
	return append(dst, packed...)
}

func (p *packer) pack(b []byte) (packed []byte, method byte) {
	if len(b) < p.block/leastShare {
		return b, storedPlain
	}
	if len(b) >= sampleLeast {
		plain := &p.plain[p.at]
		if *plain > 0 {
			*plain--
			return b, storedPlain
		}
		at := len(b)/2 - sampleBytes/2
		p.buf = p.encoder.EncodeAll(b[at:at+sampleBytes], p.buf[:0])
		if float64(len(p.buf)) > sampleGain*sampleBytes {
			*plain = sampleEvery - 1
			return b, storedPlain
		}
	}
	p.buf = p.encoder.EncodeAll(b, p.buf[:0])
	if len(p.buf) >= len(b) {
		return b, storedPlain
	}
	return p.buf, storedZstd
}

// section is one of a block's, unpacked.
type section struct {
	n uint64
	b []byte
}

const blockSections = 8

var errBlock = errors.New("contents make no sense")

// unpack reads the sections of a payload into dst, which is returned too. A
// reader may look 8 bytes past the end of a section.
func unpack(d *zstd.Decoder, payload, dst []byte) (s [blockSections]section, _ []byte, err error) {
	v := varints{b: payload}
	var ends [blockSections][2]int
	dst = dst[:0]
	for i := range s {
		s[i].n = v.next()
		size := v.next()
		if v.bad || len(v.b) == 0 || size > maxBlockBytes || len(dst) > maxBlockBytes {
			return s, dst, errBlock
		}
		method := v.b[0]
		v.b = v.b[1:]
		packed := v.next()
		if packed > uint64(len(v.b)) {
			return s, dst, errBlock
		}
		b := v.b[:packed]
		v.b = v.b[packed:]
		from := len(dst)
		switch method {
		case storedPlain:
			dst = append(dst, b...)
		case storedZstd:
			if dst, err = d.DecodeAll(b, dst); err != nil {
				return s, dst, err
			}
		default:
			return s, dst, errBlock
		}
		if uint64(len(dst)-from) != size {
			return s, dst, fmt.Errorf("%d bytes where %d were announced", len(dst)-from, size)
		}
		ends[i] = [2]int{from, len(dst)}
		dst = append(dst, make([]byte, valueRoom)...)
	}
	if v.bad || len(v.b) != 0 {
		return s, dst, errBlock
	}
	for i, e := range ends {
		s[i].b = dst[e[0]:e[1]]
	}
	return s, dst, nil
}
