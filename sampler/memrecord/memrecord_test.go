// Needs: nothing; the records come from encoders written from the manuals.
package memrecord

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDataSrc(t *testing.T) {
	// As PERF_MEM_S of perf_event.h composes them.
	const (
		load, store     = unix.PERF_MEM_OP_LOAD << unix.PERF_MEM_OP_SHIFT, unix.PERF_MEM_OP_STORE << unix.PERF_MEM_OP_SHIFT
		lvl             = unix.PERF_MEM_LVL_SHIFT
		hit             = unix.PERF_MEM_LVL_HIT << lvl
		lock            = unix.PERF_MEM_LOCK_LOCKED << unix.PERF_MEM_LOCK_SHIFT
		tlbHit, tlbMiss = unix.PERF_MEM_TLB_HIT << unix.PERF_MEM_TLB_SHIFT, unix.PERF_MEM_TLB_MISS << unix.PERF_MEM_TLB_SHIFT
		tlbL1, tlbL2    = unix.PERF_MEM_TLB_L1 << unix.PERF_MEM_TLB_SHIFT, unix.PERF_MEM_TLB_L2 << unix.PERF_MEM_TLB_SHIFT
		hitm            = unix.PERF_MEM_SNOOP_HITM << unix.PERF_MEM_SNOOP_SHIFT
		num             = unix.PERF_MEM_LVLNUM_SHIFT
		remote          = unix.PERF_MEM_REMOTE_REMOTE << unix.PERF_MEM_REMOTE_SHIFT
		hops            = unix.PERF_MEM_HOPS_SHIFT
		rest            = unix.PERF_MEM_BLK_NA<<unix.PERF_MEM_BLK_SHIFT | unix.PERF_MEM_SNOOPX_FWD<<unix.PERF_MEM_SNOOPX_SHIFT | unix.PERF_MEM_REGION_MEM0<<unix.PERF_MEM_REGION_SHIFT
	)
	for _, tc := range []struct {
		name string
		v    uint64
		want Access
	}{
		{"nothing", 0, Access{}},
		{"what is not decoded", rest, Access{}},
		{"not available", unix.PERF_MEM_OP_NA<<unix.PERF_MEM_OP_SHIFT | unix.PERF_MEM_LVL_NA<<lvl | unix.PERF_MEM_SNOOP_NA<<unix.PERF_MEM_SNOOP_SHIFT |
			unix.PERF_MEM_LOCK_NA<<unix.PERF_MEM_LOCK_SHIFT | unix.PERF_MEM_TLB_NA<<unix.PERF_MEM_TLB_SHIFT | unix.PERF_MEM_LVLNUM_NA<<num, Access{}},
		{"neither load nor store", (unix.PERF_MEM_OP_PFETCH|unix.PERF_MEM_OP_EXEC)<<unix.PERF_MEM_OP_SHIFT | unix.PERF_MEM_LVLNUM_L1<<num, Access{Level: L1}},
		{"load L1", load | unix.PERF_MEM_LVLNUM_L1<<num | tlbHit, Access{Load: true, Level: L1}},
		{"store L2", store | unix.PERF_MEM_LVLNUM_L2<<num, Access{Store: true, Level: L2}},
		{"L3 of this chip", load | unix.PERF_MEM_LVLNUM_L3<<num, Access{Load: true, Level: L3}},
		{"L3 of another", load | unix.PERF_MEM_LVLNUM_L3<<num | remote, Access{Load: true, Level: RemoteCache}},
		{"L4", load | unix.PERF_MEM_LVLNUM_L4<<num, Access{Load: true, Level: L4}},
		{"buffer of L2's misses", load | unix.PERF_MEM_LVLNUM_L2_MHB<<num, Access{Load: true, Level: FillBuffer}},
		{"memory-side cache", load | unix.PERF_MEM_LVLNUM_MSC<<num, Access{Load: true, Level: L4}},
		{"L0", load | unix.PERF_MEM_LVLNUM_L0<<num, Access{Load: true, Level: L1}},
		{"uncached", load | unix.PERF_MEM_LVLNUM_UNC<<num, Access{Load: true, Level: Uncached}},
		{"CXL", load | unix.PERF_MEM_LVLNUM_CXL<<num, Access{Load: true, Level: Memory}},
		{"I/O", load | unix.PERF_MEM_LVLNUM_IO<<num, Access{Load: true, Level: IO}},
		{"any cache", load | unix.PERF_MEM_LVLNUM_ANY_CACHE<<num | unix.PERF_MEM_HOPS_0<<hops, Access{Load: true, Level: LevelUnknown}},
		{"any cache, one hop", load | unix.PERF_MEM_LVLNUM_ANY_CACHE<<num | unix.PERF_MEM_HOPS_1<<hops, Access{Load: true, Level: RemoteCache}},
		{"any cache, three hops", load | unix.PERF_MEM_LVLNUM_ANY_CACHE<<num | unix.PERF_MEM_HOPS_3<<hops, Access{Load: true, Level: RemoteCache}},
		{"fill buffer", load | unix.PERF_MEM_LVLNUM_LFB<<num, Access{Load: true, Level: FillBuffer}},
		{"memory, TLB missed", load | unix.PERF_MEM_LVLNUM_RAM<<num | tlbMiss, Access{Load: true, Level: Memory, TLBMiss: true}},
		{"memory of another node", load | unix.PERF_MEM_LVLNUM_RAM<<num | remote, Access{Load: true, Level: RemoteMemory}},
		{"persistent memory of another node", load | unix.PERF_MEM_LVLNUM_PMEM<<num | remote, Access{Load: true, Level: RemoteMemory}},
		{"locked", store | unix.PERF_MEM_LVLNUM_L1<<num | lock, Access{Store: true, Level: L1, Locked: true}},
		{"TLB of the second level", load | unix.PERF_MEM_LVLNUM_L1<<num | tlbHit | tlbL2, Access{Load: true, Level: L1, TLBMiss: true}},
		{"TLB of either level", load | unix.PERF_MEM_LVLNUM_L1<<num | tlbHit | tlbL1 | tlbL2, Access{Load: true, Level: L1}},
		{"changed by another core", load | unix.PERF_MEM_LVLNUM_L3<<num | hitm, Access{Load: true, Level: L3, Modified: true}},
		{"old bits: L1 hit", load | hit | unix.PERF_MEM_LVL_L1<<lvl, Access{Load: true, Level: L1}},
		{"old bits: fill buffer", load | hit | unix.PERF_MEM_LVL_LFB<<lvl, Access{Load: true, Level: FillBuffer}},
		{"old bits: L2", load | hit | unix.PERF_MEM_LVL_L2<<lvl, Access{Load: true, Level: L2}},
		{"old bits: L3", load | hit | unix.PERF_MEM_LVL_L3<<lvl, Access{Load: true, Level: L3}},
		{"old bits: local memory", load | hit | unix.PERF_MEM_LVL_LOC_RAM<<lvl, Access{Load: true, Level: Memory}},
		{"old bits: remote memory", load | hit | unix.PERF_MEM_LVL_REM_RAM1<<lvl, Access{Load: true, Level: RemoteMemory}},
		{"old bits: remote memory, two hops", load | hit | unix.PERF_MEM_LVL_REM_RAM2<<lvl, Access{Load: true, Level: RemoteMemory}},
		{"old bits: remote cache", load | hit | unix.PERF_MEM_LVL_REM_CCE1<<lvl, Access{Load: true, Level: RemoteCache}},
		{"old bits: remote cache, two hops", load | hit | unix.PERF_MEM_LVL_REM_CCE2<<lvl, Access{Load: true, Level: RemoteCache}},
		{"old bits: I/O", load | hit | unix.PERF_MEM_LVL_IO<<lvl, Access{Load: true, Level: IO}},
		{"old bits: uncached", load | hit | unix.PERF_MEM_LVL_UNC<<lvl, Access{Load: true, Level: Uncached}},
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
