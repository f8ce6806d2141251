//go:build !amd64

package model

var haveFront, haveAVX512 bool

func findFirst(*[batch]missedBlock, int, []uint64, *[batch]*uint32, *[numRecent]recentSlot) int {
	panic("there is no front")
}
