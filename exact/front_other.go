//go:build !amd64

package exact

var haveFront bool
