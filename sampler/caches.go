package sampler

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// Cache is one level of a CPU's data caches.
type Cache struct {
	Level string // "L1d", "L2", "L3"
	Size  int64  // bytes
	Ways  int    // 0 if unknown
	Line  int    // bytes
	// Assumed: neither the kernel nor the processor tells the size, as on some virtual machines.
	Assumed bool
}

// Caches are the data caches of the first CPU, smallest first: those that the kernel names in sysfs
// (os.DirFS("/sys")), or else those that the processor tells itself, with usual sizes for what it does not tell.
func Caches(sys fs.FS) ([]Cache, error) {
	out, err := sysfsCaches(sys)
	if errors.Is(err, fs.ErrNotExist) {
		return toldCaches(processorTells()), nil
	}
	return out, err
}

// processorTells is what the processor says of the sizes of its caches; tests have other processors.
var processorTells = func() (l1d, l2, l3 int) {
	told := cpuid.CPU.Cache
	return told.L1D, told.L2, told.L3
}

// toldCaches are those that the processor tells: sizes in bytes, not above 0 where it does not.
func toldCaches(l1d, l2, l3 int) []Cache {
	out := []Cache{
		{Level: "L1d", Size: 32 << 10, Line: 64},
		{Level: "L2", Size: 1 << 20, Line: 64},
		{Level: "L3", Size: 32 << 20, Line: 64}, // as on most servers, for each group of cores
	}
	for i, size := range []int{l1d, l2, l3} {
		if out[i].Assumed = size <= 0; !out[i].Assumed {
			out[i].Size = int64(size)
		}
	}
	for i := 1; i < len(out); i++ { // an assumed one is not smaller than one that is known
		if out[i].Assumed && out[i].Size <= out[i-1].Size {
			out[i].Size = 2 * out[i-1].Size
		}
	}
	return out
}

func sysfsCaches(sys fs.FS) ([]Cache, error) {
	const dir = "devices/system/cpu/cpu0/cache"
	entries, err := fs.ReadDir(sys, dir)
	if err != nil {
		return nil, fmt.Errorf("read cache sizes: %w (name them with --caches)", err)
	}
	var out []Cache
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "index") {
			continue
		}
		read := func(name string) string {
			b, _ := fs.ReadFile(sys, path.Join(dir, e.Name(), name))
			return strings.TrimSpace(string(b))
		}
		kind := read("type")
		if kind == "Instruction" {
			continue
		}
		size, err := ParseSize(read("size"))
		if err != nil {
			return nil, fmt.Errorf("read cache sizes: %s: %w", e.Name(), err)
		}
		c := Cache{Level: "L" + read("level"), Size: size}
		if c.Level == "L1" {
			c.Level = "L1d"
		}
		c.Ways, _ = strconv.Atoi(read("ways_of_associativity"))
		c.Line, _ = strconv.Atoi(read("coherency_line_size"))
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("read cache sizes: none in sysfs (name them with --caches)")
	}
	slices.SortFunc(out, func(a, b Cache) int { return int(a.Size - b.Size) })
	return out, nil
}

// ParseSize reads a number of bytes such as "48K", "1.5m", "32MiB" or "4096".
func ParseSize(s string) (int64, error) {
	digits := strings.TrimRight(strings.ToLower(s), "ibkmgt")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n > 0) {
		return 0, fmt.Errorf("%q is not a size (write 48K, 1.5M, 32MiB)", s)
	}
	switch unit := strings.ToLower(s[len(digits):]); strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i") {
	case "":
	case "k":
		n *= 1 << 10
	case "m":
		n *= 1 << 20
	case "g":
		n *= 1 << 30
	case "t":
		n *= 1 << 40
	default:
		return 0, fmt.Errorf("%q is not a size (write 48K, 1.5M, 32MiB)", s)
	}
	if n > 1<<60 {
		return 0, fmt.Errorf("%q is too large", s)
	}
	if n < 1 {
		return 0, fmt.Errorf("%q is less than a byte", s)
	}
	return int64(n), nil
}
