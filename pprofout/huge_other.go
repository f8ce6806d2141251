//go:build !linux

package pprofout

func huge[T any](s []T) (same []T, stop func()) { return s, func() {} }
