// Needs go to build rdx-gpu and an OpenCL driver, as Debian's pocl-opencl-icd; recordings need gcc, make and valgrind, too.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/gpu"
	"github.com/rdx-profiler/rdx/gpu/opencl"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// withGPU builds rdx-gpu.
func withGPU(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rdx-gpu")
	if out, err := exec.Command("go", "build", "-o", path, "../rdx-gpu").CombinedOutput(); err != nil {
		t.Fatalf("build rdx-gpu: %v\n%s", err, out)
	}
	t.Setenv("RDX_GPU", path)
	if _, err := gpu.List(); err != nil {
		if !strings.Contains(err.Error(), opencl.NoLibrary) { // where there is one it must work
			t.Fatal(err)
		}
		t.Skip("needs a device of OpenCL: ", err)
	}
}

// sameOnGPU compares the report in JSON, but for the device, with one made on processors.
func sameOnGPU(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"exact", "--format", "json"}, args...)
	var want, got map[string]any
	for _, x := range []struct {
		to   *map[string]any
		args []string
	}{{&want, args}, {&got, append(args, "--gpu=0", "--gpu-segment", "200000")}} {
		out, errs, err := rdxErr(t, "", x.args...)
		if err != nil {
			t.Fatalf("rdx %q: %v\n%s", x.args, err, errs)
		}
		if err := json.Unmarshal([]byte(out), x.to); err != nil {
			t.Fatal(err)
		}
	}
	if device, _ := got["device"].(string); device == "" {
		t.Errorf("%q: the report names no device", args)
	}
	delete(got, "device")
	if !reflect.DeepEqual(want, got) {
		t.Errorf("rdx %q: the GPU says otherwise", args)
	}
}

func sameProfileOnGPU(t *testing.T, args ...string) {
	t.Helper()
	var p [2]*model.Profile
	for i, more := range [][]string{nil, {"--gpu=0", "--gpu-segment", "1000000"}} {
		path := filepath.Join(t.TempDir(), "p.pb.gz")
		mustRdx(t, "", append(append([]string{"exact", "-o", path}, args...), more...)...)
		var err error
		if p[i], err = pprofout.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		p[i].Start, p[i].Duration = p[0].Start, p[0].Duration
	}
	if !reflect.DeepEqual(p[0].Records, p[1].Records) || !reflect.DeepEqual(p[0].Counts, p[1].Counts) {
		t.Errorf("rdx exact -o %q: the GPU's profile is another one", args)
	}
}

func TestExactOnGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	withGPU(t)
	out := mustRdx(t, "", "exact", "--gpu=list")
	if !strings.Contains(out, "compute units") {
		t.Errorf("list: %s", out)
	}
	var list struct{ Devices []gpu.Info }
	if err := json.Unmarshal([]byte(mustRdx(t, "", "exact", "--gpu=list", "--format", "json")), &list); err != nil || len(list.Devices) == 0 || list.Devices[0].Memory == 0 {
		t.Errorf("list: %v, %v", list, err)
	}
	plain := filepath.Join(t.TempDir(), "t.txt")
	if err := os.WriteFile(plain, []byte(mustRdx(t, "", "gen", "--zipf", "1", "-n", "30000", "-t", "200000")), 0o600); err != nil {
		t.Fatal(err)
	}
	sameOnGPU(t, plain)
	sameOnGPU(t, plain, "--log2")
	sameOnGPU(t, plain, "--approximate", "factor", "--piece", "2048")
	sameOnGPU(t, plain, "--approximate", "plain")
	sameOnGPU(t, plain, "--sizes", "3K,100K", "--bins", "64", "--block", "4096")
	for _, args := range [][]string{{"--jobs", "2"}, {"--shards", "rate=0.1"}, {"--sampled", "0.1"}} {
		if _, _, err := rdxErr(t, "", append([]string{"exact", plain, "--gpu"}, args...)...); exitCode(err) != exitUsage {
			t.Errorf("--gpu %q: %v", args, err)
		}
	}
	for _, args := range [][]string{{"--gpu-segment", "5"}, {"--gpu", "--gpu-segment", "99999999"}} {
		if _, _, err := rdxErr(t, "", append([]string{"exact", plain}, args...)...); exitCode(err) != exitUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, _, err := rdxErr(t, "", "exact", "--gpu=list", plain); err == nil {
		t.Error("a list of a trace")
	}
	if list.Devices[0].Kind == "cpu" { // not without being named
		if _, _, err := rdxErr(t, "", "exact", "--gpu", plain); err == nil || !strings.Contains(err.Error(), "there is no GPU") {
			t.Errorf("--gpu where there is only a processor: %v", err)
		}
	}
	// No profile where the GPU is not there, and it is said before anything is read.
	path := filepath.Join(t.TempDir(), "none.pb.gz")
	if out, errs, err := rdxErr(t, "", "exact", "--gpu=no such device", "-o", path, plain); err == nil || out != "" || errs != "" || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, %q, %q", err, out, errs)
	}
	t.Setenv("RDX_GPU", "/bin/false")
	if _, _, err := rdxErr(t, "", "exact", "--gpu", "-o", path, plain); err == nil || !strings.Contains(err.Error(), "(consider: ") {
		t.Errorf("where rdx-gpu ends at once: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a partial file")
	}
}

// Whatever fails in the middle is one line with what to do, and leaves no file, nor changes one that was there.
func TestExactGPUFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	withGPU(t)
	// The tests of package gpu stand in for rdx-gpu, with a driver that fails.
	broken := filepath.Join(t.TempDir(), "gpu.test")
	if out, err := exec.Command("go", "test", "-c", "-o", broken, "../../gpu").CombinedOutput(); err != nil {
		t.Fatalf("build the tests of gpu: %v\n%s", err, out)
	}
	t.Setenv("RDX_GPU", broken)
	dir := t.TempDir()
	plain, there := filepath.Join(dir, "t.txt"), filepath.Join(dir, "there.pb.gz")
	if err := os.WriteFile(plain, []byte(mustRdx(t, "", "gen", "--zipf", "1", "-n", "30000", "-t", "200000")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(there, []byte("was there"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRdx(t, "", "exact", "--gpu=0", "--gpu-segment", "20000", plain) // without a fault it works
	for fault, want := range map[string]string{"nolibrary": "install the package", "source": "no_such_name", "memory:2500000": "blocks beside segments of",
		"EnqueueKernel:100:-5": "the device may be lost", "EnqueueRead:3:-4": "more memory", "WaitForEvents:4:-14": "may be lost", "EnqueueKernel:60:crash": "crashed"} {
		t.Setenv("RDX_GPU_TEST_FAULT", fault)
		for _, more := range [][]string{nil, {"-o", filepath.Join(dir, "none.pb.gz")}, {"-o", there}} {
			args := append([]string{"exact", "--gpu=0", "--gpu-segment", "20000", plain}, more...)
			out, _, err := rdxErr(t, "", args...)
			if err == nil || out != "" || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "(consider: ") {
				t.Errorf("%s: rdx %q: %v, want one line with %q and a remedy; printed: %.200q", fault, more, err, want, out)
			}
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v: a file was left", files, err)
	}
	if b, err := os.ReadFile(there); err != nil || string(b) != "was there" {
		t.Errorf("a profile that was there is now %.100q, %v", b, err)
	}
}

// Recordings of programs, some with threads: the report and the profile are those made on processors.
func TestExactRecordingsOnGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	engine := traceEngine(t)
	withGPU(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	source, err := os.ReadFile("/usr/include/elf.h")
	if err != nil {
		t.Skipf("needs a text: %v", err)
	}
	if err := os.WriteFile(text, bytes.Repeat(source[:6_000], 2), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		stack   string
		profile bool
		argv    []string
	}{
		{"shared", true, []string{"gzip", "-kf", text}},
		{"shared", false, []string{"bzip2", "-1kf", text}},
		{"private", false, []string{"xz", "-T3", "--block-size=4KiB", "-0", "-kf", text}},
		{"private", false, []string{"sort", "--parallel=4", "-S", "1M", "-o", "/dev/null", text}},
		{"shared", false, []string{"mawk", "{ for (i = 1; i <= NF; i++) n[$i]++ }", text}},
		{"shared", false, []string{"openssl", "dgst", "-out", "/dev/null", "-sha256", text}},
		{"shared", false, []string{"sqlite3", ":memory:", "select 1 where 0"}},
		{"private", true, []string{"zstd", "-q", "-T2", "-1", "-f", "-o", text + ".zst", text}},
		{"shared", false, []string{"grep", "-q", "no such line", text}},
		{"shared", false, []string{"perl", "-ne", "$n{$_}++", text}},
	} {
		path, err := exec.LookPath(x.argv[0])
		if err != nil {
			t.Logf("%s is not installed, left out", x.argv[0])
			continue
		}
		t.Run(x.argv[0], func(t *testing.T) {
			recording := filepath.Join(dir, x.argv[0]+".rdt")
			cmd := append([]string{"trace", "record", "-q", "--engine", engine, "-o", recording, "--", path}, x.argv[1:]...)
			if out, err := rdxCmd(cmd...); err != nil && !errors.As(err, &exitError{}) {
				t.Fatalf("%v\n%s", err, out)
			}
			sameOnGPU(t, recording, "--stack", x.stack)
			if x.profile {
				sameProfileOnGPU(t, recording, "--stack", x.stack, "--block", "word")
			}
			t.Logf("%s", strings.SplitN(mustRdx(t, "", "exact", recording), "\n", 2)[0])
		})
	}
}

// A device that can't be used says why.
func TestGPUsUnfit(t *testing.T) {
	d := gpuDevices{[]gpu.Info{{Number: 1, Name: "a"}, {Number: 2, Name: "b", Unfit: "no 64-bit atomics"}}}
	if text := d.Text(); strings.Count(text, "cannot be used") != 1 || !strings.Contains(text, "cannot be used: no 64-bit atomics\n") {
		t.Error(text)
	}
	if rows := d.Table(); len(rows) != 3 || len(rows[0]) != len(rows[1]) {
		t.Errorf("%q", rows)
	}
}
