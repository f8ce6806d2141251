package trace

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// engineSource is what the engines are built from: C under the GPL, which runs in processes of its own.
//
//go:embed valgrind/Makefile valgrind/*.c valgrind/*.h valgrind/LICENSE qemu/Makefile qemu/*.c qemu/*.h qemu/LICENSE
var engineSource embed.FS

// Engines are the kinds that can be built.
var Engines = []Kind{Valgrind, QEMU}

// file is the name of the built engine.
func (k Kind) file() string {
	if k == QEMU {
		return pluginName
	}
	return toolName
}

// Find is the folder with the built engine; "" if there is none. See FindEngine.
func (k Kind) Find() string { return findFile(string(k), k.file()) }

// UserEngines is the folder of engines that BuildEngine is meant for:
// $XDG_DATA_HOME/rdx/engine, or ~/.local/share/rdx/engine.
func UserEngines() (string, error) {
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "rdx/engine"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for engines: %w (name one with --output)", err)
	}
	return filepath.Join(home, ".local/share/rdx/engine"), nil
}

// ownEngines is UserEngines if nobody but the user and root can have put engines there: sudo may
// keep another user's home.
func ownEngines() string {
	dir, err := UserEngines()
	if err != nil {
		return ""
	}
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil || st.Uid != 0 && int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return ""
	}
	return dir
}

// BuildEngine builds an engine in a folder of its kind's name below dir, and says which. What
// the compiler says goes to w. A missing tool is named with its package.
func BuildEngine(ctx context.Context, k Kind, dir string, w io.Writer) (folder string, err error) {
	if runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("build engine %s: it is for x86-64 only, this is %s", k, runtime.GOARCH)
	}
	for _, tool := range []string{"make", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("build engine %s: it needs %s (apt-get install %s)", k, tool, tool)
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("build engine %s: %w", k, err)
	}
	if strings.ContainsAny(dir, " \t\n$#:%") {
		return "", fmt.Errorf("build engine %s: make can't write to %q: name a folder without such characters", k, dir)
	}
	tmp, err := os.MkdirTemp("", "rdx-engine-")
	if err != nil {
		return "", fmt.Errorf("build engine %s: %w", k, err)
	}
	defer os.RemoveAll(tmp)
	if err := os.CopyFS(tmp, engineSource); err != nil {
		return "", fmt.Errorf("build engine %s: %w", k, err)
	}
	folder = filepath.Join(dir, string(k))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("build engine %s: %w", k, err)
	}
	cmd := exec.CommandContext(ctx, "make", "-s", "-C", filepath.Join(tmp, string(k)), "OUT="+folder)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build engine %s: make: %w", k, err)
	}
	if _, err := os.Stat(filepath.Join(folder, k.file())); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("build engine %s: make has left no %s", k, k.file())
	}
	return folder, nil
}
