// Package safeopen opens files whose names others can make: the target, whoever
// shares a directory with it, or whoever built the image of its container.
//
// Such a name may be a pipe that nobody writes to, a device whose opening has
// effects, a link that leads out of the container, a pseudo file that never ends.
// So a name is first looked up to a handle without opening anything (O_PATH), below the
// root of the process that it is meant for; what was found is judged by that handle; and
// only a regular file of an acceptable owner is opened, by the handle, without
// blocking.
//
// A lookup and a read can still wait for a file system that doesn't answer (NFS, FUSE). No
// flag prevents that: call none of this where a thread is held.
//
// The package is rdx's own and may change.
package safeopen

// Refused says why a file that is there was not opened.
type Refused struct {
	Name   string
	Reason string
}

func (r *Refused) Error() string { return r.Name + " is not read: " + r.Reason }
