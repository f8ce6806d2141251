//go:build !unix

package safeopen

import "os"

// identify knows the length alone: there are no devices of this kind to be told apart.
func identify(f *os.File) (identity, error) {
	st, err := f.Stat()
	if err != nil {
		return identity{}, err
	}
	return identity{size: st.Size()}, nil
}
