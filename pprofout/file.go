package pprofout

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rdx-profiler/rdx/model"
)

// WriteFile writes a profile to a file, all of it or nothing: to a temporary
// file in the same directory, which is renamed once it is on the disk. What
// is not a regular file, such as /dev/null or a pipe, is written to directly, as is standard
// output, named "-".
func WriteFile(path string, p *model.Profile, opts ...Option) error {
	data, err := encode(p, opts)
	if err == nil {
		err = writeData(path, data)
	}
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// KeepFile is WriteFile for a profile that can't be had again, as the program that it is of has gone on. If it can't be written to path,
// it is written to a new file in $TMPDIR, of which the error tells. written is where it is, "" for nowhere, and whole what Read gives of
// it: times are of bins, weights whole numbers, and records that the file can't tell apart are one.
func KeepFile(path string, p *model.Profile, opts ...Option) (whole *model.Profile, written string, err error) {
	data, err := encode(p, opts)
	if err != nil {
		return nil, "", fmt.Errorf("write profile: %w", err)
	}
	written = path
	if err = writeData(path, data); err != nil {
		written, err = keepElsewhere(data, fmt.Errorf("write profile: %w", err))
	}
	whole, unread := Read(bytes.NewReader(data))
	return whole, written, errors.Join(err, unread)
}

// keepElsewhere writes what could not be written where it was to be. Its error is that, with what became of it.
func keepElsewhere(data []byte, failed error) (written string, err error) {
	f, err := os.CreateTemp("", "rdx-*.pb.gz")
	if err == nil {
		_, err = f.Write(data)
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(f.Name())
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w; nor elsewhere (%w): make room, or name another place, by -o or TMPDIR, and profile again", failed, err)
	}
	return f.Name(), fmt.Errorf("%w: it is in %s instead: move it from there", failed, f.Name())
}

func writeData(path string, data []byte) (err error) {
	if path == "-" {
		_, err := os.Stdout.Write(data)
		return err
	}
	// A link stays a link: what it points to is replaced.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return fmt.Errorf("%s is a directory: name a file in it", path)
	} else if err == nil && !fi.Mode().IsRegular() {
		return writeTo(path, data)
	}

	f, err := createTemp(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return named(path, err)
	}
	if err := f.Sync(); err != nil {
		return named(path, err)
	}
	if err := f.Close(); err != nil {
		return named(path, err)
	}
	return os.Rename(f.Name(), path)
}

// CheckWritable says whether WriteFile could write to path as things are now, if
// the profile is no larger than usual: better known before a profile is taken than after.
func CheckWritable(path string) error {
	switch path {
	case "":
		return errors.New("write profile: no file name given")
	case "-":
		if isTerminal(1) {
			return errors.New("write profile: standard output is a terminal, and profiles are binary: name a file, or send it on, as in -o - > rdx.pb.gz")
		}
		return nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		return fmt.Errorf("write profile: %s is a directory: name a file in it", path)
	case err == nil && !fi.Mode().IsRegular():
		return nil // a pipe or a device: opening it may have effects
	}
	f, err := createTemp(path)
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	_, err = f.Write(make([]byte, usualSize))
	err = errors.Join(named(path, err), f.Close(), os.Remove(f.Name()))
	if err != nil {
		return fmt.Errorf("write profile: %w (want room for %d KiB)", err, usualSize>>10)
	}
	return nil
}

// usualSize is what a profile takes, or less.
const usualSize = 64 << 10

// createTemp is os.CreateTemp, but the file's mode is what the umask leaves:
// it becomes the profile that the user's tools open.
func createTemp(path string) (*os.File, error) {
	for i := range 1000 {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(path), os.Getpid(), i))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		return f, named(path, err)
	}
	return nil, fmt.Errorf("%s: too many temporary files beside it, named .%s.*.tmp: remove them", path, filepath.Base(path))
}

// named makes an error speak of the file that the user asked for.
func named(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return &os.PathError{Op: pe.Op, Path: path, Err: pe.Err}
	}
	return err
}

func writeTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// ReadFile is Read of a file. Its errors name the file.
func ReadFile(path string) (*model.Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.IsDir() {
		return nil, fmt.Errorf("%s is a directory: name a profile in it", path)
	}
	p, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
