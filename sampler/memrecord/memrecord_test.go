// Needs: nothing; the records come from encoders written from the manuals.
package memrecord

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

func TestDataSrc(t *testing.T) {
	// As PERF_MEM_S and the macros of perf_event.h compose them.
	const (
		load, store     = 1 << 1, 1 << 2 // of mem_op at 0
		lvl             = 5
		hit             = 1 << 1 << lvl
		lock            = 2 << 24
		tlbHit, tlbMiss = 2 << 26, 4 << 26
		tlbL1, tlbL2    = 8 << 26, 16 << 26
		hitm            = 16 << 19
		num             = 33
		remote          = 1 << 37
	)
	for _, tc := range []struct {
		name string
		v    uint64
		want Access
	}{
		{"nothing", 0, Access{}},
		{"load L1", load | 1<<num | tlbHit, Access{Load: true, Level: L1}},
		{"store L2", store | 2<<num, Access{Store: true, Level: L2}},
		{"L3 of this chip", load | 3<<num, Access{Load: true, Level: L3}},
		{"L3 of another", load | 3<<num | remote, Access{Load: true, Level: RemoteCache}},
		{"memory, TLB missed", load | 0xd<<num | tlbMiss, Access{Load: true, Level: Memory, TLBMiss: true}},
		{"memory of another node", load | 0xd<<num | remote, Access{Load: true, Level: RemoteMemory}},
		{"fill buffer", load | 0xc<<num, Access{Load: true, Level: FillBuffer}},
		{"locked", store | 1<<num | lock, Access{Store: true, Level: L1, Locked: true}},
		{"any cache, remote hops", load | 0xb<<num | 2<<43, Access{Load: true, Level: RemoteCache}},
		{"old bits: L1 hit", load | hit | 1<<(lvl+3), Access{Load: true, Level: L1}},
		{"old bits: local memory", load | hit | 1<<(lvl+7), Access{Load: true, Level: Memory}},
		{"old bits: remote cache", load | hit | 1<<(lvl+11), Access{Load: true, Level: RemoteCache}},
		{"TLB of the second level", load | 1<<num | tlbHit | tlbL2, Access{Load: true, Level: L1, TLBMiss: true}},
		{"TLB of either level", load | 1<<num | tlbHit | tlbL1 | tlbL2, Access{Load: true, Level: L1}},
		{"changed by another core", load | 3<<num | hitm, Access{Load: true, Level: L3, Modified: true}},
		{"CXL", load | 9<<num, Access{Load: true, Level: Memory}},
		{"persistent memory of another node", load | 0xe<<num | remote, Access{Load: true, Level: RemoteMemory}},
		{"not available", load | 0xf<<num, Access{Load: true, Level: LevelUnknown}},
	} {
		if got := DataSrc(tc.v); got != tc.want {
			t.Errorf("%s: %#x is %+v, want %+v", tc.name, tc.v, got, tc.want)
		}
	}
}

// ibs encodes an IBS op sample as the kernel does.
func ibs(rip, data2, data3, linear uint64) []byte {
	raw := []byte{1, 2, 3, 4}
	for _, w := range []uint64{0x80000, rip, 0, data2, data3, linear, 0} {
		raw = binary.LittleEndian.AppendUint64(raw, w)
	}
	return raw
}

func TestIBSOp(t *testing.T) {
	const (
		ld, st    = 1 << 0, 1 << 1
		tlbMiss   = 1 << 2
		miss      = 1 << 7
		locked    = 1 << 15
		addrValid = 1 << 17
		l2Miss    = 1 << 20
		prefetch  = 1 << 21
		eight     = 4 << 22
		line      = 7 << 22
		latency   = 32
	)
	base := Access{PC: 0x401000, Addr: 0x7f00_1234, HasAddr: true, Load: true, Size: 8}
	with := func(f func(a *Access)) Access { a := base; f(&a); return a }
	for _, tc := range []struct {
		name         string
		data2, data3 uint64
		want         Access
		memory       bool
	}{
		{"hit", 0, ld | addrValid | eight, with(func(a *Access) { a.Level = L1 }), true},
		{"L2", 0, ld | addrValid | eight | miss | 14<<latency, with(func(a *Access) { a.Level, a.Latency = L2, 14 }), true},
		{"L3", 2, ld | addrValid | eight | miss | l2Miss | 50<<latency, with(func(a *Access) { a.Level, a.Latency = L3, 50 }), true},
		{"memory", 3, ld | addrValid | eight | miss | l2Miss | tlbMiss | 400<<latency,
			with(func(a *Access) { a.Level, a.Latency, a.TLBMiss = Memory, 400, true }), true},
		{"memory of another node", 3 | 1<<4, ld | addrValid | eight | miss | l2Miss, with(func(a *Access) { a.Level = RemoteMemory }), true},
		{"far cache", 5, ld | addrValid | eight | miss | l2Miss, with(func(a *Access) { a.Level = RemoteCache }), true},
		{"extension memory, source of five bits", 1 << 6, ld | addrValid | eight | miss | l2Miss, with(func(a *Access) { a.Level = Memory }), true},
		{"locked add of a line", 0, ld | st | locked | addrValid | line, with(func(a *Access) { a.Store, a.Locked, a.Level, a.Size = true, true, L1, 64 }), true},
		// A store's miss latency means nothing.
		{"store", 0, st | addrValid | eight | miss | 99<<latency, with(func(a *Access) { a.Load, a.Store, a.Level = false, true, L2 }), true},
		{"no address", 0, ld | eight, with(func(a *Access) { a.Addr, a.HasAddr, a.Level = 0, false, L1 }), true},
		{"no memory", 0, addrValid, Access{PC: 0x401000, HasAddr: true}, false},
		{"software prefetch", 0, ld | addrValid | prefetch, Access{PC: 0x401000, Load: true, HasAddr: true}, false},
	} {
		got, memory, err := IBSOp(ibs(0x401000, tc.data2, tc.data3, 0x7f00_1234))
		if err != nil || memory != tc.memory || got != tc.want {
			t.Errorf("%s: %+v, %v, %v, want %+v, %v", tc.name, got, memory, err, tc.want, tc.memory)
		}
	}
	if _, _, err := IBSOp(make([]byte, 59)); err == nil || !strings.Contains(err.Error(), "59 bytes") {
		t.Errorf("a short sample: %v", err)
	}
}

// Packets of SPE.
func spePacket(head byte, bytes int, v uint64) []byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return append([]byte{head}, b[:bytes]...)
}

func speRecord(pc, addr, events uint64, class, op byte, latency uint16) []byte {
	var b []byte
	b = append(b, spePacket(0xb0, 8, pc)...)
	b = append(b, spePacket(0x65, 4, 1234)...) // context
	b = append(b, spePacket(0x52, 2, events)...)
	b = append(b, spePacket(0x48|class, 1, uint64(op))...)
	b = append(b, spePacket(0x98, 2, uint64(latency))...)
	b = append(b, spePacket(0x99, 2, 7)...) // issue latency
	b = append(b, spePacket(0xb2, 8, addr)...)
	return append(b, spePacket(0x71, 8, 99)...)
}

func TestSPE(t *testing.T) {
	const l1, refill, walk, last, lastMiss, remote = 1 << 2, 1 << 3, 1 << 5, 1 << 8, 1 << 9, 1 << 10
	var data []byte
	data = append(data, speRecord(0x40_1000, 0xaa00_ffff_0000_1000, l1, 1, 0, 4)...)
	data = append(data, 0, 0, 0) // padding
	data = append(data, speRecord(0x40_1004, 0x2000, l1|refill|walk|last|lastMiss, 1, 1, 300)...)
	data = append(data, speRecord(0x40_1008, 0x3000, l1|refill|last|lastMiss|remote, 1, 0, 900)...)
	data = append(data, speRecord(0x40_100c, 0, 0, 2, 0, 1)...) // a branch
	data = append(data, 0x20, 0x05)                             // align to 64
	for len(data)%64 != 0 {
		data = append(data, 0xff)
	}
	data = append(data, speRecord(0x40_1010, 0x4000, l1|refill, 1, 0, 9)...)
	data[len(data)-9] = 0x01 // END instead of a timestamp
	data = data[:len(data)-8]
	data = append(data, spePacket(0xb0, 8, 1)...) // a record that goes on elsewhere

	want := []Access{
		{PC: 0x40_1000, Addr: 0xffff_0000_1000, HasAddr: true, Load: true, Level: L1, Latency: 4},
		{PC: 0x40_1004, Addr: 0x2000, HasAddr: true, Store: true, Level: Memory, TLBMiss: true, Latency: 300},
		{PC: 0x40_1008, Addr: 0x3000, HasAddr: true, Load: true, Level: RemoteMemory, Latency: 900},
		{PC: 0x40_1010, Addr: 0x4000, HasAddr: true, Load: true, Level: L2, Latency: 9},
	}
	var got []Access
	r := NewSPE(data)
	for r.Next() {
		if a, memory := r.Access(); memory {
			got = append(got, a)
		}
	}
	if r.Err() != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v, want\n%+v", r.Err(), got, want)
	}
	for _, bad := range []struct {
		data []byte
		says string
	}{
		{[]byte{0xb0, 1, 2}, "ends inside a packet"},
		{[]byte{0x20}, "ends inside a header"},
		{[]byte{0, 0, 0xff, 1, 2, 3, 4, 5, 6, 7, 8}, "0xff at byte 2"},
	} {
		r := NewSPE(bad.data)
		if r.Next() || r.Err() == nil || !strings.Contains(r.Err().Error(), bad.says) {
			t.Errorf("%x: %v, want %q", bad.data, r.Err(), bad.says)
		}
	}
}

func FuzzSPE(f *testing.F) {
	f.Add(speRecord(1, 2, 4, 1, 0, 5))
	f.Add([]byte{0x20, 0x05, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewSPE(data)
		n := 0
		for r.Next() {
			if a, memory := r.Access(); memory && a.Load == a.Store {
				t.Errorf("neither load nor store, or both: %+v", a)
			}
			_ = r.access.Level.String()
			if n++; n > len(data) {
				t.Fatal("more records than bytes")
			}
		}
	})
}

func FuzzIBSOp(f *testing.F) {
	f.Add(ibs(1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, memory, err := IBSOp(raw)
		if memory && (err != nil || !a.Load && !a.Store) {
			t.Errorf("%+v, %v", a, err)
		}
		_ = a.Level.String()
	})
}

func FuzzDataSrc(f *testing.F) {
	f.Add(uint64(0x68100142))
	f.Fuzz(func(t *testing.T, v uint64) { _ = DataSrc(v).Level.String() })
}

func TestSource(t *testing.T) {
	for _, tc := range []struct {
		a    Access
		want string
	}{
		{Access{}, "unknown"},
		{Access{Level: L1}, "L1"},
		{Access{Level: RemoteCache, Modified: true}, "remote cache, modified by another core"},
		{Access{Level: Memory, TLBMiss: true, Locked: true}, "memory, TLB miss, locked"},
	} {
		if got := tc.a.Source(); got != tc.want {
			t.Errorf("%+v is %q, want %q", tc.a, got, tc.want)
		}
	}
}
