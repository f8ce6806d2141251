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
	return objfile.Open(bytes.NewReader(data))
}

// checkXZ looks at what the first block's header (xz file format, section 3.1) says of
// the dictionary: the decompressor takes that much memory.
func checkXZ(b []byte) error {
	const streamHeader, lzma2 = 12, 0x21
	if len(b) < streamHeader+8 {
		return errors.New("cut off")
	}
	block := b[streamHeader:]
	flags, at := block[1], 2
	for _, present := range []bool{flags&0x40 != 0, flags&0x80 != 0} { // sizes
		for present && at < len(block) && block[at]&0x80 != 0 {
			at++
		}
		if present {
			at++
		}
	}
	if flags&3 != 0 || at+2 >= len(block) || block[at] != lzma2 || block[at+1] != 1 {
		return errors.New("packed by another filter than lzma2")
	}
	bits := uint(block[at+2])
	if bits > 40 || (2|uint64(bits&1))<<(bits/2+11) > miniDictionary {
		return fmt.Errorf("its dictionary is larger than %d MiB", miniDictionary>>20)
	}
	return nil
}
