package memrecord

import (
	"encoding/binary"
	"fmt"
)

// Words of a raw IBS op sample, behind the four bytes of capabilities.
const (
	ibsCtl = iota
	ibsRIP
	ibsData
	ibsData2
	ibsData3
	ibsLinear
	ibsPhysical
	ibsWords // at least
)

// IBSOp decodes the raw data of an ibs_op sample (PERF_SAMPLE_RAW): four bytes
// of capabilities, then the registers from IbsOpCtl on (AMD64 Architecture
// Programmer's Manual, volume 2, 13.3). Most samples are of operations without
// a memory access: memory is then false, and they must not count as candidates.
func IBSOp(raw []byte) (a Access, memory bool, err error) {
	const head = 4
	if len(raw) < head+8*ibsWords {
		return a, false, fmt.Errorf("decode ibs sample: %d bytes, want at least %d", len(raw), head+8*ibsWords)
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(raw[head+8*i:]) }
	data2, data3 := word(ibsData2), word(ibsData3)
	bit := func(n int) bool { return data3>>n&1 == 1 }
	a = Access{
		PC:      word(ibsRIP),
		Load:    bit(0),
		Store:   bit(1),
		TLBMiss: bit(2),
		Locked:  bit(15),
		HasAddr: bit(17),
	}
	const softwarePrefetch = 21
	if !a.Load && !a.Store || bit(softwarePrefetch) {
		return a, false, nil
	}
	if a.HasAddr {
		a.Addr = word(ibsLinear)
	}
	// 1 is a byte, 7 a whole line.
	if width := data3 >> 22 & 15; width >= 1 && width <= 7 {
		a.Size = 1 << (width - 1)
	}
	if a.Load && bit(7) {
		a.Latency = int(data3 >> 32 & 0xffff)
	}
	const uncached, l2Miss = 14, 20
	switch {
	case bit(uncached):
		a.Level = Uncached
	case !bit(7):
		a.Level = L1
	case !bit(l2Miss):
		a.Level = L2
	default:
		a.Level = ibsSource(data2)
	}
	return a, true, nil
}

// ibsSource is DataSrc of IbsOpData2, whose upper two bits came with Zen 4.
func ibsSource(data2 uint64) Level {
	remote := data2>>4&1 == 1
	switch source := data2&7 | data2>>6&3<<3; source {
	case 1, 2: // the core's own, or another's in the same complex
		return L3
	case 3, 8: // DRAM; long-latency or extension memory
		if remote {
			return RemoteMemory
		}
		return Memory
	case 5: // another complex, near or far
		return RemoteCache
	case 7:
		return IO
	}
	return LevelUnknown
}
