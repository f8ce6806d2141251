package trace

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// The .rdt file, all numbers little-endian; docs/reference/trace-format.md explains it.
//
//	file    = magic, version, length and checksum of the header, header (JSON),
//	          then blocks; the last block is the index, and the last 16 bytes
//	          of the file say where it starts.
//	block   = block header of blockHeaderBytes, payload
//
// Every block stands alone: it holds the description of the code it refers
// to, and its own checksums.
const (
	fileMagic   = "RDXTRACE"
	fileVersion = 3
	// Since this version, and for good, the header's checksum is of the version, too.
	checkedVersion = 3
	fileFixed      = len(fileMagic) + 4 + 4 + 4
	maxHeader      = 1 << 20

	blockMagic       = 0x426b6454 // "TdkB"
	blockHeaderBytes = 64
	trailerMagic     = "RDXINDEX"
	trailerBytes     = 16

	// A block is closed when it holds this many accesses, or bytes.
	blockAccesses = 1 << 20
	blockBytes    = 4 << 20
	// Limits that a reader holds a file to.
	maxBlockAccesses = blockAccesses + 2*maxSites
	maxBlockBytes    = 32 << 20
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Header says what a trace is of.
type Header struct {
	Writer   string    `json:"writer,omitempty"`   // the rdx that recorded it, as rdx version prints it
	Engine   string    `json:"engine"`             // what saw the accesses
	Command  []string  `json:"command"`            // of the program
	Start    time.Time `json:"start"`              // of the recording
	MaxSize  int64     `json:"max_size,omitempty"` // bytes; the oldest blocks made room beyond it
	Children bool      `json:"children,omitempty"`
	Fast     bool      `json:"fast,omitempty"` // see Options
}

// Summary is written when a recording ends. A trace without one, because the
// recorder was killed, has a zero Summary.
type Summary struct {
	Accesses uint64   `json:"accesses"`          // seen
	Dropped  uint64   `json:"dropped,omitempty"` // of them, to keep within MaxSize
	Partial  []string `json:"partial,omitempty"` // why accesses are missing
	ExitCode int      `json:"exit_code"`
	Signal   int      `json:"signal,omitempty"`
	// Mappings is the code that the program had mapped, without that of the
	// processes it started.
	Mappings []*model.Mapping `json:"mappings,omitempty"`
}

type blockKind uint8

const (
	dataBlock  blockKind = 1
	indexBlock blockKind = 2
)

// blockInfo is a block's header, and its place.
type blockInfo struct {
	kind     blockKind
	thread   int32
	pid      int32
	first    uint64 // number of the block's first access in the whole trace
	accesses uint32
	size     uint32 // bytes of the payload
	sum      uint32 // of the payload

	offset int64 // in the file, of the header
}

func (b *blockInfo) append(dst []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, blockMagic)
	dst = append(dst, byte(b.kind), fileVersion, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(b.thread))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(b.pid))
	dst = binary.LittleEndian.AppendUint64(dst, b.first)
	dst = binary.LittleEndian.AppendUint32(dst, b.accesses)
	dst = binary.LittleEndian.AppendUint32(dst, b.size)
	dst = binary.LittleEndian.AppendUint32(dst, b.sum)
	dst = append(dst, make([]byte, at+blockHeaderBytes-4-len(dst))...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], crcTable))
}

// seal writes the header before the payload in buf.
func (b *blockInfo) seal(buf []byte) {
	b.size = uint32(len(buf) - blockHeaderBytes)
	b.sum = crc32.Checksum(buf[blockHeaderBytes:], crcTable)
	b.append(buf[:0])
}

var errNoBlock = errors.New("no block header here")

// parseBlockHeader checks everything but the payload.
func parseBlockHeader(b []byte) (blockInfo, error) {
	if len(b) < blockHeaderBytes || binary.LittleEndian.Uint32(b) != blockMagic {
		return blockInfo{}, errNoBlock
	}
	if crc32.Checksum(b[:blockHeaderBytes-4], crcTable) != binary.LittleEndian.Uint32(b[blockHeaderBytes-4:]) {
		return blockInfo{}, errors.New("block header with a wrong checksum")
	}
	if v := b[5]; v != fileVersion {
		return blockInfo{}, fmt.Errorf("block from another version of rdx: in version %d of the format, this rdx reads version %d", v, fileVersion)
	}
	i := blockInfo{
		kind:     blockKind(b[4]),
		thread:   int32(binary.LittleEndian.Uint32(b[8:])),
		pid:      int32(binary.LittleEndian.Uint32(b[12:])),
		first:    binary.LittleEndian.Uint64(b[16:]),
		accesses: binary.LittleEndian.Uint32(b[24:]),
		size:     binary.LittleEndian.Uint32(b[28:]),
		sum:      binary.LittleEndian.Uint32(b[32:]),
	}
	if i.size > maxBlockBytes || i.accesses > maxBlockAccesses {
		return blockInfo{}, fmt.Errorf("block of %d bytes and %d accesses is too large", i.size, i.accesses)
	}
	return i, nil
}

func appendFileHeader(dst []byte, h Header) ([]byte, error) {
	j, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	dst = append(dst, fileMagic...)
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, fileVersion)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(j)))
	dst = binary.LittleEndian.AppendUint32(dst, headerSum(dst[at:], j))
	return append(dst, j...), nil
}

// headerSum is the checksum of a file's header: of its version, its length and its contents.
func headerSum(fixed, contents []byte) uint32 {
	return crc32.Update(crc32.Checksum(fixed, crcTable), crcTable, contents)
}

// readFileHeader reads the header, and says which version of the format it is, and
// where the blocks begin. That of another version is an error, as is a damaged one.
func readFileHeader(in io.ReaderAt) (h Header, start int64, err error) {
	var fixed [fileFixed]byte
	if _, err := in.ReadAt(fixed[:], 0); err != nil || string(fixed[:len(fileMagic)]) != fileMagic {
		return h, 0, errors.New("not an rdx trace")
	}
	version, n, sum := binary.LittleEndian.Uint32(fixed[8:]), binary.LittleEndian.Uint32(fixed[12:]), binary.LittleEndian.Uint32(fixed[16:])
	if n > maxHeader {
		return h, 0, fmt.Errorf("header of %d bytes: damaged", n)
	}
	j := make([]byte, n)
	if _, err := in.ReadAt(j, int64(fileFixed)); err != nil {
		return h, 0, fmt.Errorf("header: %w", noEOF(err))
	}
	want := headerSum(fixed[8:16], j)
	if version < checkedVersion {
		want = crc32.Checksum(j, crcTable)
	}
	switch {
	case sum != want:
		return h, 0, errors.New("header with a wrong checksum: damaged")
	case version < fileVersion:
		return h, 0, fmt.Errorf("from another version of rdx%s: in version %d of the format, this rdx reads version %d: record it anew, or read it with the rdx that wrote it", writer(j), version, fileVersion)
	case version > fileVersion:
		return h, 0, fmt.Errorf("from another version of rdx%s: in version %d of the format, this rdx reads version %d: read it with a newer rdx", writer(j), version, fileVersion)
	}
	if err := json.Unmarshal(j, &h); err != nil {
		return h, 0, fmt.Errorf("header: %w", err)
	}
	return h, int64(fileFixed) + int64(n), nil
}

// writer names the rdx of a header of any version, if it says.
func writer(header []byte) string {
	var h struct{ Writer string }
	if json.Unmarshal(header, &h) != nil || h.Writer == "" {
		return ""
	}
	return " (" + strconv.Quote(h.Writer) + ")"
}

// index is the payload of the index block.
type index struct {
	Summary Summary `json:"summary"`
	// Offsets of the data blocks, ordered by their first access.
	Offsets []int64 `json:"offsets"`
}
