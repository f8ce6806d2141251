//go:build !linux

package safeopen

import (
	"os"
	"path/filepath"
)

// A Root is the root directory, where profiles of other machines are read: there is no target here whose names could do harm.
type Root struct{}

// OfProcess is the root directory.
func OfProcess() (*Root, error) { return &Root{}, nil }

// Open opens a regular file to read; owners are not looked at.
func (r *Root) Open(name string, owners []uint32) (*os.File, error) {
	name = filepath.Join("/", name)
	st, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, &Refused{name, "it is not a regular file"}
	}
	return os.Open(name)
}

// Close does nothing here.
func (r *Root) Close() error { return nil }
