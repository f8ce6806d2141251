package pprofout

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz"

	"github.com/rdx-profiler/rdx/sampler/objfile"
)

const (
	// mostMini bounds what .gnu_debugdata may become, and miniDictionary the memory that its
	// decompression asks for, in bytes: distributions' have some megabytes and 8 MiB.
	mostMini       = 256 << 20
	miniDictionary = 64 << 20
	miniExpansion  = 64
)

// miniDebug is the ELF file, of symbols alone, that Fedora and others pack into stripped
// programs by xz (gdb's manual, "MiniDebugInfo"); nil if there is none.
func miniDebug(f *elf.File) (*elf.File, error) {
	s := f.Section(".gnu_debugdata")
	if s == nil {
		return nil, nil
	}
	packed, err := objfile.Section(s, mostMini)
	if err != nil {
		return nil, err
	}
	data, err := unpackXZ(packed)
	if err != nil {
		return nil, err
	}
	return objfile.Open(bytes.NewReader(data))
}

func unpackXZ(packed []byte) ([]byte, error) {
	if err := checkXZ(packed); err != nil {
		return nil, err
	}
	z, err := xz.ReaderConfig{DictCap: 1 << 20, SingleStream: true}.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	most := min(int64(len(packed))*miniExpansion+1<<20, mostMini)
	data, err := io.ReadAll(io.LimitReader(z, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("of %d bytes, becomes more than %d", len(packed), most)
	}
	return data, nil
}

// checkXZ looks at what each block's header (xz file format, section 3.1) says of
// the dictionary: the decompressor takes that much memory. What is no block ends it.
func checkXZ(b []byte) error {
	const streamHeader = 12
	if len(b) < streamHeader+8 {
		return errors.New("cut off")
	}
	check := 0 // bytes behind each block
	if kind := b[7] & 15; kind > 0 {
		check = 4 << ((kind - 1) / 3)
	}
	for b = b[streamHeader:]; len(b) > 0 && b[0] != 0; {
		header := (int(b[0]) + 1) * 4
		if header > len(b) {
			return errors.New("cut off")
		}
		if err := checkBlock(b[:header]); err != nil {
			return err
		}
		size := chunks(b[header:])
		b = b[min(header+(size+3)&^3+check, len(b)):]
	}
	return nil
}

func checkBlock(header []byte) error {
	const lzma2 = 0x21
	flags, at := header[1], 2
	for _, present := range []bool{flags&0x40 != 0, flags&0x80 != 0} { // sizes
		for present && at < len(header) && header[at]&0x80 != 0 {
			at++
		}
		if present {
			at++
		}
	}
	if flags&3 != 0 || at+2 >= len(header) || header[at] != lzma2 || header[at+1] != 1 {
		return errors.New("packed by another filter than lzma2")
	}
	bits := uint(header[at+2])
	if bits > 40 || (2|uint64(bits&1))<<(bits/2+11) > miniDictionary {
		return fmt.Errorf("its dictionary is larger than %d MiB", miniDictionary>>20)
	}
	return nil
}

// chunks is how many bytes the chunks of a block take (LZMA2), at most those that there are.
func chunks(b []byte) int {
	at := 0
	for at < len(b) && b[at] != 0 {
		size := 3
		if b[at] >= 0x80 {
			size = 5
		}
		if at+size > len(b) {
			return len(b)
		}
		data := int(b[at+size-2])<<8 + int(b[at+size-1]) + 1
		if b[at] >= 0xc0 {
			size++ // properties
		}
		at += size + data
	}
	return min(at+1, len(b))
}
