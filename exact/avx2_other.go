//go:build !amd64

package exact

var haveAVX2 bool
