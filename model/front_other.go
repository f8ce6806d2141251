//go:build !amd64

package model

const haveFront = false

func touchFront(*front, []uint64, []uint8, []uint64, []uint64) { panic("there is no front") }

func findFirst(*[batch]missedBlock, int, []uint64, *[batch]*uint32, *[numRecent]recentSlot) int {
	panic("there is no front")
}
