//go:build !amd64

package interp

import "errors"

// stubs would hold native instructions: of x86-64 there are none elsewhere.
type stubs struct{}

func (m *Machine) frame() *nativeFrame {
	panic(Halt{Cause: Unsupported, Err: errors.New("not an x86-64 processor")})
}

func (m *Machine) nativeOK() bool { return false }

func (f *nativeFrame) address() uint64 { return 0 }

func (m *Machine) runNative(*native, *nativeFrame) uint32 { return 0 }
