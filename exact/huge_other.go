//go:build !linux

package exact

func huge[T any](s []T) []T { return s }
