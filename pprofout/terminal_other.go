//go:build !linux

package pprofout

// isTerminal is not known here.
func isTerminal(int) bool { return false }
