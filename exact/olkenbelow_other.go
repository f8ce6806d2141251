//go:build !amd64

package exact

func findNear(*blockIndex, []uint64, []uint64, *[batch]*uint32, *[batch]uint32) int {
	panic("there is no AVX2")
}

func findFirst(*[batch]missedBlock, int, []uint64, *[batch]*uint32, *[numRecent]recentSlot) int {
	panic("there is no AVX2")
}

func readBuckets(*blockIndex, []uint64) { panic("there is no AVX2") }

func readOrder(*timedOrder, *[batch]*uint32, int) { panic("there is no AVX2") }

func takeSlots(*timedOrder, []*uint32, []uint8, []uint64) int { panic("there is no AVX2") }

func removeRun(*runTree, uint32) uint32 { panic("there is no AVX2") }
