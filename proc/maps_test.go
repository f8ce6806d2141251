package proc

import (
	"bytes"
	"os"
	"testing"
)

func TestMappings(t *testing.T) {
	const maps = `55d0c0000000-55d0c0002000 r--p 00000000 fe:00 12 /usr/bin/a program
55d0c0002000-55d0c0006000 rwxp 00002000 fe:00 12                         /usr/bin/a program
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f0000000000-7f0000021000 rw-p 00000000 00:00 0 
7f2000000000-7f2000003000 r-xs 00001000 fe:00 99 /lib/libx.so (deleted)
not a line
zzzz-7f30 r-xp 0 fe:00 1 /x
7f30-7f40 r-x
7f30-7f40 r-xp 0 fe:00
11112222333344445-7f40 r-xp 0 fe:00 1 /x
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]`
	want := []struct {
		Mapping
		name string
	}{
		{Mapping{Start: 0x55d0c0000000, Limit: 0x55d0c0002000, Readable: true, Inode: 12}, "/usr/bin/a program"},
		{Mapping{Start: 0x55d0c0002000, Limit: 0x55d0c0006000, Offset: 0x2000, Readable: true, Writable: true, Executable: true, Inode: 12}, "/usr/bin/a program"},
		{Mapping{Start: 0x7f0000000000, Limit: 0x7f0000021000, Readable: true, Writable: true}, ""},
		{Mapping{Start: 0x7f0000000000, Limit: 0x7f0000021000, Readable: true, Writable: true}, ""},
		{Mapping{Start: 0x7f2000000000, Limit: 0x7f2000003000, Offset: 0x1000, Readable: true, Executable: true, Inode: 99}, "/lib/libx.so (deleted)"},
		{Mapping{Start: 0xffffffffff600000, Limit: 0xffffffffff601000, Executable: true}, "[vsyscall]"},
		{Mapping{Start: 0x7ffd00000000, Limit: 0x7ffd00002000, Readable: true, Executable: true}, "[vdso]"},
	}
	n := 0
	for m := range Mappings([]byte(maps)) {
		if n == len(want) {
			t.Fatalf("more than %d mappings: %+v", n, m)
		}
		name := string(m.Name)
		m.Name = nil
		if name != want[n].name || m.Start != want[n].Start || m.Limit != want[n].Limit || m.Offset != want[n].Offset || m.Inode != want[n].Inode || m.Inode == 12 && m.Device != 0xfe00 ||
			m.Readable != want[n].Readable || m.Writable != want[n].Writable || m.Executable != want[n].Executable {
			t.Errorf("mapping %d: %+v %q, want %+v", n, m, name, want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d mappings, want %d", n, len(want))
	}
}

// Of this process every line is a mapping.
func TestOwnMappings(t *testing.T) {
	maps, err := ReadMappings(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for m := range Mappings(maps) {
		if n++; m.Start >= m.Limit {
			t.Errorf("from %#x to %#x", m.Start, m.Limit)
		}
	}
	if lines := bytes.Count(maps, []byte("\n")); n != lines || n == 0 {
		t.Errorf("%d mappings in %d lines", n, lines)
	}
}

// Whatever the lines, what is read is within them.
func FuzzMappings(f *testing.F) {
	f.Add([]byte("55d0-55e0 r-xp 00001000 fe:00 123  /usr/bin/with space\n7fff-8000 rw-p 0 00:00 0 [stack]\n"))
	f.Add([]byte("1-2 r\n-1 rwxp 0 0 0\n"))
	f.Fuzz(func(t *testing.T, maps []byte) {
		n := 0
		for m := range Mappings(maps) {
			if n++; bytes.Contains(m.Name, []byte("\n")) {
				t.Errorf("name %q", m.Name)
			}
		}
		if n > bytes.Count(maps, []byte("\n"))+1 {
			t.Errorf("%d mappings of %q", n, maps)
		}
	})
}
