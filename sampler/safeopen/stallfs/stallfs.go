// Package stallfs mounts, for tests, a file system that stops answering: what a network
// file system does whose server is gone. It speaks just enough of FUSE
// (linux/fuse.h, version 7.31) to serve some files that can be read and executed.
//
// The package is rdx's own and may change.
package stallfs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// FS is a mounted file system of one directory.
type FS struct {
	Dir     string
	fd      int
	names   []string
	files   [][]byte
	stalled atomic.Bool
	asked   atomic.Int64
	polled  atomic.Int64
	served  sync.WaitGroup
}

const (
	opLookup, opForget, opGetattr, opOpen, opRead, opStatfs, opRelease = 1, 2, 3, 14, 15, 17, 18
	opFlush, opInit, opOpendir, opReleasedir, opAccess, opInterrupt    = 25, 26, 27, 29, 34, 36
	opDestroy, opPoll, opBatchForget                                   = 38, 40, 42

	root      = 1
	firstFile = 2
	keepCache = 2 // FOPEN_KEEP_CACHE
)

// Mount needs root and /dev/fuse. files are by name.
func Mount(dir string, files map[string][]byte) (*FS, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/fuse: %w", err)
	}
	fs := &FS{Dir: dir, fd: fd}
	for name, content := range files {
		fs.names, fs.files = append(fs.names, name), append(fs.files, content)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fd)
	if err := unix.Mount("stallfs", dir, "fuse", unix.MS_NODEV, options); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("mount fuse: %w", err)
	}
	fs.served.Add(1)
	go fs.serve()
	return fs, nil
}

// Stall answers nothing from now on.
func (fs *FS) Stall() { fs.stalled.Store(true) }

// Asked is how many requests were not answered.
func (fs *FS) Asked() int { return int(fs.asked.Load()) }

// Polled is how often somebody wanted to know whether a file can be read without waiting.
func (fs *FS) Polled() int { return int(fs.polled.Load()) }

// Close ends all requests with an error and unmounts.
func (fs *FS) Close() error {
	err := unix.Unmount(fs.Dir, unix.MNT_FORCE|unix.MNT_DETACH)
	unix.Close(fs.fd)
	return err
}

func (fs *FS) serve() {
	defer fs.served.Done()
	buf := make([]byte, 1<<18)
	for {
		n, err := unix.Read(fs.fd, buf)
		if err == unix.EINTR || err == unix.ENOENT || err == unix.EAGAIN {
			continue
		}
		if err != nil || n < 40 {
			return
		}
		op := binary.NativeEndian.Uint32(buf[4:])
		if op == opPoll {
			fs.polled.Add(1)
		}
		if fs.stalled.Load() {
			if op != opForget && op != opInterrupt && op != opBatchForget {
				fs.asked.Add(1)
			}
			continue
		}
		unique := binary.NativeEndian.Uint64(buf[8:])
		node := binary.NativeEndian.Uint64(buf[16:])
		out, errno := fs.answer(op, node, buf[40:n])
		if out == nil && errno == noReply {
			continue
		}
		var reply bytes.Buffer
		put(&reply, uint32(16+len(out)), -int32(errno), unique)
		reply.Write(out)
		_, _ = unix.Write(fs.fd, reply.Bytes())
	}
}

const noReply = unix.Errno(0xffff)

func (fs *FS) answer(op uint32, node uint64, in []byte) (out []byte, errno unix.Errno) {
	var b bytes.Buffer
	switch op {
	case opInit:
		put(&b, uint32(7), uint32(31), uint32(1<<17), uint32(0), uint16(16), uint16(12), uint32(1<<17), uint32(1), uint16(0), uint16(0), uint32(0), [7]uint32{})
	case opLookup:
		name := string(in[:bytes.IndexByte(in, 0)])
		for i, n := range fs.names {
			if n == name {
				put(&b, uint64(firstFile+i), uint64(0), uint64(1), uint64(1), uint32(0), uint32(0))
				fs.attr(&b, uint64(firstFile+i))
				return b.Bytes(), 0
			}
		}
		return nil, unix.ENOENT
	case opGetattr:
		put(&b, uint64(1), uint32(0), uint32(0))
		fs.attr(&b, node)
	case opOpen, opOpendir:
		put(&b, uint64(0), uint32(keepCache), uint32(0))
	case opRead:
		i := int(node) - firstFile
		off, size := binary.NativeEndian.Uint64(in[8:]), uint64(binary.NativeEndian.Uint32(in[16:]))
		if i < 0 || i >= len(fs.files) {
			return nil, unix.EIO
		}
		content := fs.files[i]
		off = min(off, uint64(len(content)))
		return append([]byte{}, content[off:min(off+size, uint64(len(content)))]...), 0
	case opStatfs:
		put(&b, [10]uint64{})
	case opFlush, opRelease, opReleasedir, opAccess, opDestroy:
	case opForget, opBatchForget, opInterrupt:
		return nil, noReply
	default:
		return nil, unix.ENOSYS
	}
	return b.Bytes(), 0
}

func (fs *FS) attr(b *bytes.Buffer, node uint64) {
	mode, size := uint32(unix.S_IFDIR|0o755), uint64(0)
	if node != root {
		mode, size = unix.S_IFREG|0o755, uint64(len(fs.files[node-firstFile]))
	}
	put(b, node, size, (size+511)/512, [3]uint64{}, [3]uint32{}, mode, uint32(1), uint32(0), uint32(0), uint32(0), uint32(4096), uint32(0))
}

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.NativeEndian, v)
	}
}
