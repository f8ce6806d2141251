// Needs: qemu-user, arm64 programs of Debian (testdata/programs.sh).
package a64

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

// kept is a memory that was read before: QEMU's answers would be all that is
// measured.
type kept struct {
	*stub
	pages map[uint64]*[pageSize]byte
}

func (k *kept) ReadPage(addr uint64, buf *[4096]byte) error {
	p := k.pages[addr]
	if p == nil {
		p = new([pageSize]byte)
		if err := k.stub.ReadPage(addr, p); err != nil {
			return err
		}
		k.pages[addr] = p
	}
	*buf = *p
	return nil
}

// BenchmarkBurst reads ahead 10,000 accesses from wherever a program is stopped,
// again and again from there.
func BenchmarkBurst(b *testing.B) {
	root := debian(b)
	all := programs(b, root, rand.New(rand.NewPCG(1, 1)))
	for _, name := range []string{"xz", "bzip2", "perl", "python3", "sqlite3"} {
		b.Run(name, func(b *testing.B) {
			w := &walk{stub: startStub(b, "neoverse-n1", root, all[name]...), t: b}
			var r Regs
			if !w.away(200*time.Millisecond) || !w.all(&r) {
				b.Fatalf("%s ended", name)
			}
			r.DCZID = 4
			mem := &kept{w.stub, map[uint64]*[pageSize]byte{}}
			m := New()
			run := func() interp.End {
				m.Start(&r, mem)
				return m.Run(interp.Limit{Accesses: 10000, Instructions: 1e6})
			}
			end := run()
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n += run().Instructions
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/instruction")
			b.ReportMetric(float64(n)/float64(b.N), "instructions")
			b.ReportMetric(float64(len(m.Accesses())), "accesses")
			if end.Cause != interp.AccessesDone {
				b.Logf("ended by %v %s", end.Cause, end.Op)
			}
		})
	}
}
