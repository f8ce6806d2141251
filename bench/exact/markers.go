package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

//go:embed markers/markers.c
var markersSource []byte

// buildMarkers compiles the peer of the bins of an octave into the folder.
func buildMarkers(dir string) (path string, err error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", fmt.Errorf("the analyser with markers in C: %w (consider: apt-get install gcc libc6-dev)", err)
	}
	path = filepath.Join(dir, "markers")
	build := exec.Command(gcc, "-O3", "-march=native", "-x", "c", "-o", path, "-")
	build.Stdin = bytes.NewReader(markersSource)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	return path, nil
}

// markers is the peer, which holds a stream.
type markers struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startMarkers(path string, blocks []uint64) (*markers, error) {
	m := &markers{cmd: exec.Command(path, strconv.Itoa(len(blocks)))}
	m.cmd.Stderr = os.Stderr
	in, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.in, m.out = in, bufio.NewReader(out)
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	var raw []byte
	for part := range slices.Chunk(blocks, 1<<16) {
		raw = raw[:0]
		for _, b := range part {
			raw = binary.NativeEndian.AppendUint64(raw, b)
		}
		if _, err := in.Write(raw); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// run analyses the stream once. The distances must be those of a Log2Stack.
func (m *markers) run(want *model.Hist) (bytes uint64, err error) {
	if _, err := m.in.Write([]byte{'\n'}); err != nil {
		return 0, err
	}
	line, err := m.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	var n []uint64
	for _, field := range strings.Fields(line) {
		x, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, err
		}
		n = append(n, x)
	}
	if len(n) < 3 || float64(n[1]) != want.Cold {
		return 0, fmt.Errorf("first touches differ from those of --log2: %s, want %v", line, want.Cold)
	}
	for i, x := range n[2:] {
		if float64(x) != want.W[i] {
			return 0, fmt.Errorf("%d distances of %d bits, --log2 has %v", x, i, want.W[i])
		}
	}
	return n[0], nil
}

func (m *markers) end() error { return errors.Join(m.in.Close(), m.cmd.Wait()) }
