// Needs (each test skips visibly without them): objdump (binutils), for arm64 aarch64-linux-gnu-objdump; llvm-config-14 or llvm-config with g++.

package operand

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// disasmLine is one instruction as objdump prints it.
type disasmLine struct {
	addr uint64
	code []byte
	text string
}

// objdump calls yield for each instruction that the tool prints.
func objdump(t testing.TB, yield func(disasmLine), tool string, args ...string) {
	t.Helper()
	cmd := exec.Command(tool, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("skipped: no %s: %v", tool, err)
	}
	s := bufio.NewScanner(out)
	s.Buffer(make([]byte, 1<<20), 1<<20)
	for s.Scan() {
		addr, rest, ok := strings.Cut(s.Text(), ":\t")
		if !ok {
			continue
		}
		a, err := strconv.ParseUint(strings.TrimSpace(addr), 16, 64)
		if err != nil {
			continue
		}
		raw, text, _ := strings.Cut(rest, "\t")
		code, err := hex.DecodeString(strings.ReplaceAll(raw, " ", ""))
		if err != nil {
			t.Fatalf("objdump line %q: %v", s.Text(), err)
		}
		yield(disasmLine{a, code, strings.TrimSpace(text)})
	}
	if err := s.Err(); err != nil {
		t.Fatalf("read %s: %v", tool, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
}

// windows cuts the code of a binary into the parts that a test run looks at, as
// arguments for objdump: all of it in the long run, otherwise some pieces spread
// evenly over .text. A piece may begin inside an instruction, where the
// disassemblers must agree as well.
func windows(t testing.TB, path string) [][]string {
	t.Helper()
	if os.Getenv("RDX_LONG") != "" {
		return [][]string{nil}
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	if text == nil {
		t.Fatalf("%s: no .text", path)
	}
	const pieces, length = 6, 24 << 10
	var args [][]string
	for i := range uint64(pieces) {
		start := (text.Addr + text.Size/pieces*i) &^ 3
		args = append(args, []string{fmt.Sprintf("--start-address=%#x", start), fmt.Sprintf("--stop-address=%#x", min(start+length, text.Addr+text.Size))})
	}
	return args
}

// llvmInfo is what testdata/llvm_oracle.cpp knows about one instruction.
type llvmInfo struct {
	len   int // 0: LLVM does not decode it
	name  string
	flags string
	defs  []string
}

// llvmOracle builds the helper once and returns its path, or why there is none.
var llvmOracle = sync.OnceValues(func() (string, error) {
	config := ""
	for _, name := range []string{"llvm-config-14", "llvm-config"} {
		if p, err := exec.LookPath(name); err == nil {
			config = p
			break
		}
	}
	if config == "" {
		return "", errors.New("no llvm-config (package llvm-14-dev)")
	}
	flags, err := exec.Command(config, "--cxxflags", "--ldflags", "--libs", "--link-shared").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", config, err)
	}
	exe := filepath.Join(oracleDir, "llvm_oracle")
	args := append([]string{"-O1", "-o", exe, "testdata/llvm_oracle.cpp"}, strings.Fields(string(flags))...)
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the LLVM oracle (packages g++, llvm-14-dev): %w\n%s", err, out)
	}
	return exe, nil
})

// oracleDir holds the helper while the tests run.
var oracleDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "operand")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	oracleDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func buildLLVMOracle(t testing.TB) string {
	t.Helper()
	exe, err := llvmOracle()
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	return exe
}

// askLLVM decodes each code in one run of the helper.
func askLLVM(t testing.TB, exe, triple, features string, codes [][]byte) []llvmInfo {
	t.Helper()
	var in bytes.Buffer
	for _, c := range codes {
		fmt.Fprintf(&in, "%x\n", c)
	}
	cmd := exec.Command(exe, triple, features)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("llvm oracle: %v", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(codes) {
		t.Fatalf("llvm oracle: %d answers to %d instructions", len(lines), len(codes))
	}
	infos := make([]llvmInfo, len(codes))
	for i, line := range lines {
		f := strings.Fields(line)
		if len(f) != 4 {
			continue
		}
		infos[i].len, _ = strconv.Atoi(f[0])
		infos[i].name, infos[i].flags = f[1], f[2]
		if f[3] != "-" {
			infos[i].defs = strings.Split(strings.TrimSuffix(f[3], ","), ",")
		}
	}
	return infos
}

// tally counts by name and prints the largest first.
type tally map[string]int

func (c tally) total() (n int) {
	for _, v := range c {
		n += v
	}
	return n
}

func (c tally) String() string {
	names := make([]string, 0, len(c))
	for k := range c {
		names = append(names, k)
	}
	sort.Slice(names, func(i, j int) bool {
		if c[names[i]] != c[names[j]] {
			return c[names[i]] > c[names[j]]
		}
		return names[i] < names[j]
	})
	var b strings.Builder
	for i, k := range names {
		if i == 60 {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		fmt.Fprintf(&b, " %s:%d", k, c[k])
	}
	return b.String()
}

// mismatches collects disagreements, a few examples of each kind.
type mismatches struct {
	count    tally
	examples map[string][]string
}

func newMismatches() *mismatches {
	return &mismatches{tally{}, map[string][]string{}}
}

func (m *mismatches) add(kind, format string, args ...any) {
	m.count[kind]++
	if len(m.examples[kind]) < 2 {
		m.examples[kind] = append(m.examples[kind], fmt.Sprintf(format, args...))
	}
}

func (m *mismatches) report(t testing.TB) {
	t.Helper()
	for kind, n := range m.count {
		t.Errorf("%s: %d disagreements, such as\n  %s", kind, n, strings.Join(m.examples[kind], "\n  "))
	}
}
