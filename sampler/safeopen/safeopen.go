//go:build linux

package safeopen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A Root is a directory below which names are looked up: no name, and no link on its
// way, leads out of it.
type Root struct {
	closing sync.RWMutex // held to read while the number is in use
	fd      int          // -1 when closed
	resolve uint64       // RESOLVE_ flags of openat2
	owners  []uint32     // see Owners
	prefix  string       // of names in messages
}

// OfProcess is the root directory of this process.
func OfProcess() (*Root, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/", Err: err}
	}
	return &Root{fd: fd, resolve: unix.RESOLVE_IN_ROOT, prefix: "/"}, nil
}

// Of is the root directory of a process, by a handle: it stays reachable when the
// process has ended. pid must be one with memory.
func Of(pid int) (*Root, error) { return directory(pid, "root", unix.RESOLVE_IN_ROOT) }

// Working is the working directory of a process. Names that lead out of it are not
// found, so that they need not be understood as the process does.
func Working(pid int) (*Root, error) { return directory(pid, "cwd", unix.RESOLVE_BENEATH) }

func directory(pid int, link string, resolve uint64) (*Root, error) {
	name := fmt.Sprintf("/proc/%d/%s", pid, link)
	fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	owners, err := ownersOf(pid)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Root{fd: fd, resolve: resolve, owners: owners, prefix: name + "/"}, nil
}

// Owners are the users who may own what a process is said to have written:
// its own IDs, root, and the root of its user namespace.
func (r *Root) Owners() []uint32 { return r.owners }

// Close lets the directory go, when no lookup is under way any more.
func (r *Root) Close() error {
	r.closing.Lock()
	defer r.closing.Unlock()
	fd := r.fd
	if r.fd = -1; fd < 0 {
		return fs.ErrClosed
	}
	return unix.Close(fd)
}

// Open opens a regular file to read. name is as the process itself would say it,
// from its root. owners are those who may own the file, all if nil.
//
// The error is fs.ErrNotExist if there is none, and Refused if it is of another
// kind, of another owner, or on a pseudo file system.
func (r *Root) Open(name string, owners []uint32) (*os.File, error) {
	handle, err := r.handle(name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(handle)
	return open(handle, r.full(name), owners)
}

// Directory is a directory below this one, by a handle; it is the root of what is looked up
// there.
func (r *Root) Directory(name string) (*Root, error) {
	handle, err := r.handle(name)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(handle, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		unix.Close(handle)
		return nil, &Refused{r.full(name), "it is no directory"}
	}
	return &Root{fd: handle, resolve: unix.RESOLVE_IN_ROOT, owners: r.owners, prefix: r.full(name) + "/"}, nil
}

// Stat is what there is about a file of any kind.
func (r *Root) Stat(name string) (st unix.Stat_t, err error) {
	handle, err := r.handle(name)
	if err != nil {
		return st, err
	}
	defer unix.Close(handle)
	if err := unix.Fstat(handle, &st); err != nil {
		return st, &fs.PathError{Op: "stat", Path: r.full(name), Err: err}
	}
	return st, nil
}

func (r *Root) full(name string) string { return r.prefix + strings.TrimPrefix(name, "/") }

// handle looks a name up, following its links.
func (r *Root) handle(name string) (int, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: r.resolve | unix.RESOLVE_NO_MAGICLINKS,
	}
	r.closing.RLock()
	defer r.closing.RUnlock()
	if r.fd < 0 {
		return 0, &fs.PathError{Op: "open", Path: r.full(name), Err: fs.ErrClosed}
	}
	handle, err := unix.Openat2(r.fd, name, &how)
	// EAGAIN: something was renamed on the way, which could go on forever.
	for tries := 0; tries < 100 && (err == unix.EINTR || err == unix.EAGAIN); tries++ {
		handle, err = unix.Openat2(r.fd, name, &how)
	}
	if err == unix.ENOSYS || err == unix.EPERM {
		err = fmt.Errorf("openat2: %w (it takes Linux 5.6, and a seccomp filter that lets it pass)", err)
	}
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: r.full(name), Err: err}
	}
	return handle, nil
}

// Link opens the regular file that a link of /proc leads to, as map_files, fd and exe
// have them.
func Link(name string) (*os.File, error) {
	handle, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	for err == unix.EINTR {
		handle, err = unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(handle)
	return open(handle, name, nil)
}

// open judges what a handle is of, and opens it.
func open(handle int, name string, owners []uint32) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(handle, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG {
		return nil, &Refused{name, "it is " + kindName(kind) + ", not a regular file"}
	}
	if owners != nil && !slices.Contains(owners, st.Uid) {
		return nil, &Refused{name, fmt.Sprintf("it belongs to user %d, who is neither root nor the process's user", st.Uid)}
	}
	var sys unix.Statfs_t
	if err := unix.Fstatfs(handle, &sys); err != nil {
		return nil, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	if slices.Contains(pseudo, int64(sys.Type)) {
		return nil, &Refused{name, "it is on a pseudo file system of the kernel"}
	}
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	self := "/proc/self/fd/" + strconv.Itoa(handle)
	fd, err := unix.Open(self, flags, 0)
	for err == unix.EINTR {
		fd, err = unix.Open(self, flags, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	// Go's poller would ask the file system of one that does not block, and the whole program would
	// stand still until there is an answer. What is regular is not waited for once it is open.
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "fcntl", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// pseudo file systems, where a regular file may end nowhere, or be used up by reading.
var pseudo = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC,
	unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC, unix.BINFMTFS_MAGIC, unix.NSFS_MAGIC, configFS,
}

const configFS = 0x62656570 // CONFIGFS_MAGIC of linux/magic.h

func kindName(mode uint32) string {
	switch mode {
	case unix.S_IFIFO:
		return "a named pipe"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "a device"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFLNK:
		return "a link"
	}
	return "of an unknown kind"
}

// ownersOf reads them from /proc: the IDs are as this process sees them, as are
// those of files.
func ownersOf(pid int) ([]uint32, error) {
	name := fmt.Sprintf("/proc/%d/status", pid)
	status, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	owners := []uint32{0}
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			for _, id := range strings.Fields(ids) {
				if n, err := strconv.ParseUint(id, 10, 32); err == nil {
					owners = append(owners, uint32(n))
				}
			}
		}
	}
	if len(owners) == 1 {
		return nil, errors.New("read " + name + ": no user IDs")
	}
	// inside outside length: the root of the container, if it is another user here.
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", pid))
	if err == nil {
		for line := range strings.Lines(string(maps)) {
			var inside, outside uint32
			if n, _ := fmt.Sscan(line, &inside, &outside); n == 2 && inside == 0 {
				owners = append(owners, outside)
			}
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners), nil
}
