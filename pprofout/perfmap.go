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

// Names of more than some kilobytes are no longer names, and maps of real
// programs have some megabytes.
const (
	mostPerfMapLine = 64 << 10
	mostPerfMapName = 4 << 10
	mostPerfMap     = 512 << 20
)

// readPerfMap names the given sorted addresses from a perf map, whose lines
// are "start size name" with hexadecimal numbers (linux,
// tools/perf/Documentation/jit-interface.txt). Where ranges overlap the last
// line wins: it is the code that was compiled last.
//
// Lines of another form are skipped and counted in the error, beside which
// the names are valid.
func readPerfMap(r io.ReadSeeker, pcs []uint64) ([]string, error) {
	names := make([]string, len(pcs))
	bad, firstBad := 0, 0
	in := bufio.NewReaderSize(io.LimitReader(r, mostPerfMap+1), mostPerfMapLine)
	claims := claims[nameAt]{addresses: len(pcs)}
	var failed error
	at := int64(0)
	for n := 1; failed == nil; n++ {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 && !blank(line) {
			start, end, name, ok := parsePerfMapLine(line)
			if !ok {
				if bad == 0 {
					firstBad = n
				}
				bad++
			} else {
				from, _ := slices.BinarySearch(pcs, start)
				to, _ := slices.BinarySearch(pcs, end)
				claims.add(from, to, nameAt{at + int64(name), len(line) - name})
			}
		}
		at += int64(len(line))
		switch {
		case at > mostPerfMap:
			failed = noNames("it is longer than %d MiB, of which the rest is not read", mostPerfMap>>20)
		case errors.Is(err, bufio.ErrBufferFull):
			failed = noNames("line %d is longer than %d KiB: what follows is not read", n, mostPerfMapLine>>10)
		case errors.Is(err, io.EOF):
			failed = err
		case err != nil:
			failed = fmt.Errorf("line %d: %w", n, err)
		}
	}
	for _, c := range claims.winners() {
		b := make([]byte, min(c.what.size, mostPerfMapName))
		if _, err := r.Seek(c.what.at, io.SeekStart); err != nil {
			return names, err
		}
		k, _ := io.ReadFull(r, b)
		name := strings.TrimSpace(string(b[:k]))
		for _, i := range c.won {
			names[i] = name
		}
	}
	if failed != nil && !errors.Is(failed, io.EOF) {
		return names, failed
	}
	if bad > 0 {
		return names, fmt.Errorf("%d lines are not \"start size name\", the first is line %d", bad, firstBad)
	}
	return names, nil
}

// nameAt is where in the map a name is.
type nameAt struct {
	at   int64
	size int
}

func blank(line []byte) bool { return len(strings.TrimSpace(string(line))) == 0 }

// parsePerfMapLine returns also where in the line the name begins.
func parsePerfMapLine(line []byte) (start, end uint64, name int, ok bool) {
	number := func() uint64 {
		for name < len(line) && (line[name] == ' ' || line[name] == '\t') {
			name++
		}
		from := name
		for name < len(line) && line[name] != ' ' {
			name++
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(string(line[from:min(name, from+18)]), "0x"), 16, 64)
		ok = ok && err == nil && name-from <= 18
		return n
	}
	ok = true
	start = number()
	size := number()
	if !ok || name >= len(line) || blank(line[name:]) || start+size < start {
		return 0, 0, 0, false
	}
	return start, start + size, name, true
}
