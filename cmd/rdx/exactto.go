package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// reportTo is where the report of rdx exact goes. A file is there at the end, whole, or not at all: a program may run for hours before.
type reportTo struct {
	io.Writer
	path string
	temp *os.File // renamed to path; nil if it is written to directly
	file *os.File // written to directly
}

// openReport opens a file for the report before there is one, so that a bad name is known at once.
func openReport(cmd *cobra.Command, path string) (*reportTo, error) {
	if path == "-" {
		return &reportTo{Writer: cmd.OutOrStdout()}, nil
	}
	if n, ok := strings.CutPrefix(path, "/dev/fd/"); ok { // opened anew a file would be written from its beginning
		fd, err := strconv.Atoi(n)
		if err != nil || fd < 0 {
			return nil, fmt.Errorf("write report: %s is no descriptor", path)
		}
		f := os.NewFile(uintptr(fd), path)
		if _, err := f.Stat(); err != nil {
			return nil, fmt.Errorf("write report: descriptor %d is not open", fd)
		}
		return &reportTo{Writer: f, file: f}, nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays a link
	}
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		if fi.IsDir() {
			return nil, fmt.Errorf("write report: %s is a directory: name a file in it", path)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("write report: %w", err)
		}
		return &reportTo{Writer: f, file: f}, nil
	}
	temp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("write report %s: %w", path, err)
	}
	return &reportTo{Writer: f, path: path, temp: f}, nil
}

// commit makes the report be there.
func (t *reportTo) commit() error {
	if t.file != nil {
		f := t.file
		t.file = nil
		if err := f.Close(); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	if t.temp == nil {
		return nil
	}
	f := t.temp
	t.temp = nil
	err := f.Close()
	if err == nil {
		err = os.Rename(f.Name(), t.path)
	}
	if err != nil {
		return fmt.Errorf("write report: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// discard closes what was not committed and leaves no file.
func (t *reportTo) discard() {
	if t.file != nil {
		t.file.Close()
	}
	if t.temp != nil {
		t.temp.Close()
		os.Remove(t.temp.Name())
	}
}
