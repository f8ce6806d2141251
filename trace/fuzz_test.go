package trace

import (
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rdx-profiler/rdx/model"
)

// FuzzBlockContents gets past the compression, too: the bytes of each section,
// whose counts fit them.
func FuzzBlockContents(f *testing.F) {
	n, payload := seedBlock(f, 11)
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		f.Fatal(err)
	}
	defer z.Close()
	s, _, err := unpack(z, payload, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(n, uint16(s[0].n), uint16(s[1].n), uint16(s[2].n), uint8(8*len(s[3].b)-int(s[3].n)), uint8(2*len(s[5].b)-int(s[5].n)),
		s[0].b, s[1].b, s[2].b, s[3].b, s[4].b, s[5].b, s[6].b)
	dst := make([]model.Access, 4*maxSites)
	f.Fuzz(func(t *testing.T, n uint32, defined, runs, faults uint16, noMiss, noSize uint8, s0, s1, s2, s3, s4, s5, s6 []byte) {
		var s [blockSections]section
		for i, b := range [][]byte{s0, s1, s2, s3, s4, s5, s6} {
			s[i] = section{uint64(len(b)), append(b[:len(b):len(b)], make([]byte, valueRoom)...)[:len(b)]}
		}
		s[0].n, s[1].n, s[2].n = uint64(defined), uint64(runs), uint64(faults)
		if len(s3) > 0 {
			s[3].n = 8*s[3].n - uint64(noMiss%8)
		}
		s[4].n /= 2
		if len(s5) > 0 {
			s[5].n = 2*s[5].n - uint64(noSize%2)
		}
		r, err := openBlock(blockInfo{accesses: n}, s)
		if err != nil {
			return
		}
		total := uint64(0)
		for {
			if _, err := r.run(); err != nil {
				break
			}
			for {
				k, err := r.next(dst)
				if err != nil {
					return
				}
				if k == 0 {
					break
				}
				total += uint64(k)
			}
		}
		if total > uint64(n) {
			t.Errorf("%d accesses of %d", total, n)
		}
	})
}
