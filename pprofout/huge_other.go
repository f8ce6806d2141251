//go:build !linux

package pprofout

func huge[T any](s []T) (same []T, stop func()) { return s, func() {} }

// LargePagesFor asks for large pages on Linux.
func LargePagesFor(file string) {}

// room is memory that could be given back at once on Linux.
type room struct{ bytes []byte }

func outside(n int) room { return room{make([]byte, n)} }

func (r *room) has(data []byte) bool { return false }

func (r *room) drop(bytes []byte) int { return len(bytes) }

func (r *room) free() {}
