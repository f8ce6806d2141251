package web

import (
	"bytes"
	"io"
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// manySmall is an exact profile of as many samples as are merged, at a few stacks, as programs have them.
func manySmall() *model.Profile {
	p := large(20_000, 0)
	p.ExactDistances = true
	for i := range p.Records {
		r := &p.Records[i]
		r.Hold, r.Distinct, r.Exact = 0, 0, false
		r.Reuses, r.Distance = r.Accesses, float64(r.Time)
	}
	for k := range 14 {
		for _, r := range p.Records[:20_000] {
			r.TID, r.Accesses = 100+k, r.Accesses/float64(2+k)
			r.Reuses = r.Accesses
			p.Records = append(p.Records, r)
		}
	}
	return p
}

// TestMerged: small samples are summed by pair, object and thread, to the last bit the same on however many cores, and nothing is
// lost of them.
func TestMerged(t *testing.T) {
	p := manySmall()
	// By thread: which pairs are alike is what other tests look at.
	accesses, misses := map[int32]float64{}, map[int32]float64{}
	var first []byte
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, cores := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(cores)
		d, err := New(p, "x", "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		packed, err := pack(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := packed.WriteTo(&got); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got.Bytes()
		} else if !bytes.Equal(got.Bytes(), first) {
			t.Errorf("another answer on %d cores", cores)
		}
		if d.Samples != len(p.Records) || d.Merged == 0 {
			t.Errorf("%d of %d samples, %d merged", d.Samples, len(p.Records), d.Merged)
		}
		clear(accesses)
		clear(misses)
		for i, tid := range d.Cells.TID {
			accesses[tid] += d.Cells.Accesses[i]
			misses[tid] += d.Cells.First[i]
		}
		err = p.MissesAt(d.blocks()[d.First:d.First+1], func(i int, m []float64) {
			r := &p.Records[i]
			for k, c := range d.Caches {
				if c.At == d.First && k < len(r.Misses) {
					m[0] = r.Misses[k]
				}
			}
			accesses[int32(r.TID)] -= r.Accesses
			misses[int32(r.TID)] -= m[0]
		})
		if err != nil {
			t.Fatal(err)
		}
		for tid, v := range accesses {
			if math.Abs(v) > 1e-6 || math.Abs(misses[tid]) > 1e-6 {
				t.Errorf("thread %d has %v accesses and %v misses too many", tid, v, misses[tid])
			}
		}
	}
}

// TestOpening: what a server does before the first picture of a profile with many samples takes so many times the CPU time of
// unpacking the file, whatever the machine is.
func TestOpening(t *testing.T) {
	const mostTimes = 60
	p := manySmall()
	var file bytes.Buffer
	if err := pprofout.Write(&file, p); err != nil {
		t.Fatal(err)
	}
	samples := 0
	unpacking := leastCPU(t, func() error {
		z, err := gzip.NewReader(bytes.NewReader(file.Bytes()))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, z)
		return err
	})
	opening := leastCPU(t, func() error {
		raw, err := pprofout.Read(bytes.NewReader(file.Bytes()))
		if err != nil {
			return err
		}
		samples = len(raw.Records)
		d, err := New(raw, "x", "", Options{})
		if err != nil {
			return err
		}
		if d.Merged == 0 {
			t.Errorf("nothing is merged of %d samples", samples)
		}
		out, err := pack(d)
		if err != nil {
			return err
		}
		_, err = out.WriteTo(io.Discard)
		return err
	})
	times := float64(opening) / float64(unpacking)
	t.Logf("%d samples: %v of CPU time, %.1f times the %v of unpacking", samples, opening, times, unpacking)
	if times > mostTimes {
		t.Errorf("opening takes %.1f times as long as unpacking, at most %v may it take", times, mostTimes)
	}
}

// leastCPU is how much CPU time f takes at least, of a few tries.
func leastCPU(t *testing.T, f func() error) time.Duration {
	t.Helper()
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	least := time.Duration(1<<63 - 1)
	for range 4 {
		before := used()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		least = min(least, used()-before)
	}
	return least
}
