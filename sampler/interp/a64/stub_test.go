// Needs: qemu-user, for what uses it.
package a64

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stub is an arm64 program that QEMU's emulator runs, and that is stopped.
type stub struct {
	t     testing.TB
	cmd   *exec.Cmd
	conn  net.Conn
	r     *bufio.Reader
	tpidr int // number of the register, 0: not known
	mem   *os.File
	base  uint64 // of the program's addresses in mem
	dead  bool
}

// stubBlock is how much QEMU's stub reads at once.
const stubBlock = 256

// startStub starts a program and leaves it at its first instruction.
func startStub(t testing.TB, cpu, root string, argv ...string) *stub {
	t.Helper()
	qemu, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("needs qemu-aarch64 (apt-get install qemu-user)")
	}
	socket := filepath.Join(t.TempDir(), "gdb")
	s := &stub{t: t, cmd: exec.Command(qemu, append([]string{"-cpu", cpu, "-g", socket, "-L", root}, argv...)...)}
	s.cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "PYTHONHASHSEED=0", "PYTHONHOME=" + root + "/usr"}
	s.cmd.Dir = t.TempDir()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	for deadline := time.Now().Add(20 * time.Second); ; {
		if s.conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("connect to QEMU: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
	s.r = bufio.NewReaderSize(s.conn, 1<<16)
	s.ask("qSupported:xmlRegisters=aarch64;qXfer:features:read+")
	s.findTPIDR()
	return s
}

func (s *stub) kill() {
	if s.conn != nil {
		s.conn.Close()
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// askAll sends packets, each group in a block of its own, and returns the replies.
//
// QEMU reads a block and answers the packets in it one by one, reading an
// acknowledgement for each from behind the block; what comes in a block behind a
// step would be answered before the step. So a group may end with a step, and all
// that is sent at once is answered without waiting for each other.
func (s *stub) askAll(groups ...[]string) (replies []string) {
	var b bytes.Buffer
	n := 0
	for _, g := range groups {
		block := ""
		for _, p := range g {
			sum := byte(0)
			for i := range len(p) {
				sum += p[i]
			}
			block += fmt.Sprintf("$%s#%02x", p, sum)
		}
		if len(block) > stubBlock {
			s.t.Fatalf("block of %d bytes for QEMU", len(block))
		}
		b.WriteString(strings.Repeat("-", stubBlock-len(block)))
		b.WriteString(block)
		b.WriteString(strings.Repeat("+", len(g)))
		n += len(g)
	}
	if _, err := s.conn.Write(b.Bytes()); err != nil {
		s.dead = true
		return nil
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(60 * time.Second))
	for range n {
		reply, err := s.reply()
		if err != nil || strings.HasPrefix(reply, "W") || strings.HasPrefix(reply, "X") {
			s.dead = true
			return nil
		}
		replies = append(replies, reply)
	}
	return replies
}

func (s *stub) ask(p string) string {
	r := s.askAll([]string{p})
	if len(r) == 0 {
		return ""
	}
	return r[0]
}

func (s *stub) reply() (string, error) {
	if _, err := s.r.ReadString('$'); err != nil {
		return "", err
	}
	b, err := s.r.ReadString('#')
	if err != nil {
		return "", err
	}
	if _, err := s.r.Discard(2); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b, "#"), nil
}

// large sends a packet of any length, in blocks of its own.
func (s *stub) large(p string) string {
	sum := byte(0)
	for i := range len(p) {
		sum += p[i]
	}
	p = fmt.Sprintf("$%s#%02x", p, sum)
	if n := len(p) % stubBlock; n != 0 {
		p = strings.Repeat("-", stubBlock-n) + p
	}
	if _, err := s.conn.Write([]byte(p + "+")); err != nil {
		s.t.Fatal(err)
	}
	r, err := s.reply()
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

var tpidrLine = regexp.MustCompile(`name="TPIDR_EL0"[^>]*regnum="(\d+)"`)

// findTPIDR looks for the number of the thread pointer, which depends on the CPU.
func (s *stub) findTPIDR() {
	xml := ""
	for {
		r := s.ask(fmt.Sprintf("qXfer:features:read:system-registers.xml:%x,7f0", len(xml)))
		if r == "" || s.dead {
			return
		}
		xml += r[1:]
		if r[0] != 'm' {
			break
		}
	}
	if m := tpidrLine.FindStringSubmatch(xml); m != nil {
		s.tpidr, _ = strconv.Atoi(m[1])
	}
}

const (
	stubV    = 34 // numbers of registers
	stubFPSR = 66
	stubFPCR = 67
)

// parseGeneral reads a reply to g.
func parseGeneral(hexed string, r *Regs) bool {
	b, err := hex.DecodeString(hexed)
	if err != nil || len(b) < 268 {
		return false
	}
	le := binary.LittleEndian
	for i := range r.X {
		r.X[i] = le.Uint64(b[8*i:])
	}
	r.SP, r.PC = le.Uint64(b[248:]), le.Uint64(b[256:])
	r.NZCV = uint64(le.Uint32(b[264:])) & (0xf << flagShift)
	return true
}

func parseVec(hexed string) (v Vec) {
	b, err := hex.DecodeString(hexed)
	if err == nil && len(b) == 16 {
		v = Vec{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
	}
	return
}

func parseWord(hexed string) uint64 {
	b, _ := hex.DecodeString(hexed)
	b = append(b, make([]byte, 8)...)
	return binary.LittleEndian.Uint64(b)
}

// all reads every register.
func (s *stub) all(r *Regs) bool {
	groups := [][]string{{"g", fmt.Sprintf("p%x", stubFPSR), fmt.Sprintf("p%x", stubFPCR), fmt.Sprintf("p%x", s.tpidr)}}
	for i := 0; i < 32; i += 8 {
		var g []string
		for j := range 8 {
			g = append(g, fmt.Sprintf("p%x", stubV+i+j))
		}
		groups = append(groups, g)
	}
	a := s.askAll(groups...)
	if len(a) == 0 || !parseGeneral(a[0], r) {
		return false
	}
	r.Vector.FPSR, r.Vector.FPCR = uint32(parseWord(a[1])), uint32(parseWord(a[2]))
	if s.tpidr != 0 {
		r.TPIDR = parseWord(a[3])
	}
	for i := range 32 {
		r.Vector.V[i] = parseVec(a[4+i])
	}
	return true
}

// setAll writes every register but the thread pointer.
func (s *stub) setAll(r *Regs) {
	le := binary.LittleEndian
	var b []byte
	for _, x := range r.X {
		b = le.AppendUint64(b, x)
	}
	b = le.AppendUint64(le.AppendUint64(b, r.SP), r.PC)
	b = le.AppendUint32(b, uint32(r.NZCV))
	if a := s.large("G" + hex.EncodeToString(b)); a != "OK" {
		s.t.Fatalf("QEMU sets no registers: %q", a)
	}
	var groups [][]string
	for i := range 32 {
		v := r.Vector.V[i].bytes()
		groups = append(groups, []string{fmt.Sprintf("P%x=%x", stubV+i, v[:])})
	}
	groups = append(groups, []string{fmt.Sprintf("P%x=%s", stubFPSR, hex.EncodeToString(le.AppendUint32(nil, r.Vector.FPSR)))})
	for _, a := range s.askAll(groups...) {
		if a != "OK" {
			s.t.Fatalf("QEMU sets no vector register: %q", a)
		}
	}
}

var errStub = errors.New("QEMU cannot read this page")

// ReadPage implements interp.Memory.
func (s *stub) ReadPage(addr uint64, buf *[4096]byte) error {
	const part = 1024
	var g [][]string
	for at := 0; at < len(buf); at += part {
		g = append(g, []string{fmt.Sprintf("m%x,%x", addr+uint64(at), part)})
	}
	a := s.askAll(g...)
	if len(a) != len(g) {
		return errStub
	}
	for i, hexed := range a {
		if n, err := hex.Decode(buf[i*part:(i+1)*part], []byte(hexed)); err != nil || n != part {
			return errStub
		}
	}
	return nil
}

// openMemory opens the memory of a program that is mapped from file at addr: the
// stub does not write to pages with code that has run.
func (s *stub) openMemory(file string, addr uint64) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if start, _, _ := strings.Cut(line, "-"); strings.Contains(line, file) {
			at, _ := strconv.ParseUint(start, 16, 64)
			s.base = at - addr
			if s.mem, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", s.cmd.Process.Pid), os.O_RDWR, 0); err != nil {
				s.t.Fatal(err)
			}
			s.t.Cleanup(func() { s.mem.Close() })
			return
		}
	}
	s.t.Fatalf("%s is not mapped", file)
}

// write writes to memory that was opened.
func (s *stub) write(addr uint64, b []byte) {
	if _, err := s.mem.WriteAt(b, int64(s.base+addr)); err != nil {
		s.t.Fatal(err)
	}
}
