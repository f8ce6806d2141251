package ptrace

// MendsSyscalls says whether a system call that a hold has interrupted is made
// again, whichever it is.
const MendsSyscalls = false

// interrupted is never true: arm64 prepares the system call to be made again
// before the stop, and what would return EINTR can't be told there.
func interrupted(int) bool { return false }

func mendSyscall(int) {}
