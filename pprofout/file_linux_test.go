// The disk-full test needs root, to mount a small tmpfs.
package pprofout

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func wantErr(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, w)
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rdx.pb.gz")
	for range 2 { // the second time over the first
		if err := WriteFile(path, sampleProfile()); err != nil {
			t.Fatal(err)
		}
		p, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, p, sampleProfile())
	}
	if n := names(t, dir); len(n) != 1 {
		t.Errorf("files %q, want the profile alone", n)
	}
	umask := syscall.Umask(0)
	syscall.Umask(umask)
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != os.FileMode(0o666&^umask) {
		t.Errorf("mode %v, %v: want what umask %o leaves of 0666", fi.Mode(), err, umask)
	}
}

func TestWriteFileLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o777); err != nil {
		t.Fatal(err)
	}
	target, link := filepath.Join(dir, "real", "p"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, sampleProfile()); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if _, err := ReadFile(target); err != nil {
		t.Error(err)
	}
}

func TestWriteFilePipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no named pipes:", err)
	}
	result := make(chan error, 1)
	go func() { result <- WriteFile(path, sampleProfile()) }()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, p, sampleProfile())
	if err := <-result; err != nil {
		t.Error(err)
	}
	if fi, _ := os.Stat(path); fi.Mode().IsRegular() {
		t.Error("the pipe was replaced by a file")
	}
}

func TestWriteFileErrors(t *testing.T) {
	dir := t.TempDir()
	wantErr(t, WriteFile(dir, sampleProfile()), "write profile", dir, "is a directory")
	missing := filepath.Join(dir, "no", "such", "p")
	wantErr(t, WriteFile(missing, sampleProfile()), missing, "no such file or directory")
	bad := sampleProfile()
	bad.BinsPerOctave = 0
	wantErr(t, WriteFile(filepath.Join(dir, "p"), bad), "bins per octave")
	if n := names(t, dir); len(n) != 0 {
		t.Errorf("left behind: %q", n)
	}
}

func TestWriteFileUnwritable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "p")
	wantErr(t, WriteFile(path, sampleProfile()), path, "permission denied")
}

func TestWriteFileDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a tmpfs")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skip("mounting a tmpfs:", err)
	}
	defer syscall.Unmount(dir, 0)
	path := filepath.Join(dir, "p")
	if err := WriteFile(path, sampleProfile()); err != nil {
		t.Fatal(err)
	}
	// Fill what is left.
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(f, zeros{})
	f.Close()

	wantErr(t, WriteFile(path, sampleProfile()), path, "no space left on device")
	if n := names(t, dir); len(n) != 2 {
		t.Errorf("files %q, want the old profile and the filler", n)
	}
	p, err := ReadFile(path)
	if err != nil {
		t.Fatal("the old profile is gone:", err)
	}
	diff(t, p, sampleProfile())

	wantErr(t, CheckWritable(path), path, "no space left on device", "want room for")
	elsewhere := t.TempDir()
	t.Setenv("TMPDIR", elsewhere)
	whole, written, err := KeepFile(path, sampleProfile())
	wantErr(t, err, path, "no space left on device", "it is in "+written+" instead")
	diff(t, whole, sampleProfile())
	if filepath.Dir(written) != elsewhere {
		t.Fatalf("it is in %q, want in %s", written, elsewhere)
	}
	if p, err = ReadFile(written); err != nil {
		t.Fatal(err)
	}
	diff(t, p, sampleProfile())
	t.Setenv("TMPDIR", dir)
	whole, written, err = KeepFile(path, sampleProfile())
	wantErr(t, err, path, "no space left on device", "nor elsewhere", "make room")
	if whole == nil || written != "" {
		t.Errorf("nothing could be written, but %q, and what is to be shown is %v", written, whole)
	}
	if n := names(t, dir); len(n) != 2 {
		t.Errorf("files %q, want the old profile and the filler", n)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestReadFileErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadFile(dir)
	wantErr(t, err, dir, "is a directory")
	_, err = ReadFile(filepath.Join(dir, "none"))
	wantErr(t, err, "none", "no such file")
}
