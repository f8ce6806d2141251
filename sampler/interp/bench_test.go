// Needs ptrace, amd64, Linux and the programs it runs.

//go:build linux && amd64

package interp

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// kept is a memory that was read before, to tell the cost of reading pages
// from that of interpreting.
type kept struct {
	*child
	pages map[uint64]*[pageSize]byte
}

func (k *kept) ReadPage(addr uint64, buf *[pageSize]byte) error {
	if p := k.pages[addr]; p != nil {
		*buf = *p
		return nil
	}
	err := k.child.ReadPage(addr, buf)
	if err == nil {
		p := *buf
		k.pages[addr] = &p
	}
	return err
}

// BenchmarkBurst reads ahead 10,000 accesses from wherever a program is
// stopped, again and again from there.
func BenchmarkBurst(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	all := programs(b, rnd)
	for _, name := range []string{"xz", "bzip2", "perl", "python3", "sqlite3", "cc1", "openssl"} {
		if _, err := os.Stat(all[name][0]); err != nil {
			continue
		}
		w := &walk{t: b, child: start(b, nil, all[name]...)}
		if !w.away(100 * time.Millisecond) {
			b.Fatalf("%s ended", name)
		}
		var r Regs
		w.regs(&r)
		w.vector(&r.Vector)
		for _, mem := range []struct {
			name string
			Memory
		}{{"live", w.child}, {"kept", &kept{w.child, map[uint64]*[pageSize]byte{}}}} {
			b.Run(name+"/"+mem.name, func(b *testing.B) {
				m := New()
				n, acc, pages := 0, 0, 0
				var end End
				b.ReportAllocs()
				for b.Loop() {
					m.Start(&r, mem.Memory)
					end = m.Run(Limit{Accesses: 10000, Instructions: 1e6})
					n += end.Instructions
					acc += len(m.Accesses())
					pages += m.used
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/instruction")
				b.ReportMetric(float64(n)/float64(b.N), "instructions")
				b.ReportMetric(float64(acc)/float64(b.N), "accesses")
				b.ReportMetric(float64(pages)/float64(b.N), "pages")
				if end.Cause != AccessesDone {
					b.Logf("ended by %v %s", end.Cause, end.Op)
				}
			})
		}
		w.kill()
		w.exited, w.mem = true, nil
	}
}

// BenchmarkStep reads ahead by single-stepping instead: what it costs to move a
// thread by an instruction and to look at its registers.
func BenchmarkStep(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	all := programs(b, rnd)
	for _, name := range []string{"xz", "python3", "sqlite3"} {
		if _, err := os.Stat(all[name][0]); err != nil {
			continue
		}
		// All in one goroutine, whose OS thread traces the program.
		b.Run(name, func(b *testing.B) {
			w := &walk{t: b, child: start(b, nil, all[name]...)}
			if !w.away(100 * time.Millisecond) {
				b.Fatalf("%s ended", name)
			}
			n := 0
			for b.Loop() {
				if _, ok := w.child.step(0); !ok {
					b.Fatalf("%s ended", name)
				}
				w.child.raw()
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/instruction")
			w.kill()
			w.exited, w.mem = true, nil
		})
	}
}
