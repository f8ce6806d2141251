//go:build amd64

// Needs: watchpoint (TestSampleLayoutsLive); the others read testdata.
package sampler

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/sampler/memrecord"
)

// The kernel lays a sample out by the bits of sample_type. What it writes for
// every combination of those that rdx uses is recorded in testdata, from a
// watchpoint on a word, by
//
//	go test -run SampleLayoutsLive ./sampler -args -record
//
// (as root, on any machine with watchpoints), and decoded here by the order of
// fields that perf_event_open(2) gives.
var record = flag.Bool("record", false, "write what the kernel says to "+layoutFile)

const layoutFile = "testdata/samples.txt"

// layoutBits are those of the sources with addresses; IBS adds the raw data.
var layoutBits = []uint64{unix.PERF_SAMPLE_IP, unix.PERF_SAMPLE_TID, unix.PERF_SAMPLE_ADDR,
	unix.PERF_SAMPLE_RAW, unix.PERF_SAMPLE_WEIGHT, unix.PERF_SAMPLE_DATA_SRC}

// layoutTruth is what is known of the access sampled.
type layoutTruth struct {
	pid, tid uint32
	addr     uint64
	from, to uint64 // its instruction is before the IP, which is in there
}

// sample is the fields of one, zero where sample_type has none.
type sample struct {
	ip, addr, weight, dataSrc uint64
	pid, tid                  uint32
	raw                       []byte
}

// decodeSample reads the body of a PERF_RECORD_SAMPLE to its last byte.
func decodeSample(sampleType uint64, body []byte) (s sample, err error) {
	has := func(bit uint64) bool { return sampleType&bit != 0 }
	word := func() uint64 {
		if len(body) < 8 {
			err = fmt.Errorf("ends inside a field")
			return 0
		}
		w := binary.NativeEndian.Uint64(body)
		body = body[8:]
		return w
	}
	if has(unix.PERF_SAMPLE_IP) {
		s.ip = word()
	}
	if has(unix.PERF_SAMPLE_TID) {
		w := word()
		s.pid, s.tid = uint32(w), uint32(w>>32)
	}
	if has(unix.PERF_SAMPLE_ADDR) {
		s.addr = word()
	}
	if has(unix.PERF_SAMPLE_RAW) && len(body) >= 4 {
		n := int(binary.NativeEndian.Uint32(body))
		if n < 4 || (4+n)%8 != 0 || 4+n > len(body) {
			return s, fmt.Errorf("raw data of %d bytes where %d are left", n, len(body)-4)
		}
		s.raw, body = body[4:4+n], body[4+n:]
	}
	if has(unix.PERF_SAMPLE_WEIGHT) {
		s.weight = word()
	}
	if has(unix.PERF_SAMPLE_DATA_SRC) {
		s.dataSrc = word()
	}
	if err == nil && len(body) > 0 {
		err = fmt.Errorf("%d bytes left", len(body))
	}
	return s, err
}

// checkSample compares a sample, field by field, with what is known.
func checkSample(t *testing.T, sampleType uint64, body []byte, truth layoutTruth) {
	t.Helper()
	s, err := decodeSample(sampleType, body)
	if err != nil {
		t.Errorf("sample type %#x: %v in %x", sampleType, err, body)
		return
	}
	ipOK := s.ip >= truth.from && s.ip < truth.to
	want := sample{ip: s.ip, pid: truth.pid, tid: truth.tid, addr: truth.addr, dataSrc: s.dataSrc, raw: make([]byte, 4)}
	for bit, absent := range map[uint64]func(){
		unix.PERF_SAMPLE_IP:       func() { want.ip, ipOK = 0, true },
		unix.PERF_SAMPLE_TID:      func() { want.pid, want.tid = 0, 0 },
		unix.PERF_SAMPLE_ADDR:     func() { want.addr = 0 },
		unix.PERF_SAMPLE_RAW:      func() { want.raw = nil },
		unix.PERF_SAMPLE_DATA_SRC: func() { want.dataSrc = 0 },
	} {
		if sampleType&bit == 0 {
			absent()
		}
	}
	if !reflect.DeepEqual(s, want) || !ipOK {
		t.Errorf("sample type %#x: %+v, want %+v with an IP from %#x to %#x", sampleType, s, want, truth.from, truth.to)
	}
	// Of this event the processor says nothing, which the kernel says of each part.
	const notAvailable = 1 | 1<<5 | 1<<19 | 1<<24 | 1<<26
	if a := memrecord.DataSrc(s.dataSrc); a != (memrecord.Access{}) || want.dataSrc != 0 && s.dataSrc&notAvailable != notAvailable {
		t.Errorf("sample type %#x: data source %#x is %+v", sampleType, s.dataSrc, a)
	}
}

// layoutTypes are all combinations.
func layoutTypes() []uint64 {
	types := []uint64{0}
	for _, bit := range layoutBits {
		for _, have := range types {
			types = append(types, have|bit)
		}
	}
	return types
}

func TestSampleLayouts(t *testing.T) {
	b, err := os.ReadFile(layoutFile)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[uint64]bool)
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var sampleType uint64
		var truth layoutTruth
		var text string
		if _, err := fmt.Sscanf(line, "%v %d %d %v %v %v %s", &sampleType, &truth.pid, &truth.tid, &truth.addr, &truth.from, &truth.to, &text); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		recorded, err := hex.DecodeString(text)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		// The header: kind, flags, size.
		if kind, size := binary.LittleEndian.Uint32(recorded), binary.LittleEndian.Uint16(recorded[6:]); kind != unix.PERF_RECORD_SAMPLE || int(size) != len(recorded) {
			t.Errorf("a record of kind %d and %d bytes, there are %d", kind, size, len(recorded))
		}
		checkSample(t, sampleType, recorded[8:], truth)
		seen[sampleType] = true
	}
	for _, want := range layoutTypes() {
		if !seen[want] {
			t.Errorf("no sample of type %#x", want)
		}
	}
	if all := preciseSample | unix.PERF_SAMPLE_RAW; !seen[preciseSample] || !seen[uint64(all)] {
		t.Error("what rdx asks for is not among them")
	}
}

// The kernel that the test runs on writes the same.
func TestSampleLayoutsLive(t *testing.T) {
	needs.Watchpoints(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	word := &newWords()[0].word
	// The function that touches the word is not this long.
	const code = 128
	start := uint64(reflect.ValueOf(touchWord).Pointer())
	truth := layoutTruth{uint32(unix.Getpid()), uint32(unix.Gettid()), uint64(uintptr(unsafe.Pointer(word))), start, start + code}
	var out strings.Builder
	fmt.Fprintln(&out, "# sample_type, pid, tid, address, the instruction's function from and to, and the record, as the kernel wrote it (see layout_test.go)")
	for _, sampleType := range layoutTypes() {
		written := sampleOnce(t, sampleType, word)
		checkSample(t, sampleType, written[8:], truth)
		fmt.Fprintf(&out, "%#x %d %d %#x %#x %#x %x\n", sampleType, truth.pid, truth.tid, truth.addr, truth.from, truth.to, written)
	}
	if *record && !t.Failed() {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(layoutFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sampleOnce has the kernel write the sample of one access to the word, and
// returns the whole record.
func sampleOnce(t *testing.T, sampleType uint64, word *atomic.Uint64) []byte {
	t.Helper()
	attr := samplingAttr(Event{Type: unix.PERF_TYPE_BREAKPOINT, Config1: uint64(uintptr(unsafe.Pointer(word))), Config2: WordSize})
	attr.Bp_type = breakpointRW
	attr.Sample, attr.Sample_type = 1, sampleType
	fd, err := perfOpen(&attr, unix.Gettid(), -1)
	if err != nil {
		t.Skip("needs watchpoints:", err)
	}
	ev := event{fd: fd}
	defer ev.close()
	ring, err := openRing(fd, unix.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	defer ring.close()
	if err := ev.ioctl(unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		t.Fatal(err)
	}
	touchWord(word, 1)
	if err := ev.ioctl(unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
		t.Fatal(err)
	}
	written := bytes.Clone(ring.data[:ring.word(pageDataHead).Load()])
	n := 0
	if err := ring.read(func(kind uint32, b []byte) error {
		if kind != unix.PERF_RECORD_SAMPLE || !bytes.Equal(b, written[8:]) {
			return fmt.Errorf("a record of kind %d: %x, in the ring is %x", kind, b, written)
		}
		n++
		return nil
	}); err != nil || n != 1 {
		t.Fatalf("%d samples of one access, %v", n, err)
	}
	return written
}
