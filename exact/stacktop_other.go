//go:build !amd64

package exact

func touchTop(*stackTop, []uint64, []uint8, []uint64, []uint64, int) int { panic("there is no front") }

func countTop(*stackTop, []uint64, []uint8, int) int { panic("there is no front") }

func sortTop(*stackTop, int) { panic("there is no front") }

func addOctaves(*[topChunk]uint8, *[topOctaves]uint64) { panic("there is no front") }
