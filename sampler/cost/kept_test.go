package cost

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestKept(t *testing.T) {
	t.Setenv("RDX_CACHE", filepath.Join(t.TempDir(), "made"))
	k, err := Keep("figure", "v1")
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	if k.Read(&got) {
		t.Error("there is one before it was written")
	}
	for _, v := range [][]int{{1, 2}, {3}} {
		if err := k.Write(v); err != nil {
			t.Fatal(err)
		}
		if got = nil; !k.Read(&got) || len(got) != len(v) || got[0] != v[0] {
			t.Errorf("read %v of %v", got, v)
		}
	}
	other, err := Keep("figure", "v2")
	if err != nil {
		t.Fatal(err)
	}
	if other.Read(&got) {
		t.Error("another rdx's was read")
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("RDX_CACHE"), "*")); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	t.Setenv("RDX_CACHE", os.DevNull)
	if _, err := Keep("figure", "v1"); err == nil {
		t.Error("kept in a file that is no folder")
	}
}

func TestProcessor(t *testing.T) {
	info := "processor\t: 0\nmodel name\t: X 1\ncpu MHz\t\t: 12.5\nstepping\t: 3\n\nprocessor\t: 1\nmodel name\t: Y\n"
	if got := processor(info); got != "X 1 3" {
		t.Errorf("got %q", got)
	}
}

// keptFigure is 1, kept in a folder of its own, in the file path.
func keptFigure(t *testing.T) (k *Kept, path string) {
	t.Helper()
	t.Setenv("RDX_CACHE", t.TempDir())
	k, err := Keep("figure", "v1")
	if err == nil {
		err = k.Write(1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k, filepath.Join(os.Getenv("RDX_CACHE"), "figure.json")
}

// What a clock that was ahead has dated is not taken for new until that day has come.
func TestKeptOfTheFuture(t *testing.T) {
	k, path := keptFigure(t)
	if age := k.Age(); age > time.Minute {
		t.Errorf("%v old", age)
	}
	then := time.Now().Add(24 * time.Hour)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	if age := k.Age(); age < 24*time.Hour {
		t.Errorf("one of tomorrow is %v old", age)
	}
}

// $RDX_CACHE may be a folder where others write, too: what is no plain file of ours, or others may change, is not read.
func TestKeptOfOthers(t *testing.T) {
	k, path := keptFigure(t)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hidden := path + ".hidden"
	link := func() error { return errors.Join(os.Rename(path, hidden), os.Symlink(hidden, path)) }
	for name, plant := range map[string]func() error{
		"a link":         link,
		"a pipe":         func() error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
		"a folder":       func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"anybody's":      func() error { return os.Chmod(path, 0o666) },
		"another user's": func() error { return os.Chown(path, 65534, 65534) },
		"without an end": func() error { return os.WriteFile(path, append(bytes.Repeat([]byte{' '}, mostKept), good...), 0o600) },
		"cut off":        func() error { return os.WriteFile(path, good[:len(good)-3], 0o600) },
		"no number": func() error {
			return os.WriteFile(path, bytes.Replace(good, []byte(`"value":1`), []byte(`"value":"x"`), 1), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another user's" && os.Geteuid() != 0 {
				t.Skip("needs root, to give a file away")
			}
			if err := errors.Join(os.RemoveAll(path), os.RemoveAll(hidden), os.WriteFile(path, good, 0o600)); err != nil {
				t.Fatal(err)
			}
			var v int
			if !k.Read(&v) {
				t.Fatal("the good one is not read")
			}
			if err := plant(); err != nil {
				t.Fatal(err)
			}
			if k.Read(&v) {
				t.Errorf("read %d", v)
			}
		})
	}
}
