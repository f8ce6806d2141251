package interp

import (
	"encoding/binary"
	"slices"
	"testing"
)

// batches is a memory that counts calls.
type batches struct {
	pages
	one, many int
	refused   uint64
}

func (b *batches) ReadPage(addr uint64, buf *[pageSize]byte) error {
	b.one++
	return b.pages.ReadPage(addr, buf)
}

func (b *batches) ReadPages(addrs []uint64, bufs []*[4096]byte) int {
	b.many++
	for i, a := range addrs {
		if a == b.refused || b.pages.ReadPage(a, bufs[i]) != nil {
			return i
		}
	}
	return len(addrs)
}

// jumps is a thread that loads from pages of its own number, eight bytes of each.
func jumps(t *testing.T, m *Machine, mem Memory, rsi uint64) (read int, values []uint64) {
	r, _ := target(t, "")
	r.GPR[RSI] = rsi
	m.Start(r, mem)
	read = m.Prefetch(1)
	for range 20 {
		if end := m.Run(Limit{Accesses: 1, Instructions: 4}); end.Cause != AccessesDone {
			t.Fatalf("%+v", end)
		}
		values = append(values, m.r[RAX])
	}
	return read, values
}

// What a burst touched is read ahead in one call by the next, as it is by then, and
// forgotten when it is no longer touched; what can't be read any more is left out.
func TestPrefetch(t *testing.T) {
	mem := &batches{pages: pages{}}
	mem.put(codeBase, code(t, "48ad 4881c6f80f0000 ebf5")) // lodsq; add rsi, 4088; jmp
	for i := range uint64(60) {
		mem.put(dataBase+i*pageSize, binary.LittleEndian.AppendUint64(nil, i))
	}
	count := func(from uint64) (v []uint64) {
		for i := range uint64(20) {
			v = append(v, from+i)
		}
		return v
	}
	m := New()
	if read, v := jumps(t, m, mem, dataBase); read != 0 || mem.one != 21 || mem.many != 0 || !slices.Equal(v, count(0)) {
		t.Fatalf("first burst: %d read, %+v, %d", read, mem, v)
	}
	for range 4 {
		jumps(t, m, mem, dataBase)
	}
	mem.one, mem.many = 0, 0
	mem.put(dataBase+7*pageSize, []byte{77})
	want := count(0)
	want[7] = 77
	if read, v := jumps(t, m, mem, dataBase); read != 20 || mem.one != 0 || mem.many != 1 || !slices.Equal(v, want) {
		t.Fatalf("second burst: %d read, %d and %d calls, %d", read, mem.one, mem.many, v)
	}
	// Half of them and some more; one of these is gone.
	mem.one, mem.many = 0, 0
	mem.refused = dataBase + 5*pageSize
	read, v := jumps(t, m, mem, dataBase+10*pageSize)
	if read != 19 || mem.one != 10 || mem.many != 2 || !slices.Equal(v, count(10)) {
		t.Fatalf("third burst: %d read, %d and %d calls, %d", read, mem.one, mem.many, v)
	}
	for range 40 {
		jumps(t, m, mem, dataBase+30*pageSize)
	}
	if read, _ := jumps(t, m, mem, dataBase+30*pageSize); read != 20 || len(m.hints[1].all) != 21 || len(m.hints[1].index) != 21 {
		t.Errorf("in the end %d read, %d remembered", read, len(m.hints[1].all))
	}
	// A burst without Prefetch neither reads ahead nor counts.
	r, _ := target(t, "")
	r.GPR[RSI] = dataBase
	mem.one, mem.many = 0, 0
	m.Start(r, mem)
	m.Run(Limit{Accesses: 1, Instructions: 1})
	if mem.many != 0 || mem.one != 2 {
		t.Errorf("without Prefetch: %d calls and %d", mem.one, mem.many)
	}
	if read, _ := jumps(t, m, mem, dataBase+30*pageSize); read != 20 {
		t.Errorf("after one without: %d read", read)
	}
	if m.Start(r, mem.pages); m.Prefetch(1) != 0 {
		t.Error("a memory that reads pages one by one was read ahead")
	}
	scores := &hints{index: make(map[uint64]int32)}
	p := []*page{{num: 1, touched: true}}
	for range 1000 {
		scores.remember(p)
	}
	if scores.all[0].score < 240 {
		t.Errorf("a page that every burst touches scores %d", scores.all[0].score)
	}
}

// No page is read ahead beyond what the machine holds, nor remembered without bound.
func TestPrefetchBounds(t *testing.T) {
	mem := &batches{pages: pages{}}
	mem.put(codeBase, code(t, "48ad 4881c6f80f0000 ebf5"))
	for i := range uint64(3000) {
		mem.put(dataBase+i*pageSize, []byte{1})
	}
	r, _ := target(t, "")
	r.GPR[RSI] = dataBase
	m := New()
	for range 3 {
		m.Start(r, mem)
		if n := m.Prefetch(1); n > MaxBatch {
			t.Errorf("%d pages read ahead", n)
		}
		if end := m.Run(Limit{Accesses: 2500, Instructions: 1e6}); end.Cause != AccessesDone {
			t.Fatalf("%+v", end)
		}
	}
	if len(m.hints[1].all) > maxHints {
		t.Errorf("%d pages remembered", len(m.hints[1].all))
	}
}

// Code is not read again, and it is seen afterwards where it had changed; then it is read each time.
func TestKeptCode(t *testing.T) {
	mem := &batches{pages: pages{}}
	program := "48ad 4881c6f80f0000 ebf5" // lodsq; add rsi, 4088; jmp
	mem.put(codeBase, code(t, program))
	for i := range uint64(60) {
		mem.put(dataBase+i*pageSize, binary.LittleEndian.AppendUint64(nil, i))
	}
	m := New()
	burst := func() (read int, same bool) {
		read, _ = jumps(t, m, mem, dataBase)
		return read, m.Unchanged()
	}
	for i := range 8 {
		read, same := burst()
		if !same {
			t.Errorf("burst %d: code is said to have changed", i)
		}
		if want := 20; i > 5 && read != want { // the data
			t.Errorf("burst %d: %d pages read ahead, want %d", i, read, want)
		}
	}
	mem.one = 0
	burst()
	if mem.one != 0 {
		t.Errorf("%d pages are read one by one", mem.one)
	}
	mem.put(codeBase, code(t, "48ad 4881c6f80f0000 90 ebf4"))
	if _, same := burst(); same {
		t.Error("code has changed, and nobody sees it")
	}
	for range 8 {
		read, same := burst()
		if !same || read > 21 {
			t.Errorf("%d pages read, %v", read, same)
		}
	}
	if read, _ := burst(); read != 21 {
		t.Errorf("%d pages are read, want the code's, too", read)
	}
	// Of code that can't be looked at again nothing is kept.
	m = New()
	mem.put(codeBase, code(t, program))
	for range 8 {
		burst()
	}
	mem.refused = codeBase
	if _, same := burst(); !same || len(m.hints[1].code) != 0 || !m.hints[1].changed[codeBase/pageSize] {
		t.Errorf("%v, %d pages kept", same, len(m.hints[1].code))
	}
}

// What a burst stores to a page with code that is kept is gone in the next one, and is no change of the code.
func TestStoreToKeptCode(t *testing.T) {
	mem := &batches{pages: pages{}}
	mem.put(codeBase, code(t, "48ad 488907 ebf9")) // lodsq; mov [rdi], rax; jmp
	mem.put(codeBase+0x800, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	mem.put(dataBase, binary.LittleEndian.AppendUint64(nil, 42))
	m := New()
	for i := range 30 {
		r, _ := target(t, "")
		r.GPR[RSI], r.GPR[RDI] = dataBase, dataBase+0x800
		if i >= 8 && i%2 == 0 {
			r.GPR[RDI] = codeBase + 0x800
		}
		m.Start(r, mem)
		m.Prefetch(1)
		if i >= 8 && !m.Holds(codeBase) {
			t.Errorf("burst %d: code is not kept", i)
		}
		if got := m.Peek(codeBase+0x800, 8); got != 0x0807060504030201 {
			t.Errorf("burst %d begins with %#x", i, got)
		}
		if end := m.Run(Limit{Accesses: 2, Instructions: 4}); end.Cause != AccessesDone {
			t.Fatalf("%+v", end)
		}
		if got := m.Peek(r.GPR[RDI], 8); got != 42 {
			t.Errorf("burst %d: %#x was stored", i, got)
		}
		if i%3 == 0 {
			m.Rewind(r)
		}
		if !m.Unchanged() {
			t.Errorf("burst %d: code is said to have changed", i)
		}
		if i%5 == 0 {
			m.Drop()
		}
	}
	if n := len(m.pool); n > 8 {
		t.Errorf("%d pages in the pool", n)
	}
}

// stepped is a memory that reads pages in steps, and notes which.
type stepped struct {
	batches
	rows [][]uint64
}

func (s *stepped) ReadStepped(addrs []uint64, bufs []*[4096]byte) int {
	s.rows = append(s.rows, slices.Clone(addrs))
	return s.ReadPages(addrs, bufs)
}

// Pages that are gone to in steps come several at a time from the third on, also where rows take turns, down or up, and no
// others. Where a row ends at what can't be read, it ends, and what is there is what it should be.
func TestRows(t *testing.T) {
	const middle = dataBase / pageSize // a page's number
	down := func(i uint64) uint64 { return middle + 900 - 3*i }
	up := func(i uint64) uint64 { return middle + 1000 + 2*i }
	turns := func(rows ...func(uint64) uint64) (nums []uint64) {
		for i := range uint64(40) {
			for _, at := range rows {
				nums = append(nums, at(i))
			}
		}
		return nums
	}
	jumping := func(i uint64) uint64 { return middle + i*i*i*i*i%1009 }
	for _, c := range []struct {
		name      string
		nums      []uint64
		refused   uint64 // page
		one, rows int
	}{
		{"up", turns(up), 0, 2, 3}, // 2, 8, 16, 16
		{"down", turns(down), 0, 2, 3},
		{"two in turns", turns(up, down), 0, 4, 6},
		{"four in turns", turns(up, down, func(i uint64) uint64 { return middle + 2000 + i }, func(i uint64) uint64 { return middle + 3000 + 4*i }), 0, 8, 12},
		{"no row", turns(jumping), 0, 40, 0},
		{"its end", turns(up)[:6], up(6), 2, 1},
		{"over an end", append(turns(up)[:6], turns(up)[7:]...), up(6), 2 + 2, 1 + 3}, // 2, 4 of 8, 2, 8, 16, 9 of 16
	} {
		mem := &stepped{batches: batches{pages: pages{}}}
		for num := uint64(middle); num < middle+4000; num++ {
			mem.put(num*pageSize, binary.LittleEndian.AppendUint64(nil, num))
		}
		mem.refused = c.refused * pageSize
		p := NewPages(func(uint64) {})
		p.Reset(mem)
		for _, num := range c.nums {
			if got := p.Peek(num*pageSize, 8); got != num {
				t.Fatalf("%s: page %d has %d", c.name, num, got)
			}
		}
		if mem.one != c.one || len(mem.rows) != c.rows {
			t.Errorf("%s: %d pages one by one and %d rows, want %d and %d: %d", c.name, mem.one, len(mem.rows), c.one, c.rows, mem.rows)
		}
		if p.Reset(mem); p.rows.missed[0] != 0 || p.rows.known[0].step != 0 {
			t.Errorf("%s: the next burst goes on with its rows", c.name)
		}
	}
	// A burst has room for so many.
	mem := &stepped{batches: batches{pages: pages{}}}
	for num := uint64(middle); num < middle+2*maxPages; num++ {
		mem.put(num*pageSize, []byte{1})
	}
	p := NewPages(func(uint64) {})
	p.Reset(mem)
	ok := true
	for num := uint64(middle); ok && num < middle+2*maxPages; num++ {
		ok = p.Load(num*pageSize, make([]byte, 8))
	}
	if ok || p.used != maxPages {
		t.Errorf("%d pages, want %d", p.used, maxPages)
	}
}
