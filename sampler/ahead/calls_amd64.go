package ahead

import "golang.org/x/sys/unix"

const sysFstatAt = unix.SYS_NEWFSTATAT
