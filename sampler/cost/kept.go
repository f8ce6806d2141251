package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Kept is a figure of this machine that takes long to measure, in a file of its own: of another processor or another rdx
// it is measured anew.
type Kept struct {
	dir, name, of string
}

// keptFile is what is in one.
type keptFile struct {
	Of    string          `json:"of"`
	Value json.RawMessage `json:"value"`
}

// Keep says where a figure is kept, by its name, of the processor and of what measures it: in $RDX_CACHE, else for root in
// /var/cache/rdx, and for others in rdx in the user's cache folder.
func Keep(name, writer string) (*Kept, error) {
	dir := os.Getenv("RDX_CACHE")
	if dir == "" {
		dir = "/var/cache/rdx"
		if os.Geteuid() != 0 {
			base, err := os.UserCacheDir()
			if err != nil {
				return nil, fmt.Errorf("keep %s: %w", name, err)
			}
			dir = filepath.Join(base, "rdx")
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("keep %s (RDX_CACHE is where): %w", name, err)
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	return &Kept{dir, name + ".json", processor(string(info)) + "; " + writer}, err
}

// processor is what /proc/cpuinfo says of the first one.
func processor(info string) string {
	var out []string
	first, _, _ := strings.Cut(info, "\n\n")
	for line := range strings.Lines(first) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "cpu family", "model", "stepping", "CPU implementer", "CPU part", "CPU variant":
			out = append(out, strings.TrimSpace(value))
		}
	}
	return strings.Join(out, " ")
}

// mostKept bounds such a file, in bytes.
const mostKept = 64 << 10

// Read reads it into v; false if there is none, it is another machine's, or it is not a file of ours or root's:
// $RDX_CACHE may be a folder where others write, and a pipe there would never answer. Whether it can be so is for who reads it to say.
func (k *Kept) Read(v any) bool {
	file, err := os.OpenFile(filepath.Join(k.dir, k.name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	if of, ok := info.Sys().(*syscall.Stat_t); !ok || of.Uid != 0 && int(of.Uid) != os.Geteuid() {
		return false
	}
	b, err := io.ReadAll(io.LimitReader(file, mostKept+1))
	var f keptFile
	return err == nil && len(b) <= mostKept && json.Unmarshal(b, &f) == nil && f.Of == k.of && json.Unmarshal(f.Value, v) == nil
}

// Age is how long ago it was written. If that is yet to come the clock has been set since, and it may be of any age.
func (k *Kept) Age() time.Duration {
	info, err := os.Stat(filepath.Join(k.dir, k.name))
	if err != nil {
		return 0
	}
	if age := time.Since(info.ModTime()); age >= 0 {
		return age
	}
	return math.MaxInt64
}

// Write keeps it; whoever reads meanwhile sees it whole or not at all.
func (k *Kept) Write(v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b, err := json.Marshal(keptFile{k.of, value})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(k.dir, k.name)
	if err != nil {
		return fmt.Errorf("keep what was measured: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(k.dir, k.name))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("keep what was measured: %w", err)
	}
	return nil
}
