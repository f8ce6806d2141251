package pprofout

import (
	"bytes"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// TestDropped: memory of what was read goes before all is read, which changes neither the profile nor what is said of a broken one.
func TestDropped(t *testing.T) {
	_, out := write(t, sampleProfile())
	var raw bytes.Buffer
	if err := out.WriteUncompressed(&raw); err != nil {
		t.Fatal(err)
	}
	data := raw.Bytes()
	from := splitSamples(data, 1)
	some := data[from.at[0]:from.at[from.samples-1]]
	var samples []byte
	for len(samples) < leastDropped {
		samples = append(samples, some...)
	}
	whole := slices.Concat(samples, from.rest)
	broken := slices.Clone(whole)
	broken[len(samples)-2*passedAtOnce] ^= 0xff // in what a part that is in between reads
	for _, data := range [][]byte{whole, broken} {
		want, wrong := Read(bytes.NewReader(data))
		for _, parts := range []int{1, 3} {
			u, err := unpack(packed(t, data))
			if err != nil {
				t.Fatal(err)
			}
			if runtime.GOOS == "linux" && !u.room.has(u.data) {
				t.Fatal("it is in memory that can't be given back")
			}
			dropped := 0
			s := splitSamples(u.data, leastPart)
			s.passed = func(b []byte) int {
				n := u.drop(b)
				dropped += n
				return n
			}
			if parts > 1 { // dropped is one's
				s.passed = u.drop
			}
			got, err := readSamples(u.data, s, parts)
			u.free()
			if wrong == nil && (err != nil || !reflect.DeepEqual(got, want)) {
				t.Errorf("%d parts: another profile, or none: %v", parts, err)
			}
			if wrong != nil && err == nil {
				t.Errorf("%d parts: no error, want %v", parts, wrong)
			}
			if parts == 1 && wrong == nil && dropped < len(samples)/2 {
				t.Errorf("%d of %d bytes were dropped", dropped, len(samples))
			}
		}
		if wrong == nil {
			continue
		}
		_, err := Read(bytes.NewReader(packed(t, data)))
		if err == nil || len(err.Error()) < len(wrong.Error()) {
			t.Errorf("of what was packed: %v, want that %v", err, wrong)
		}
	}
}

// leastDropped is more than is worth memory of its own.
const leastDropped = 20 << 20

func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.NoCompression) // what packs well has no such memory
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
