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
	f.Add(n, uint16(s[0].n), uint16(s[1].n), uint16(s[2].n), s[3].n%2 != 0, s[6].n%2 != 0,
		s[0].b, s[1].b, s[2].b, s[3].b, s[4].b, s[5].b, s[6].b, s[7].b)
	dst := make([]model.Access, 4*maxSites)
	f.Fuzz(func(t *testing.T, n uint32, defined, runs, faults uint16, oddCodes, oddSizes bool, s0, s1, s2, s3, s4, s5, s6, s7 []byte) {
		var s [blockSections]section
		for i, b := range [][]byte{s0, s1, s2, s3, s4, s5, s6, s7} {
			s[i] = section{uint64(len(b)), append(b[:len(b):len(b)], make([]byte, valueRoom)...)[:len(b)]}
		}
		s[0].n, s[1].n, s[2].n = uint64(defined), uint64(runs), uint64(faults)
		s[4].n /= 2
		for i, odd := range map[int]bool{3: oddCodes, 6: oddSizes} { // a nibble each
			if s[i].n *= 2; odd && s[i].n > 0 {
				s[i].n--
			}
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
