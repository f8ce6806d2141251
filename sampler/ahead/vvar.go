package ahead

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/proc"
)

// The data of the vdso, [vvar] in /proc/PID/maps, can't be read as a process's memory: they are pages
// of the kernel's. But they are the same in all processes of a time namespace, ours too, at the same
// distance from the beginning of the mapping.

// vvars are where processes have them.
type vvars struct {
	of map[int]extent // by process; empty: none, or not the same as ours
}

var errVVAR = errors.New("no data of the vdso")

// vvarOfRdx is rdx's own.
var vvarOfRdx = sync.OnceValue(func() extent { return vvarOf("self") })

// vvarOf looks through as much of the mappings as may be read while a thread is held: of a
// process with very many they are not found.
func vvarOf(pid string) (e extent) {
	fd, err := unix.Open("/proc/"+pid+"/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return e
	}
	defer unix.Close(fd)
	b := make([]byte, 64<<10)
	n := 0
	for n < len(b) {
		m, err := unix.Read(fd, b[n:])
		if err != nil && err != unix.EINTR || err == nil && m == 0 {
			break
		}
		n += max(m, 0)
	}
	for m := range proc.Mappings(b[:n]) {
		if !strings.HasPrefix(string(m.Name), "[vvar") {
			continue
		}
		if e.start == 0 {
			e.start = m.Start
		}
		if m.Start == e.limit || e.limit == 0 {
			e.limit = m.Limit
		}
	}
	return e
}

func (v *vvars) forget(pid int) { delete(v.of, pid) }

// read reads a page of a process's.
func (v *vvars) read(pid int, addr uint64, buf []byte) error {
	pages := vvarOfRdx()
	theirs, known := v.of[pid]
	if !known {
		theirs = vvarOf(fmt.Sprint(pid))
		mine, err1 := os.Readlink("/proc/self/ns/time")
		other, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/time", pid))
		if theirs.limit-theirs.start != pages.limit-pages.start || mine != other || (err1 == nil) != (err2 == nil) {
			theirs = extent{}
		}
		if v.of == nil {
			v.of = make(map[int]extent)
		}
		v.of[pid] = theirs
	}
	if addr < theirs.start || addr+uint64(len(buf)) > theirs.limit {
		return errVVAR
	}
	return copyOfRdx(buf, pages.start+addr-theirs.start)
}

// copyOfRdx copies memory of this process, which may not be there: pages of clocks that
// are not in use.
func copyOfRdx(buf []byte, addr uint64) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = errVVAR
		}
	}()
	at := uintptr(addr)
	copy(buf, unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), len(buf)))
	return nil
}
