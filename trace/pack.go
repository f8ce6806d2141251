package trace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// How a section of a block is stored.
const (
	storedPlain = 0
	storedZstd  = 1
)

// What the middle of a section tells about the whole.
const (
	sampleBytes = 8 << 10
	sampleLeast = 32 << 10 // sections below this are packed whole
)

// packer packs sections with zstd. Looking for repetitions is worth its time
// where there are some, so a part is packed first: if it hardly shrinks the
// section is stored plain, and if it shrinks by what the frequency of bytes
// alone can give, the section becomes a zstd frame of literals.
type packer struct {
	plain   bool // store every section as it is
	encoder *zstd.Encoder
	huffman huff0.Scratch
	buf     []byte
}

func newPacker() (*packer, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	return &packer{encoder: e, huffman: huff0.Scratch{Reuse: huff0.ReusePolicyNone}}, nil
}

func (p *packer) close() { p.encoder.Close() }

// section appends a count and bytes.
func (p *packer) section(dst []byte, n int, b []byte) []byte {
	packed, method := p.pack(b)
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	dst = append(dst, method)
	dst = binary.AppendUvarint(dst, uint64(len(packed)))
	return append(dst, packed...)
}

func (p *packer) pack(b []byte) (packed []byte, method byte) {
	if p.plain {
		return b, storedPlain
	}
	if len(b) >= sampleLeast {
		at := len(b)/2 - sampleBytes/2
		p.buf = p.encoder.EncodeAll(b[at:at+sampleBytes], p.buf[:0])
		switch shrunk := float64(len(p.buf)) / sampleBytes; {
		case shrunk > 0.85:
			return b, storedPlain
		case shrunk > 0.3:
			p.buf = p.literals(p.buf[:0], b)
		default:
			p.buf = p.encoder.EncodeAll(b, p.buf[:0])
		}
	} else {
		p.buf = p.encoder.EncodeAll(b, p.buf[:0])
	}
	if len(p.buf) >= len(b) {
		return b, storedPlain
	}
	return p.buf, storedZstd
}

// literals appends a zstd frame without matches, RFC 8878, section 3.1.1:
// blocks of Huffman-coded literals, or plain where that gains nothing.
func (p *packer) literals(dst, b []byte) []byte {
	const blockMax = 1 << 17
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd, 0xa0) // magic; one segment, its size in 4 bytes
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)))
	header := func(size, kind int, last bool) {
		h := uint32(size)<<3 | uint32(kind)<<1
		if last {
			h |= 1
		}
		dst = append(dst, byte(h), byte(h>>8), byte(h>>16))
	}
	for {
		part := b[:min(len(b), blockMax)]
		b = b[len(part):]
		out, _, err := huff0.Compress4X(part, &p.huffman)
		switch {
		case errors.Is(err, huff0.ErrUseRLE):
			header(len(part), 1, len(b) == 0)
			dst = append(dst, part[0])
		case err != nil || len(out)+6 >= len(part):
			header(len(part), 0, len(b) == 0)
			dst = append(dst, part...)
		default:
			header(len(out)+6, 2, len(b) == 0)
			// Compressed literals in 4 streams, both sizes of 18 bits, and
			// then no sequences.
			h := uint64(2) | 3<<2 | uint64(len(part))<<4 | uint64(len(out))<<22
			dst = append(dst, byte(h), byte(h>>8), byte(h>>16), byte(h>>24), byte(h>>32))
			dst = append(append(dst, out...), 0)
		}
		if len(b) == 0 {
			return dst
		}
	}
}

// section is one of a block's, unpacked.
type section struct {
	n uint64
	b []byte
}

const blockSections = 7

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
