// Needs ptrace, amd64, Linux and the programs it runs.

//go:build linux && amd64

package interp

import (
	"math/rand/v2"
	"os"
	"sort"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// callMemory reads a process by process_vm_readv.
type callMemory int

func (p callMemory) ReadPage(addr uint64, buf *[4096]byte) error {
	if p.ReadPages([]uint64{addr}, []*[4096]byte{buf}) == 0 {
		return errNoPage
	}
	return nil
}

func (p callMemory) ReadPages(addrs []uint64, bufs []*[4096]byte) int {
	var local [MaxBatch]unix.Iovec
	var to [MaxBatch]unix.RemoteIovec
	for i, a := range addrs {
		local[i] = unix.Iovec{Base: &bufs[i][0], Len: pageSize}
		to[i] = unix.RemoteIovec{Base: uintptr(a), Len: pageSize}
	}
	n, _ := unix.ProcessVMReadv(int(p), local[:len(addrs)], to[:len(addrs)], 0)
	return max(n, 0) / pageSize
}

// BenchmarkHold reads ahead 2,047 accesses from where a program is from time to time,
// once with its pages read ahead and once without.
func BenchmarkHold(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	all := programs(b, rnd)
	for _, name := range []string{"xz", "gzip", "perl", "python3", "sqlite3"} {
		if _, err := os.Stat(all[name][0]); err != nil {
			continue
		}
		b.Run(name, func(b *testing.B) {
			w := &walk{t: b, child: start(b, nil, all[name]...)}
			machines := [2]*Machine{New(), New()}
			var elapsed [2][]float64
			ahead, used := 0, 0
			for b.Loop() {
				for !w.away(2*time.Millisecond + time.Duration(rnd.Int64N(int64(5*time.Millisecond)))) {
					w = &walk{t: b, child: start(b, nil, all[name]...)}
				}
				var r Regs
				w.regs(&r)
				r.LoadVector = func(v *Vector) error { w.vector(v); return nil }
				first := rnd.IntN(2)
				for _, i := range [2]int{first, 1 - first} {
					m := machines[i]
					begin := time.Now()
					m.Start(&r, callMemory(w.pid))
					if i == 1 {
						ahead += m.Prefetch(1)
					}
					m.Run(Limit{Accesses: 2047, Instructions: 16384})
					elapsed[i] = append(elapsed[i], float64(time.Since(begin).Nanoseconds())/1e3)
				}
				used += machines[0].used
			}
			for i, unit := range []string{"µs-one-by-one", "µs-read-ahead"} {
				sort.Float64s(elapsed[i])
				b.ReportMetric(elapsed[i][len(elapsed[i])/2], unit)
			}
			b.ReportMetric(float64(ahead)/float64(b.N), "pages-ahead")
			b.ReportMetric(float64(used)/float64(b.N), "pages")
			w.kill()
			w.exited, w.mem = true, nil
		})
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
