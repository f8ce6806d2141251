// Needs: nothing; the rings are made up.
package sampler

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/memrecord"
)

// speLoad is one record of a load, as the extension writes it.
func speLoad(addr uint64) []byte {
	b := []byte{0x49, 0x00, 0x52, 0x04, 0x00, 0xb2} // a load; L1 accessed; its address
	b = binary.LittleEndian.AppendUint64(b, addr)
	return append(b, 0x01)
}

type fakeRing struct{ auxRing }

func newFakeRing(data, aux int) *fakeRing {
	// Aligned, as words that are read atomically must be.
	page := unsafe.Slice((*byte)(unsafe.Pointer(new([512]uint64))), 4096)
	return &fakeRing{auxRing{eventRing{page: page, data: make([]byte, data)}, make([]byte, aux)}}
}

func put(ring []byte, at uint64, b []byte) {
	for i, c := range b {
		ring[(at+uint64(i))%uint64(len(ring))] = c
	}
}

// record appends to the ring what the kernel would.
func (r *fakeRing) record(kind uint32, fields ...uint64) {
	b := binary.NativeEndian.AppendUint32(nil, kind)
	b = binary.NativeEndian.AppendUint16(b, 0)
	b = binary.NativeEndian.AppendUint16(b, uint16(8+8*len(fields)))
	for _, f := range fields {
		b = binary.NativeEndian.AppendUint64(b, f)
	}
	head := r.word(pageDataHead)
	put(r.data, head.Load(), b)
	head.Add(uint64(len(b)))
}

// trace appends to the aux buffer and says so.
func (r *fakeRing) trace(flags uint64, b []byte) {
	head := r.word(pageAuxHead)
	from := head.Load()
	put(r.aux, from, b)
	head.Add(uint64(len(b)))
	r.record(unix.PERF_RECORD_AUX, from, uint64(len(b)), flags)
}

func TestAuxRing(t *testing.T) {
	r := newFakeRing(256, 64)
	var got []uint64
	next := uint64(0x1000)
	// Many times around both rings, records torn by their ends included.
	for round := range 100 {
		var want []uint64
		var b []byte
		for range 1 + round%4 {
			b = append(b, speLoad(next)...)
			want = append(want, next)
			next += 8
		}
		r.trace(0, b)
		got = nil
		s, err := r.read(func(a memrecord.Access) { got = append(got, a.Addr) })
		if err != nil || s.Records != len(want) || s.Memory != len(want) || s.Bad != 0 {
			t.Fatalf("round %d: %+v, %v", round, s, err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("round %d: %#x, want %#x", round, got, want)
			}
		}
		if r.word(pageDataTail).Load() != r.word(pageDataHead).Load() || r.word(pageAuxTail).Load() != r.word(pageAuxHead).Load() {
			t.Fatal("the space was not given back")
		}
	}
	r.record(unix.PERF_RECORD_LOST, 1, 7)
	r.record(unix.PERF_RECORD_ITRACE_START, 1)
	r.trace(auxCollision, speLoad(8))
	r.trace(auxTruncated, append(speLoad(16), 0xff)) // no packet
	s, err := r.read(func(memrecord.Access) {})
	if want := (auxStats{Records: 2, Memory: 2, Truncated: 1, Collisions: 1, Lost: 7, Bad: 1}); err != nil || s != want {
		t.Errorf("%+v, %v, want %+v", s, err, want)
	}
}

func TestAuxRingBad(t *testing.T) {
	for _, tc := range []struct {
		spoil func(r *fakeRing)
		says  string
	}{
		{func(r *fakeRing) { r.word(pageDataHead).Store(4) }, "less than a record's header"},
		{func(r *fakeRing) { r.word(pageDataHead).Store(64) }, "record of 0 bytes"},
		{func(r *fakeRing) { r.record(unix.PERF_RECORD_AUX, 0, 1<<40, 0) }, "new bytes in a buffer"},
		{func(r *fakeRing) {
			r.record(unix.PERF_RECORD_LOST, 1, 2)
			binary.NativeEndian.PutUint16(r.data[6:], 999)
		}, "record of 999 bytes"},
	} {
		r := newFakeRing(256, 64)
		tc.spoil(r)
		if _, err := r.read(func(memrecord.Access) {}); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%v, want %q", err, tc.says)
		}
	}
}

func FuzzAuxRing(f *testing.F) {
	r := newFakeRing(256, 64)
	r.trace(0, speLoad(0x1000))
	f.Add(uint64(32), r.data[:32], r.aux[:15])
	f.Fuzz(func(t *testing.T, head uint64, data, aux []byte) {
		r := newFakeRing(256, 64)
		copy(r.data, data)
		copy(r.aux, aux)
		r.word(pageDataHead).Store(head % 512)
		n := 0
		s, _ := r.read(func(memrecord.Access) { n++ })
		if s.Memory != n || s.Memory > s.Records {
			t.Errorf("%+v, %d accesses", s, n)
		}
	})
}

// The kernel's side is played by arbitrary bytes: traces of any content and
// length, at any place in the ring, in any number before they are read, with
// flags and records between. What was written must be read, once, in order, and
// all space be given back.
func FuzzAuxReader(f *testing.F) {
	f.Add(uint64(0), []byte("\x01\x00\x0f\x81\x05\x20\x02"))
	f.Add(uint64(1<<40-3), []byte("\x3f\x3f\x00\xff\x3f\x80"))
	f.Fuzz(func(t *testing.T, start uint64, script []byte) {
		r := newFakeRing(512, 64)
		for _, at := range []uintptr{pageDataHead, pageDataTail} {
			r.word(at).Store(start &^ 7 % (1 << 62)) // records are multiples of 8 bytes
		}
		for _, at := range []uintptr{pageAuxHead, pageAuxTail} {
			r.word(at).Store(start % (1 << 62))
		}
		var want []uint64
		var stats auxStats
		next := uint64(0x1000)
		check := func() {
			var got []uint64
			s, err := r.read(func(a memrecord.Access) { got = append(got, a.Addr) })
			if err != nil || s != stats || !slices.Equal(got, want) {
				t.Fatalf("%+v, %v, want %+v; %#x, want %#x", s, err, stats, got, want)
			}
			if r.word(pageDataTail).Load() != r.word(pageDataHead).Load() || r.word(pageAuxTail).Load() != r.word(pageAuxHead).Load() {
				t.Fatal("the space was not given back")
			}
			want, stats = nil, auxStats{}
		}
		for _, op := range script {
			room := len(r.data) - int(r.word(pageDataHead).Load()-r.word(pageDataTail).Load())
			free := len(r.aux) - int(r.word(pageAuxHead).Load()-r.word(pageAuxTail).Load())
			n := int(op & 3)
			if room < 32 || free < n*len(speLoad(0))+1 || op&0xc0 == 0x40 {
				check()
			}
			if op&0xc0 == 0x80 {
				r.record(unix.PERF_RECORD_LOST, 1, uint64(n))
				stats.Lost += uint64(n)
				continue
			}
			var b []byte
			for range n {
				b = append(b, speLoad(next)...)
				want = append(want, next)
				next += 8
			}
			stats.Records += n
			stats.Memory += n
			var flags uint64
			if op&4 != 0 {
				flags |= auxTruncated
				stats.Truncated++
			}
			if op&8 != 0 {
				flags |= auxCollision
				stats.Collisions++
			}
			if op&16 != 0 {
				b = append(b, 0xff) // no packet: the rest of this trace is lost, not the next one's
				stats.Bad++
			}
			r.trace(flags, b)
		}
		check()
	})
}

func TestSPEEvent(t *testing.T) {
	spe := map[string]string{"type": "12", "format/load_filter": "config:33", "format/store_filter": "config:34", "format/jitter": "config:16"}
	m := Machine{cpuinfo("", 0, 0), pmuFiles(map[string]map[string]string{"arm_spe_0": spe})}
	a, err := m.speEvent()
	if err != nil {
		t.Fatal(err)
	}
	if word(a, atConfig) != 1<<33|1<<34|1<<16 || word(a, 0)&0xffffffff != 12 || word(a, atPeriod) < 2000 ||
		word(a, atBits)&bitExcludeKernel == 0 || word(a, atBits)&bitDisabled == 0 {
		t.Errorf("config %#x, type %d, period %d, bits %#x", word(a, atConfig), word(a, 0)&0xffffffff, word(a, atPeriod), word(a, atBits))
	}
	if _, err := (Machine{cpuinfo("", 0, 0), pmuFiles(nil)}).speEvent(); err == nil {
		t.Error("SPE without a device")
	}
}
