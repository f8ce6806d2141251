package ahead

import "golang.org/x/sys/unix"

// call does the system call that a replay has come to, and says whether it could:
// those whose effect on registers and memory is known, or can be had without the
// process. It is a guess where the kernel had a choice, as of where memory is mapped,
// or where a write may have written less than all: if it was another, the replay does not
// come to where the thread was, and is not used.
func (c *Checkpoint) call(m *machine) bool {
	number, a := m.Called()
	fd := int(int32(a[0]))
	result, ok := uint64(0), false
	switch number {
	case unix.SYS_WRITE:
		result, ok = a[2], true
	case unix.SYS_READ:
		result, ok = c.files.read(m, fd, a[1], a[2])
	case unix.SYS_LSEEK:
		result, ok = c.files.seek(fd, int64(a[1]), int(a[2]))
	case unix.SYS_OPENAT:
		result, ok = c.files.openAt(m, fd, a[1], int(a[2]))
	case unix.SYS_CLOSE:
		ok = c.files.closeFile(fd)
	case unix.SYS_FSTAT:
		ok = c.files.stat(m, fd, a[1])
	case sysFstatAt:
		ok = c.files.statAt(m, fd, a[1], a[2], int(a[3]))
	case unix.SYS_FADVISE64:
		ok = true
	case unix.SYS_IOCTL:
		// A regular file is no terminal.
		result, ok = errno(unix.ENOTTY), a[1] == unix.TCGETS && c.files.open[fd] != nil
	case unix.SYS_RT_SIGPROCMASK:
		const old = 2
		ok = a[old] == 0
	case unix.SYS_BRK:
		result, ok = c.space.setBreak(m, a[0])
	case unix.SYS_MMAP:
		const anonymous = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
		const flags = 3
		if a[0] == 0 && a[flags] == anonymous {
			result, ok = c.space.mapAnywhere(m, a[1])
		}
	case unix.SYS_MUNMAP:
		c.space.unmap(a[0], a[1])
		ok = true
	}
	if ok {
		m.Return(result)
	}
	return ok
}

// errno is how the kernel returns an error.
func errno(e unix.Errno) uint64 { return -uint64(e) }
