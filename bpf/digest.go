package bpf

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest is the SHA-256, in hexadecimal digits, of the objects that are loaded into the kernel on
// this architecture.
func Digest() string {
	h := sha256.New()
	h.Write(_RDXBytes)
	h.Write(_HeapBytes)
	return hex.EncodeToString(h.Sum(nil))
}
