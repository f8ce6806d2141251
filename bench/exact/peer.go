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

//go:embed peers/markers.c
var markersSource []byte

//go:embed peers/fenwick.c
var fenwickSource []byte

// peers are other analysers, in C, by what they are called in the table.
var peers = []struct {
	name   string
	source []byte
}{{"distances and times by a Fenwick tree, C", fenwickSource}, {"log2 bins by markers, C", markersSource}}

// buildPeer compiles a peer into the folder.
func buildPeer(dir, name string, source []byte) (path string, err error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", fmt.Errorf("%s: %w (consider: apt-get install gcc libc6-dev)", name, err)
	}
	path = filepath.Join(dir, name)
	build := exec.Command(gcc, "-O3", "-march=native", "-x", "c", "-o", path, "-")
	build.Stdin = bytes.NewReader(source)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	return path, nil
}

// peer is one that holds a stream.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startPeer(path string, blocks []uint64) (*peer, error) {
	p := &peer{cmd: exec.Command(path, strconv.Itoa(len(blocks)))}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
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
	return p, nil
}

// run analyses the stream once. The distances must be those of a Log2Stack.
func (p *peer) run(want *model.Hist) (bytes uint64, err error) {
	if _, err := p.in.Write([]byte{'\n'}); err != nil {
		return 0, err
	}
	line, err := p.out.ReadString('\n')
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

func (p *peer) end() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
