package ahead

import "golang.org/x/sys/unix"

// call does the system call that a replay has come to, and says whether it could:
// those whose effect on registers and memory is known, or can be had without the
// process: no file of it is opened. It is a guess where the kernel had a choice, as of where memory is mapped,
// or where a write may have written less than all: if it was another, the replay does not
// come to where the thread was, and is not used.
func (c *Checkpoint) call(m *machine) bool {
	number, a := m.Called()
	result, ok := uint64(0), false
	switch number {
	case unix.SYS_WRITE:
		result, ok = a[2], true
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
