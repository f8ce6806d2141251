package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/rdx-profiler/rdx/model"
)

// readText returns the accesses, and the bad lines as messages.
func readText(r AccessReader) (accesses []model.Access, bad []string, err error) {
	for r.Next() {
		a, b := r.Record()
		if (a == nil) == (b == nil) {
			panic("not exactly one of access and bad line")
		}
		if b != nil {
			bad = append(bad, b.Error())
			continue
		}
		accesses = append(accesses, *a)
	}
	return accesses, bad, r.Err()
}

func TestPlainReader(t *testing.T) {
	const trace = `# comment
0x10
16
18446744073709551615, W
 0xfffffffffffffff8 r 8

0 W 4 # another
0x20 16
0x20,L,16,3,0x401000
	7	store	1	12
`
	want := []model.Access{
		{Addr: 16, Size: 1},
		{Addr: 16, Size: 1},
		{Addr: 1<<64 - 1, Size: 1, Op: model.Store},
		{Addr: 1<<64 - 8, Size: 8, Op: model.Load},
		{Addr: 0, Size: 4, Op: model.Store},
		{Addr: 32, Size: 16},
		{Addr: 32, Size: 16, Op: model.Load, Thread: 3, PC: 0x401000},
		{Addr: 7, Size: 1, Op: model.Store, Thread: 12},
	}
	for name, text := range map[string]string{"unix": trace, "dos": strings.ReplaceAll(trace, "\n", "\r\n"), "no last newline": strings.TrimSuffix(trace, "\n")} {
		got, bad, err := readText(NewPlainReader(strings.NewReader(text), "t"))
		if err != nil || bad != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v, bad %q, %v", name, got, bad, err)
		}
	}
}

func TestPlainReaderBadLines(t *testing.T) {
	for _, line := range []string{
		"x", "0x", "-1", "1.5", "18446744073709551616", "0x10000000000000000", "99999999999999999999999", "1e3",
		"1 X", "1 R x", "1 R 0", "1 R -1", "1 R 1048577", "1 R 99999999999999999999",
		"1 R 1 -1", "1 R 1 2147483648", "1 R 1 1 zz", "1 R 1 1 1 1", "0xffffffffffffffff r 2", "18446744073709551609,8", "1,", "1,,R", ",1", ",", "1 R W", "0x1g", "é",
		strings.Repeat("1", 5000), strings.Repeat("1 ", 100_000),
	} {
		got, bad, err := readText(NewPlainReader(strings.NewReader("1\n"+line+"\n2\n"), "t.txt"))
		if err != nil || len(got) != 2 || len(bad) != 1 || !strings.HasPrefix(bad[0], "t.txt:2: ") || len(bad[0]) > 300 {
			t.Errorf("%.40q: %+v, bad %.100q, %v", line, got, bad, err)
		}
	}
	for line, want := range map[string]string{"1 Q 8": "neither R or W", "1 9z": "size is not", "1 R Q": "size is not"} {
		if _, bad, _ := readText(NewPlainReader(strings.NewReader(line), "t.txt")); len(bad) != 1 || !strings.Contains(bad[0], want) {
			t.Errorf("%q: bad %q, want %q", line, bad, want)
		}
	}
}

func TestLackeyReader(t *testing.T) {
	const trace = `==8910== Lackey, an example Valgrind tool
==8910== 
 L 00001000,4
I  0401ab70,3
I  0401ab73,5
 S 1fff0005e8,8
--8910-- a warning
 M 0421e190,4
I  04025d31,10
 L fffffffffffffff0,16
 S 00000000,1
**8910** print
==8910== Exit code:       0
`
	want := []model.Access{
		{Addr: 0x1000, Size: 4, Op: model.Load},
		{Addr: 0x1fff0005e8, Size: 8, Op: model.Store, PC: 0x401ab73},
		{Addr: 0x421e190, Size: 4, Op: model.Load, PC: 0x401ab73},
		{Addr: 0x421e190, Size: 4, Op: model.Store, PC: 0x401ab73},
		{Addr: 1<<64 - 16, Size: 16, Op: model.Load, PC: 0x4025d31},
		{Addr: 0, Size: 1, Op: model.Store, PC: 0x4025d31},
	}
	got, bad, err := readText(NewLackeyReader(strings.NewReader(trace), "t"))
	if err != nil || bad != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, bad %q, %v", got, bad, err)
	}
}

func TestLackeyReaderBadLines(t *testing.T) {
	for _, line := range []string{
		"hello", " L", " L ", " L 10", " L 10,", " L ,4", " L xyz,4", " L 10,0", " L 10,1048577", " L 10,x", " L -10,4",
		" L 10000000000000000,4", " L fffffffffffffffd,4", " M ffffffffffffffff,2", " X 10,4", "I  ,3", "I  10", "I  zz,3", "L 10,4", "  L 10,4", "==89x== message", "=", "== 89==",
		" S 10,4 trailing", " L " + strings.Repeat("0", 5000) + "1,4", strings.Repeat("=", 100_000),
	} {
		got, bad, err := readText(NewLackeyReader(strings.NewReader(" L 10,4\n"+line+"\n S 20,4\n"), "t.lk"))
		if err != nil || len(got) != 2 || len(bad) != 1 || !strings.HasPrefix(bad[0], "t.lk:2: ") {
			t.Errorf("%.40q: %+v, bad %.100q, %v", line, got, bad, err)
		}
	}
}

func gzippedText(t testing.TB, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOpenTrace(t *testing.T) {
	lackey, plain := "I  0401ab70,3\n L 10,4\n", "0x10 R 4\n"
	for name, text := range map[string]string{
		"lackey": lackey, "lackey with header": "==1== Lackey\n" + lackey, "lackey from an access": " L 10,4\n",
		"lackey after empty lines": "\n\n" + lackey, "plain": plain, "plain after a comment": "# x\n" + plain,
	} {
		for _, data := range [][]byte{[]byte(text), gzippedText(t, text)} {
			r, err := OpenText(bytes.NewReader(data), name)
			if err != nil {
				t.Fatal(err)
			}
			got, bad, err := readText(r)
			if err != nil || bad != nil || len(got) != 1 || got[0].Addr != 16 || got[0].Size != 4 || got[0].Op != model.Load {
				t.Errorf("%s: %+v, bad %q, %v", name, got, bad, err)
			}
		}
	}
	for _, data := range [][]byte{nil, gzippedText(t, ""), []byte("\n\n")} {
		r, err := OpenText(bytes.NewReader(data), "empty")
		if err != nil {
			t.Fatal(err)
		}
		if got, bad, err := readText(r); got != nil || bad != nil || err != nil {
			t.Errorf("empty trace: %v, %q, %v", got, bad, err)
		}
	}
}

// A compressed trace that is cut anywhere ends in an error that says so, and
// never in a made-up access.
func TestOpenTraceTruncated(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var text strings.Builder
	var want []uint64
	for range 3000 {
		a := r.Uint64()
		want = append(want, a)
		fmt.Fprintf(&text, "%#x R 8\n", a)
	}
	whole := gzippedText(t, text.String())
	for cut := 2; cut < len(whole); cut += 1 + r.IntN(50) {
		tr, err := OpenText(bytes.NewReader(whole[:cut]), "t.gz")
		var got []model.Access
		if err == nil {
			var bad []string
			got, bad, err = readText(tr)
			if bad != nil {
				t.Fatalf("cut at %d: bad lines %q", cut, bad)
			}
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "truncated") || !strings.HasPrefix(err.Error(), "t.gz: ") {
			t.Fatalf("cut at %d of %d: error %v", cut, len(whole), err)
		}
		for i, a := range got {
			if a.Addr != want[i] {
				t.Fatalf("cut at %d: access %d is at %#x, want %#x", cut, i, a.Addr, want[i])
			}
		}
	}
	whole[len(whole)/2] ^= 0x55
	tr, err := OpenText(bytes.NewReader(whole), "t.gz")
	if err == nil {
		_, _, err = readText(tr)
	}
	if err == nil {
		t.Error("a damaged file is read without an error")
	}
}

func TestTraceReadError(t *testing.T) {
	broken := errors.New("broken disk")
	for _, r := range []AccessReader{
		NewPlainReader(io.MultiReader(strings.NewReader("1\n2"), iotest.ErrReader(broken)), "t"),
		NewLackeyReader(io.MultiReader(strings.NewReader(" L 10,4\n L 1"), iotest.ErrReader(broken)), "t"),
	} {
		got, bad, err := readText(r)
		if len(got) != 1 || bad != nil || !errors.Is(err, broken) || !strings.Contains(err.Error(), "after line 1") {
			t.Errorf("%v, bad %q, %v", got, bad, err)
		}
	}
}

func TestReadAccesses(t *testing.T) {
	const text = "1\n2\nx\n3\n4\n"
	stop := errors.New("stop")
	for _, strict := range []bool{false, true} {
		r := NewPlainReader(iotest.OneByteReader(strings.NewReader(text)), "t")
		nbad := 0
		bad := func(b *BadLine) error {
			nbad++
			if strict {
				return stop
			}
			return nil
		}
		buf := make([]model.Access, 3)
		n, err := ReadAccesses(r, buf, bad)
		if strict {
			if n != 2 || err != stop {
				t.Errorf("strict: %d, %v", n, err)
			}
			continue
		}
		if n != 3 || err != nil || nbad != 1 || buf[2].Addr != 3 {
			t.Errorf("lenient: %d, %v, %d bad", n, err, nbad)
		}
		if n, err = ReadAccesses(r, buf, bad); n != 1 || err != io.EOF || buf[0].Addr != 4 {
			t.Errorf("lenient, second: %d, %v", n, err)
		}
	}
}

// fuzzReader checks what holds for any input: it ends, records are whole,
// line numbers rise, and reading in pieces changes nothing.
func fuzzReader(t *testing.T, data []byte, open func(io.Reader) (AccessReader, error)) {
	read := func(in io.Reader) string {
		r, err := open(in)
		if err != nil {
			return err.Error()
		}
		var out strings.Builder
		line := 0
		for r.Next() {
			a, b := r.Record()
			if b != nil {
				if a != nil || b.Line <= line || b.Reason == "" {
					t.Fatalf("bad line %+v after line %d", b, line)
				}
				line = b.Line
				fmt.Fprintln(&out, b)
				continue
			}
			if a.Size < 1 || a.Size > maxAccessSize || a.Thread < 0 {
				t.Fatalf("access %+v", a)
			}
			fmt.Fprintln(&out, *a)
		}
		if r.Next() {
			t.Fatal("a record after the last one")
		}
		return fmt.Sprint(out.String(), r.Err())
	}
	if whole, pieces := read(bytes.NewReader(data)), read(iotest.OneByteReader(bytes.NewReader(data))); whole != pieces {
		t.Fatalf("read in pieces:\n%s\nat once:\n%s", pieces, whole)
	}
}

func FuzzPlainReader(f *testing.F) {
	f.Add([]byte("0x10 R 8\n17,W\n# c\nx\n18446744073709551616\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzReader(t, data, func(r io.Reader) (AccessReader, error) { return NewPlainReader(r, "t"), nil })
	})
}

func FuzzLackeyReader(f *testing.F) {
	f.Add([]byte("==1== x\nI  0401ab70,3\n M 10,4\n S 20,8\n L ,\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzReader(t, data, func(r io.Reader) (AccessReader, error) { return NewLackeyReader(r, "t"), nil })
	})
}

func FuzzOpenTrace(f *testing.F) {
	f.Add([]byte("0x10 R 8\n"))
	f.Add(gzippedText(f, " L 10,4\n"))
	f.Add(gzippedText(f, " L 10,4\n")[:20])
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzReader(t, data, func(r io.Reader) (AccessReader, error) { return OpenText(r, "t") })
	})
}

func BenchmarkLackeyReader(b *testing.B) {
	text := []byte(strings.Repeat("I  0401ab73,5\n S 1fff0005e8,8\n L 0421e190,4\n", 1000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewLackeyReader(bytes.NewReader(text), "t")
		for r.Next() {
		}
	}
}

// What is no text is said to be that, and what unpacks it, instead of a line of it being shown.
func TestOpenTextRefusesBinary(t *testing.T) {
	packed := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, s)
		z.Close()
		return b.String()
	}
	for _, c := range []struct{ data, want string }{
		{"\xfd7zXZ\x00\x00\x04", "xz -dc"}, {"\x28\xb5\x2f\xfd\x84", "zstd -dc"}, {"BZh91AY&SY", "bzip2 -dc"}, {packed(packed("8\n")), "gzip -dc"},
		{packed("RDXTRACE\x03\x00"), "gzip -d"}, {"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00", "neither text"}, {packed("\x12Q\x0a\x04\x01\x02\x03\x04"), "neither text"},
		{packed("\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03"), "a profile, not a trace"},
	} {
		_, err := OpenText(strings.NewReader(c.data), "x")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsFunc(err.Error(), func(r rune) bool { return r == 0 || r == utf8.RuneError || r == '\n' }) {
			t.Errorf("%q: %v, want %q", c.data, err, c.want)
		}
	}
	for _, text := range []string{"", "8\n", "# größer\n0x10 R 8\n", packed("8 W\n")} {
		if _, err := OpenText(strings.NewReader(text), "x"); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
