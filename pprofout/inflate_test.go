package pprofout

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"testing"

	faster "github.com/klauspost/compress/gzip"
)

// inflated are texts of all kinds: of one byte, repeated near and far, random, with few and with many letters.
func inflated(rng *rand.Rand) []byte {
	n := rng.IntN(1 << rng.IntN(19))
	b := make([]byte, 0, n+300)
	letters := 1 + rng.IntN(256)
	skewed := rng.IntN(2) == 0
	for len(b) < n {
		if len(b) > 0 && rng.IntN(4) == 0 {
			from := len(b) - 1 - rng.IntN(min(len(b), 1<<rng.IntN(16)))
			for range 3 + rng.IntN(300) {
				b = append(b, b[from])
				from++
			}
			continue
		}
		c := rng.IntN(letters)
		if skewed {
			c = rng.IntN(1 + c)
		}
		b = append(b, byte(c))
	}
	return b
}

// TestGunzip: what two packers make of whatever there is, at all levels, is unpacked; what is cut off, changed, or does not fit is
// not said to be so.
func TestGunzip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 400 {
		data := inflated(rng)
		level := gzip.HuffmanOnly + i%12
		var packed bytes.Buffer
		var z io.WriteCloser
		if i%2 == 0 {
			z, _ = gzip.NewWriterLevel(&packed, level)
		} else {
			z, _ = faster.NewWriterLevel(&packed, level)
		}
		half := rng.IntN(len(data) + 1)
		z.Write(data[:half])
		if f, ok := z.(interface{ Flush() error }); ok && i%3 == 0 {
			f.Flush()
		}
		z.Write(data[half:])
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		p := packed.Bytes()
		out := make([]byte, len(data)+rng.IntN(2)*rng.IntN(600))
		if n, ok := gunzip(p, out); !ok || !bytes.Equal(out[:n], data) {
			t.Fatalf("%d bytes at level %d: %v, %d bytes", len(data), level, ok, n)
		}
		if len(data) > 0 {
			if _, ok := gunzip(p, out[:rng.IntN(len(data))]); ok {
				t.Errorf("%d bytes at level %d: no room, and it is ok", len(data), level)
			}
		}
		if _, ok := gunzip(p[:rng.IntN(len(p))], out); ok {
			t.Errorf("%d bytes at level %d: cut off, and it is ok", len(data), level)
		}
		if _, ok := gunzip(append(bytes.Clone(p), p...), out); ok {
			t.Error("two members are ok")
		}
		broken := bytes.Clone(p)
		broken[10+rng.IntN(len(p)-10)] ^= 1 << rng.IntN(8)
		if n, ok := gunzip(broken, out); ok && !bytes.Equal(out[:n], data) {
			t.Errorf("%d bytes at level %d: changed, and it is ok", len(data), level)
		}
	}
}

// FuzzGunzip: whatever it is given, it neither fails nor says other than the standard library.
func FuzzGunzip(f *testing.F) {
	for _, level := range []int{0, 1, 9, gzip.HuffmanOnly} {
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, level)
		z.Write([]byte("abcabcabcabcabcabdefghijklmnopqrstuvwxyz, abcabc"))
		z.Close()
		f.Add(packed.Bytes())
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		out := make([]byte, 1<<16)
		n, ok := gunzip(packed, out)
		if !ok {
			return
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := io.ReadAll(z); err != nil || !bytes.Equal(out[:n], want) {
			t.Errorf("%d bytes, want %d: %v", n, len(want), err)
		}
	})
}

func BenchmarkGunzip(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var data []byte
	for len(data) < 4<<20 {
		data = append(data, inflated(rng)...)
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, 2)
	z.Write(data)
	z.Close()
	out := make([]byte, len(data))
	b.Run("memory", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, ok := gunzip(packed.Bytes(), out); !ok {
				b.Fatal("it is not ok")
			}
		}
	})
	b.Run("reader", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			z, _ := faster.NewReader(bytes.NewReader(packed.Bytes()))
			if n, err := io.ReadFull(z, out); n != len(out) {
				b.Fatal(err)
			}
		}
	})
}
