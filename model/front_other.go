//go:build !amd64

package model

const haveFront = false

func findFirst(*[batch]missedBlock, int, []uint64, *[batch]*uint32, *[numRecent]recentSlot) int {
	panic("there is no front")
}
