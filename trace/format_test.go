package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rdx-profiler/rdx/model"
)

// memory is a file that may be of limited size.
type memory struct {
	b     []byte
	limit int // bytes, 0 for none
}

var errFull = errors.New("no space left on device")

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	var err error
	if m.limit > 0 && int(at)+len(p) > m.limit {
		p, err = p[:max(m.limit-int(at), 0)], errFull // a disk takes what it has room for
	}
	if n := int(at) + len(p); n > len(m.b) {
		m.b = append(m.b, make([]byte, n-len(m.b))...)
	}
	return copy(m.b[at:], p), err
}

func (m *memory) Truncate(size int64) error {
	m.b = m.b[:size]
	return nil
}

func open(t testing.TB, b []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readAll checks that the numbers follow one another, gaps allowed.
func readAll(t testing.TB, r *Reader) (numbers []uint64, all []model.Access) {
	t.Helper()
	end := uint64(0)
	for {
		first, b, err := r.Next()
		if err == io.EOF {
			return numbers, all
		}
		if err != nil {
			t.Fatal(err)
		}
		if first < end {
			t.Fatalf("batch begins with access %d, the one before ended with %d", first, end)
		}
		end = first + uint64(len(b))
		for i := range b {
			numbers = append(numbers, first+uint64(i))
		}
		all = append(all, b...)
	}
}

// someAccesses has loops, random addresses and thread changes.
func someAccesses(rng *rand.Rand, n, threads int) []model.Access {
	as := make([]model.Access, 0, n)
	thread := int32(100)
	for len(as) < n {
		if rng.Intn(50) == 0 {
			thread = 100 + int32(rng.Intn(threads))
		}
		pc := uint64(0x400000 + rng.Intn(40)*3)
		op := model.Load
		if pc%2 == 0 {
			op = model.Store
		}
		addr := uint64(rng.Int63n(1 << 47))
		if rng.Intn(4) > 0 {
			addr = 0x7000_0000 + uint64(len(as))*8
		}
		for range 1 + rng.Intn(20) {
			as = append(as, model.Access{Addr: addr, PC: pc, Thread: thread, Size: 1 << (pc % 5), Op: op})
			addr += 8
		}
	}
	return as[:n]
}

func write(t testing.TB, as []model.Access, h Header) []byte {
	t.Helper()
	m := &memory{}
	w, err := NewWriter(m, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(as); err != nil {
		t.Fatal(err)
	}
	s, err := w.Close(Summary{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Accesses != uint64(len(as)) {
		t.Fatalf("summary says %d accesses of %d", s.Accesses, len(as))
	}
	return m.b
}

func TestAccessesComeBackAsWritten(t *testing.T) {
	const seed = 1
	as := someAccesses(rand.New(rand.NewSource(seed)), 3_000_000, 5)
	b := write(t, as, Header{Command: []string{"a", "b"}})
	r := open(t, b)
	if got := r.Header().Command; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("command %q", got)
	}
	_, got := readAll(t, r)
	if !slices.Equal(got, as) {
		t.Errorf("seed %d: differs at %s", seed, firstDifference(got, as))
	}
	if len(r.Damage()) != 0 {
		t.Error(r.Damage())
	}
	t.Logf("%d bytes, %.2f per access", len(b), float64(len(b))/float64(len(as)))
}

// Only sections with many repetitions are packed.
func TestPacker(t *testing.T) {
	p, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	rng := rand.New(rand.NewSource(3))
	nibbles, random, repeated := make([]byte, 4*sampleLeast), make([]byte, 4*sampleLeast), make([]byte, 4*sampleLeast)
	for i := range random {
		nibbles[i], random[i], repeated[i] = byte(rng.Intn(16)), byte(rng.Intn(256)), byte(i/100)
	}
	for _, c := range []struct {
		name   string
		b      []byte
		method byte
	}{
		{"random", random, storedPlain}, {"half as many bits", nibbles, storedPlain}, {"repeated", repeated, storedZstd},
		{"short, repeated", repeated[:1000], storedZstd}, {"short, random", random[:1000], storedPlain}, {"empty", nil, storedPlain},
	} {
		p.plain[0] = 0
		packed, method := p.pack(c.b)
		if method != c.method || method == storedPlain && len(packed) != len(c.b) || method == storedZstd && len(packed) >= len(c.b) {
			t.Errorf("%s: %d bytes as %d by method %d, want %d", c.name, len(c.b), len(packed), method, c.method)
		}
	}
}

func firstDifference(a, b []model.Access) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%d: %+v, want %+v", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("the end: %d, want %d", len(a), len(b))
}

func TestManyThreads(t *testing.T) {
	const seed = 2
	as := someAccesses(rand.New(rand.NewSource(seed)), 400_000, 10*maxOpen)
	r := open(t, write(t, as, Header{}))
	if _, got := readAll(t, r); !slices.Equal(got, as) {
		t.Errorf("seed %d: differs at %s", seed, firstDifference(got, as))
	}
	want := map[int32]uint64{}
	for _, a := range as {
		want[a.Thread]++
	}
	for _, th := range r.Threads() {
		if th.Accesses != want[th.ID] {
			t.Errorf("thread %d: %d accesses, want %d", th.ID, th.Accesses, want[th.ID])
		}
	}
	r.Only(105)
	var only []model.Access
	for _, a := range as {
		if a.Thread == 105 {
			only = append(only, a)
		}
	}
	if _, got := readAll(t, r); !slices.Equal(got, only) {
		t.Errorf("seed %d: thread alone differs at %s", seed, firstDifference(got, only))
	}
}

func TestSeek(t *testing.T) {
	const seed = 3
	as := someAccesses(rand.New(rand.NewSource(seed)), 2_500_000, 3)
	r := open(t, write(t, as, Header{}))
	for _, n := range []int{0, 1, 12345, blockAccesses - 1, blockAccesses, 2_499_999, 2_500_000, 9_999_999} {
		r.Seek(uint64(n))
		numbers, got := readAll(t, r)
		if want := as[min(n, len(as)):]; !slices.Equal(got, want) {
			t.Errorf("seed %d: from %d: differs at %s", seed, n, firstDifference(got, want))
		}
		if len(numbers) > 0 && numbers[0] != uint64(n) {
			t.Errorf("from %d: begins with %d", n, numbers[0])
		}
	}
}

// numberOf is a number for a segment, the nth one: one of those whose entries are
// short, if they can be and n is even.
func numberOf(n, words int) uint32 {
	if words <= shortWords && n%2 == 0 {
		return uint32(n*(shortWords+1) + max(words, 1))
	}
	return uint32(wordFirstSegment + n*(shortWords+1))
}

// appendEntry appends an entry of a segment.
func appendEntry(w []uint64, number uint32, words []uint64) []uint64 {
	if number%(shortWords+1) == 0 {
		return append(append(w, uint64(number)|uint64(len(words))<<32), words...)
	}
	if len(words) == 0 {
		return append(w, uint64(number))
	}
	return append(append(w, uint64(number)|words[0]<<shortAddress), words[1:]...)
}

// randomStream builds what the engine would write: random segments, entered at
// random by several threads, with guarded accesses and faults.
func randomStream(rng *rand.Rand, entries int) []uint64 {
	var w []uint64
	mark := func(kind uint64, body ...uint64) {
		w = append(append(w, kind|uint64(len(body))<<32), body...)
	}
	const n = 30
	words := make([]int, n)
	sites := make([]int, n)
	guarded := make([]bool, n)
	pcs := make([]uint64, n)
	mark(wordThread, 7)
	for s := range n {
		sites[s] = 1 + rng.Intn(9)
		pcs[s] = uint64(0x1000 * (s + 1))
		var body []uint64
		for i := range sites[s] {
			a := pcs[s] + uint64(4*i) | uint64(1<<rng.Intn(6))<<pcBits | uint64(rng.Intn(4))<<siteOpsShift
			b := uint64(baseNewWord) << offsetBits
			switch {
			case words[s] > 0 && rng.Intn(2) == 0:
				b = uint64(rng.Intn(words[s]))<<offsetBits | uint64(rng.Int63n(1<<52))&(1<<offsetBits-1)
			case rng.Intn(4) == 0:
				b = uint64(baseNone)<<offsetBits | 0x601000
			default:
				words[s]++
				if rng.Intn(5) == 0 {
					a |= siteGuarded << siteOpsShift
					guarded[s] = true
				}
			}
			body = append(body, a, b)
		}
		mark(wordDefine, append([]uint64{uint64(numberOf(s, words[s])) | uint64(sites[s])<<32}, body...)...)
	}
	at := make([]uint64, n)
	s := 0
	for range entries {
		if rng.Intn(3) == 0 {
			s = rng.Intn(n)
		} else {
			s = (s + 1) % n
		}
		var entry []uint64
		for range words[s] {
			at[s] += 16
			v := at[s]
			switch rng.Intn(6) {
			case 0:
				v = rng.Uint64() >> rng.Intn(64)
			case 1:
				if guarded[s] {
					v = 0
				}
			}
			entry = append(entry, v)
		}
		w = appendEntry(w, numberOf(s, words[s]), entry)
		switch rng.Intn(200) {
		case 0:
			mark(wordFault, pcs[s]+uint64(4*rng.Intn(sites[s]+1)))
		case 1:
			mark(wordThread, uint64(7+rng.Intn(3)))
		}
	}
	mark(wordEnd)
	return w
}

func TestStreamIsRecordedAsItIsRun(t *testing.T) {
	const seed = 4
	w := randomStream(rand.New(rand.NewSource(seed)), 600_000)
	var want []model.Access
	b := newBatcher(func(a []model.Access) { want = append(want, a...) })
	var d decoder
	if _, err := d.buffer(w, false, b); err != nil {
		t.Fatal(err)
	}
	b.flush()
	m := &memory{}
	wr, err := NewWriter(m, Header{})
	if err != nil {
		t.Fatal(err)
	}
	to, _ := recorder{wr}.open(1)
	d = decoder{}
	if _, err := d.buffer(w, false, to); err != nil {
		t.Fatal(err)
	}
	if !d.ended {
		t.Error("the end was not seen")
	}
	if s, err := wr.Close(Summary{}); err != nil || s.Accesses != uint64(len(want)) {
		t.Errorf("%+v, %v, want %d accesses", s, err, len(want))
	}
	r := open(t, m.b)
	if _, got := readAll(t, r); !slices.Equal(got, want) {
		t.Errorf("seed %d: differs at %s", seed, firstDifference(got, want))
	}
	if len(r.Damage()) > 0 {
		t.Error(r.Damage())
	}
}

// Parts that are encoded at the same time come in the order of the stream, also
// where a segment's number is given to another one meanwhile.
func TestPartsAreInOrder(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewSource(seed))
	var want []model.Access
	b := newBatcher(func(a []model.Access) { want = append(want, a...) })
	m := &memory{}
	w, err := NewWriter(m, Header{})
	if err != nil {
		t.Fatal(err)
	}
	r := recorder{w}
	to, _ := r.open(1)
	var run, recorded decoder
	freed, words := 0, 0
	var mu sync.Mutex
	for range 10 {
		s := randomStream(rng, 150_000)
		words += len(s)
		if _, err := run.buffer(s, false, b); err != nil {
			t.Fatal(err)
		}
		if _, err := recorded.buffer(s, false, to); err != nil {
			t.Fatal(err)
		}
		r.after(func() {
			clear(s) // nobody may read it any more
			mu.Lock()
			freed++
			mu.Unlock()
		})
	}
	b.flush()
	if words < 3*partWords {
		t.Fatalf("%d words are not several parts", words)
	}
	if s, err := w.Close(Summary{}); err != nil || s.Accesses != uint64(len(want)) {
		t.Errorf("%+v, %v, want %d accesses", s, err, len(want))
	}
	if freed != 10 {
		t.Errorf("%d buffers came back of 10", freed)
	}
	if _, got := readAll(t, open(t, m.b)); !slices.Equal(got, want) {
		t.Errorf("seed %d: differs at %s", seed, firstDifference(got, want))
	}
}

// After an exec a process has another stream, in which a number is another segment's;
// in a stream, too, a segment may be described anew.
func TestNumbersMeanAnotherSegment(t *testing.T) {
	entries := func(pc uint64) []uint64 {
		w := []uint64{wordThread | 1<<32, 7, wordDefine | 3<<32, 5 | 1<<32, pc | 8<<pcBits | siteLoad<<siteOpsShift, baseNewWord << offsetBits}
		for i := range uint64(100) {
			w = append(w, 5|i<<shortAddress)
		}
		return w
	}
	m := &memory{}
	w, err := NewWriter(m, Header{})
	if err != nil {
		t.Fatal(err)
	}
	r := recorder{w}
	var want []model.Access
	b := newBatcher(func(a []model.Access) { want = append(want, a...) })
	for exec := range uint64(2) {
		to, _ := r.open(7)
		var run, recorded decoder
		for again := range uint64(2) {
			words := entries(0x1000 + exec<<4 + again<<8)
			if _, err := run.buffer(words, false, b); err != nil {
				t.Fatal(err)
			}
			if _, err := recorded.buffer(words, false, to); err != nil {
				t.Fatal(err)
			}
			r.after(func() {})
		}
	}
	b.flush()
	if _, err := w.Close(Summary{}); err != nil {
		t.Fatal(err)
	}
	if _, got := readAll(t, open(t, m.b)); !slices.Equal(got, want) || len(got) != 400 {
		t.Errorf("differs at %s", firstDifference(got, want))
	}
}

func TestBadStream(t *testing.T) {
	define := []uint64{wordDefine | 3<<32, wordFirstSegment | 1<<32, 8<<pcBits | siteLoad<<siteOpsShift, baseNewWord << offsetBits}
	for name, w := range map[string][]uint64{
		"never described":      {100, 0},
		"999 was never":        {999 | 7<<shortAddress, 0, 0},
		"unknown kind":         {wordTime + 4},
		"buffer ends after 1":  append(slices.Clone(define), wordFirstSegment|1<<32),
		"that has 2":           append(slices.Clone(define), wordFirstSegment|2<<32, 1, 2),
		"number is not one of": {wordDefine | 3<<32, 6 | 1<<32, 8<<pcBits | siteLoad<<siteOpsShift, baseNewWord << offsetBits},
		"segment 65537":        {wordDefine | 3<<32, 65537 | 1<<32, 8<<pcBits | siteLoad<<siteOpsShift, baseNewWord << offsetBits},
		"buffer ends after 2":  {wordDefine | 7<<32, 7 | 3<<32, 0, baseNewWord << offsetBits, 0, baseNewWord << offsetBits, 0, baseNewWord << offsetBits, 7, 0},
		"words of kind":        {wordThread | 5<<32, 1},
		"relative to word":     {wordDefine | 3<<32, wordFirstSegment | 1<<32, 0, 7 << offsetBits},
		"description of":       {wordDefine | 2<<32, wordFirstSegment | 1<<32, 0},
		"thread of 0 words":    {wordThread},
		"without a word":       {wordDefine | 3<<32, wordFirstSegment | 1<<32, siteGuarded << siteOpsShift, baseNone << offsetBits},
		"empty segment desc":   {wordDefine},
	} {
		var d decoder
		if _, err := d.buffer(w, false, newBatcher(func([]model.Access) {})); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := recorded(t, w); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v of a recording", name, err)
		}
	}
}

// recorded is the error of recording a stream.
func recorded(t *testing.T, words []uint64) error {
	w, err := NewWriter(&memory{}, Header{})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := recorder{w}.open(1)
	var d decoder
	_, err = d.buffer(words, false, s)
	if _, cerr := w.Close(Summary{}); err == nil {
		err = cerr
	}
	return err
}

// damaged is a trace of three blocks of one thread.
func damaged(t *testing.T) (as []model.Access, b []byte, at []int64) {
	as = someAccesses(rand.New(rand.NewSource(5)), 3*blockAccesses-1000, 1)
	b = write(t, as, Header{})
	for _, i := range open(t, b).blocks {
		at = append(at, i.offset)
	}
	if len(at) != 3 {
		t.Fatalf("%d blocks", len(at))
	}
	return as, b, at
}

func TestBadBlockLosesOnlyItself(t *testing.T) {
	as, b, at := damaged(t)
	for _, where := range []int64{at[1] + blockHeaderBytes + 1000, at[1] + 20} {
		c := slices.Clone(b)
		c[where] ^= 1
		r := open(t, c)
		numbers, got := readAll(t, r)
		want := slices.Concat(as[:blockAccesses], as[2*blockAccesses:])
		if !slices.Equal(got, want) {
			t.Errorf("byte %d: differs at %s", where, firstDifference(got, want))
		}
		if numbers[blockAccesses] != 2*blockAccesses {
			t.Errorf("byte %d: behind the gap comes access %d, want %d", where, numbers[blockAccesses], 2*blockAccesses)
		}
		if d := r.Damage(); len(d) != 1 || d[0].Offset != at[1] {
			t.Errorf("byte %d: damage %v, want one at %d", where, d, at[1])
		}
	}
}

func TestCutShort(t *testing.T) {
	as, b, at := damaged(t)
	for _, size := range []int64{at[2] + 5000, at[2] + 10, int64(len(b)) - 1} {
		r := open(t, b[:size])
		_, got := readAll(t, r)
		want := as[:2*blockAccesses]
		if size == int64(len(b))-1 {
			want = as
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d bytes: differs at %s", size, firstDifference(got, want))
		}
		if len(r.Damage()) == 0 || len(r.Summary().Partial) == 0 {
			t.Errorf("%d bytes: nothing reported", size)
		}
	}
	// without the index, and a damaged block header in the middle
	c := slices.Clone(b[:at[2]+5000])
	c[at[1]+3] ^= 1
	r := open(t, c)
	if _, got := readAll(t, r); !slices.Equal(got, as[:blockAccesses]) {
		t.Errorf("differs at %s", firstDifference(got, as[:blockAccesses]))
	}
	if d := r.Damage(); len(d) < 2 || d[1].Offset != at[1] {
		t.Errorf("damage %v, want one at %d", d, at[1])
	}
}

func TestNoTrace(t *testing.T) {
	b := write(t, someAccesses(rand.New(rand.NewSource(6)), 100, 1), Header{Writer: "v9 (x)"})
	contents := b[fileFixed : fileFixed+int(binary.LittleEndian.Uint32(b[12:]))]
	of := func(version uint32) []byte {
		c := slices.Clone(b)
		binary.LittleEndian.PutUint32(c[8:], version)
		sum := crc32.Checksum(contents, crcTable)
		if version >= checkedVersion {
			sum = headerSum(c[8:16], contents)
		}
		binary.LittleEndian.PutUint32(c[16:], sum)
		return c
	}
	for want, b := range map[string][]byte{
		"not an rdx trace": []byte("hello"),
		`from another version of rdx ("v9 (x)"): in version 1 of the format, this rdx reads version 3: record it anew`: of(1),
		"version 2 of the format, this rdx reads version 3: record it anew":                                            of(2),
		"version 4 of the format, this rdx reads version 3: read it with a newer rdx":                                  of(4),
		"unexpected EOF": b[:fileFixed+2],
	} {
		if _, err := NewReader(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	// A damaged header is not taken for one of another version.
	for bit := 8 * len(fileMagic); bit < 8*(fileFixed+len(contents)); bit++ {
		c := slices.Clone(b)
		c[bit/8] ^= 1 << (bit % 8)
		if _, err := NewReader(bytes.NewReader(c), int64(len(c))); err == nil || strings.Contains(err.Error(), "version") ||
			!strings.Contains(err.Error(), "damaged") && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("byte %d, bit %d: error %v", bit/8, bit%8, err)
		}
	}
}

// A block of another version is no block of this one, even if all its checksums are right.
func TestBlockOfAnotherVersion(t *testing.T) {
	as, b, at := damaged(t)
	for _, version := range []byte{0, fileVersion - 1, fileVersion + 1} {
		c := slices.Clone(b)
		h := c[at[1] : at[1]+blockHeaderBytes]
		h[5] = version
		binary.LittleEndian.PutUint32(h[blockHeaderBytes-4:], crc32.Checksum(h[:blockHeaderBytes-4], crcTable))
		r := open(t, c)
		if _, got := readAll(t, r); !slices.Equal(got, slices.Concat(as[:blockAccesses], as[2*blockAccesses:])) {
			t.Errorf("version %d: %d accesses, want all but those of one block", version, len(got))
		}
		want := fmt.Sprintf("another version of rdx: in version %d of the format, this rdx reads version %d", version, fileVersion)
		if d := r.Damage(); len(d) != 1 || !strings.Contains(d[0].Reason, want) {
			t.Errorf("version %d: damage %v", version, d)
		}
	}
}

// anywhere is loads of random addresses, which take the most room.
func anywhere(n int) []model.Access {
	rng := rand.New(rand.NewSource(7))
	as := make([]model.Access, n)
	for i := range as {
		as[i] = model.Access{Addr: uint64(rng.Int63()), PC: 1, Thread: 1, Size: 8, Op: model.Load}
	}
	return as
}

func TestMaxSizeKeepsTheNewest(t *testing.T) {
	const maxSize = 4 * blockBytes
	as := anywhere(6_000_000)
	b := write(t, as, Header{MaxSize: maxSize})
	if len(b) > maxSize+1<<16 {
		t.Errorf("%d bytes, want at most about %d", len(b), maxSize)
	}
	r := open(t, b)
	numbers, got := readAll(t, r)
	if len(got) == 0 {
		t.Fatal("nothing left")
	}
	if want := as[numbers[0]:]; !slices.Equal(got, want) {
		t.Errorf("differs at %s", firstDifference(got, want))
	}
	s := r.Summary()
	if s.Dropped != numbers[0] || s.Accesses != uint64(len(as)) || len(s.Partial) != 1 || len(r.Damage()) != 0 {
		t.Errorf("first is access %d: %+v, %v", numbers[0], s, r.Damage())
	}
	// Without the index: what can still be found, in order, and no more.
	r = open(t, b[:len(b)-1])
	_, again := readAll(t, r)
	if len(again) < len(got) || !slices.Equal(again[len(again)-len(got):], got) {
		t.Errorf("without the index %d accesses, want %d or more", len(again), len(got))
	}
}

// However much room the last block leaves on a disk that fills up, the index
// finds some.
func TestFullDisk(t *testing.T) {
	as := someAccesses(rand.New(rand.NewSource(8)), 4*blockAccesses, 1)
	m := &memory{}
	w, err := NewWriter(m, Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(as); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(Summary{}); err != nil {
		t.Fatal(err)
	}
	whole := len(m.b)
	var ends []int // of blocks
	for _, b := range w.live {
		ends = append(ends, int(b.offset)+blockHeaderBytes+int(b.size))
	}
	last := ends[len(ends)-1]
	limits := []int{whole / 2, whole - 1, whole - trailerBytes, last, last + 1}
	for _, room := range []int{-1, 0, 1, 200, 1000} {
		limits = append(limits, ends[2]+room)
	}
	for _, limit := range limits {
		m := &memory{limit: limit}
		w, err := NewWriter(m, Header{})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(as)
		s, cerr := w.Close(Summary{})
		if !errors.Is(cerr, errFull) || err != nil && !errors.Is(err, errFull) {
			t.Errorf("%d bytes: errors %v, %v", limit, err, cerr)
		}
		if len(s.Partial) == 0 {
			t.Errorf("%d bytes: not marked as partial", limit)
		}
		r := open(t, m.b)
		_, got := readAll(t, r)
		if len(got) < blockAccesses || uint64(len(got)) != s.Accesses || !slices.Equal(got, as[:len(got)]) {
			t.Errorf("%d bytes: %d accesses back, the summary says %d", limit, len(got), s.Accesses)
		}
		if len(r.Damage()) != 0 || r.Summary().Accesses != s.Accesses || len(r.Summary().Partial) == 0 {
			t.Errorf("%d bytes: damage %v, summary %+v", limit, r.Damage(), r.Summary())
		}
		if fit := sort.SearchInts(ends, limit+1); len(got) < min(fit-1, len(ends)-1)*blockAccesses {
			t.Errorf("%d bytes: %d accesses back of %d blocks", limit, len(got), fit)
		}
	}
}

// A file that has gone back to its start, and then no room behind it for the
// index: what is left is the newest, without a gap.
func TestFullDiskAfterMaxSize(t *testing.T) {
	const maxSize = 4 * blockBytes
	as := anywhere(9_000_000)
	for n := len(as) - 4*blockAccesses; n <= len(as); n += blockAccesses {
		b := write(t, as[:n], Header{MaxSize: maxSize})
		want, _ := readAll(t, open(t, b))
		m := &memory{limit: len(b) - 1}
		w, err := NewWriter(m, Header{MaxSize: maxSize})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(as[:n]); err != nil {
			t.Fatal(err)
		}
		s, err := w.Close(Summary{})
		if !errors.Is(err, errFull) {
			t.Errorf("error %v", err)
		}
		r := open(t, m.b)
		numbers, got := readAll(t, r)
		if len(got) < blockAccesses/2 || len(got) >= len(want) {
			t.Fatalf("%d of %d accesses back", len(got), len(want))
		}
		if at := numbers[0]; s.Dropped != at || s.Accesses != at+uint64(len(got)) || !slices.Equal(got, as[at:s.Accesses]) {
			t.Errorf("%d accesses from %d, the summary says %d and %d", len(got), at, s.Accesses, s.Dropped)
		}
		if len(r.Damage()) != 0 || len(s.Partial) != 2 {
			t.Errorf("damage %v, %q", r.Damage(), s.Partial)
		}
		t.Logf("%d accesses: %d of %d kept, %d dropped", n, len(got), len(want), s.Dropped)
	}
}

func FuzzReader(f *testing.F) {
	rng := rand.New(rand.NewSource(9))
	f.Add(write(f, someAccesses(rng, 100, 3), Header{Command: []string{"x"}}))
	m := &memory{}
	w, err := NewWriter(m, Header{})
	if err != nil {
		f.Fatal(err)
	}
	to, _ := recorder{w}.open(1)
	var d decoder
	if _, err := d.buffer(randomStream(rng, 100), false, to); err != nil {
		f.Fatal(err)
	}
	w.Close(Summary{})
	f.Add(m.b)
	f.Add(m.b[:len(m.b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		n := 0
		for {
			_, batch, err := r.Next()
			if err != nil {
				break
			}
			n += len(batch)
		}
		most := uint64(0)
		for _, th := range r.Threads() {
			most += th.Accesses
		}
		if uint64(n) > most {
			t.Errorf("%d accesses from blocks of %d", n, most)
		}
	})
}

// seedBlock is a block to start fuzzing from: how many accesses it has, and its
// bytes.
func seedBlock(f *testing.F, seed int64) (accesses uint32, payload []byte) {
	w, err := NewWriter(&memory{}, Header{})
	if err != nil {
		f.Fatal(err)
	}
	defer w.Close(Summary{})
	to, _ := recorder{w}.open(1)
	var d decoder
	if _, err := d.buffer(randomStream(rand.New(rand.NewSource(seed)), 100), false, to); err != nil {
		f.Fatal(err)
	}
	p, err := newPart(w)
	if err != nil {
		f.Fatal(err)
	}
	defer p.packer.close()
	for _, s := range w.taken {
		if err := p.entries(s); err != nil {
			f.Fatal(err)
		}
	}
	b := p.order[0]
	n := b.accesses
	b.close(p.accesses)
	return uint32(n), b.payload(nil, p.packer)
}

// FuzzBlock gets past the checksums.
func FuzzBlock(f *testing.F) {
	n, payload := seedBlock(f, 10)
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<20))
	if err != nil {
		f.Fatal(err)
	}
	defer z.Close()
	f.Add(n, payload)
	f.Fuzz(func(t *testing.T, n uint32, payload []byte) {
		if len(payload) > 1<<20 {
			return
		}
		n %= maxBlockAccesses
		s, _, err := unpack(z, payload, nil)
		if err != nil {
			return
		}
		r, err := openBlock(blockInfo{accesses: n}, s)
		if err != nil {
			return
		}
		dst := make([]model.Access, 2*maxSites)
		total := 0
		for {
			if _, err := r.run(); err != nil {
				break
			}
			for {
				k, err := r.next(dst)
				if err != nil || k == 0 {
					break
				}
				total += k
			}
		}
		if total > int(n) {
			t.Errorf("%d accesses from a block of %d", total, n)
		}
	})
}
