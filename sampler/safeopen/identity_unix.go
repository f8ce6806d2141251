//go:build unix

package safeopen

import (
	"os"

	"golang.org/x/sys/unix"
)

func identify(f *os.File) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return identity{}, err
	}
	return identity{uint64(st.Dev), st.Ino, st.Size}, nil
}
