package pprofout

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// readPerfMap names the given sorted addresses from a perf map, whose lines
// are "start size name" with hexadecimal numbers (linux,
// tools/perf/Documentation/jit-interface.txt). Where ranges overlap the last
// line wins: it is the code that was compiled last.
//
// Lines of another form are skipped and counted in the error, beside which
// the names are valid.
func readPerfMap(r io.Reader, pcs []uint64) ([]string, error) {
	names := make([]string, len(pcs))
	bad, firstBad := 0, 0
	in := bufio.NewReaderSize(io.LimitReader(r, mostPerfMap+1), mostPerfMapLine)
	read := 0
	for n := 1; ; n++ {
		b, err := in.ReadSlice('\n')
		read += len(b)
		if read > mostPerfMap {
			return names, fmt.Errorf("it is longer than %d MiB, of which the rest is not read", mostPerfMap>>20)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			return names, fmt.Errorf("line %d is longer than %d KiB: what follows is not read", n, mostPerfMapLine>>10)
		}
		line := string(b)
		if strings.TrimSpace(line) != "" {
			start, end, name, ok := parsePerfMapLine(line)
			if !ok {
				if bad == 0 {
					firstBad = n
				}
				bad++
			}
			i, _ := slices.BinarySearch(pcs, start)
			for ; ok && i < len(pcs) && pcs[i] < end; i++ {
				names[i] = name
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return names, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if bad > 0 {
		return names, fmt.Errorf("%d lines are not \"start size name\", the first is line %d", bad, firstBad)
	}
	return names, nil
}

// Names of more than some kilobytes are no longer names, and maps of real
// programs have some megabytes.
const (
	mostPerfMapLine = 64 << 10
	mostPerfMap     = 512 << 20
)

func parsePerfMapLine(line string) (start, end uint64, name string, ok bool) {
	first, rest, ok1 := strings.Cut(strings.TrimSpace(line), " ")
	second, name, ok2 := strings.Cut(strings.TrimLeft(rest, " "), " ")
	start, err1 := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64)
	size, err2 := strconv.ParseUint(strings.TrimPrefix(second, "0x"), 16, 64)
	name = strings.TrimSpace(name)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || name == "" || start+size < start {
		return 0, 0, "", false
	}
	return start, start + size, name, true
}
