// Needs an OpenCL driver: Debian's pocl-opencl-icd runs on any processor.

package gpu_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu"
	"github.com/rdx-profiler/rdx/gpu/device"
	"github.com/rdx-profiler/rdx/gpu/opencl"
	"github.com/rdx-profiler/rdx/model"
)

// faultEnv is a fault of the driver of the program that stands in for rdx-gpu: "function:n:code" for the n-th call of it,
// "memory:bytes" for a device that has no more, "source" for kernels that no compiler takes. cmd/rdx's tests use it, too.
const faultEnv = "RDX_GPU_TEST_FAULT"

// TestMain is rdx-gpu where the tests start it.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == gpu.ServeArg || os.Args[1] == gpu.ListArg) {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "rdx-gpu:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	os.Setenv("RDX_GPU", self)
	os.Exit(m.Run())
}

func serve() error {
	load := func() (*opencl.API, error) {
		fault := os.Getenv(faultEnv)
		if fault == "nolibrary" {
			return opencl.Load("libNoOpenCL.so.1")
		}
		api, err := opencl.Load(opencl.Libraries...)
		bytes, small := strings.CutPrefix(fault, "memory:")
		switch {
		case err != nil || fault == "":
		case small:
			err = shrink(api, bytes)
		case fault == "source":
			spoil(api)
		default:
			err = breakAPI(api, fault)
		}
		return api, err
	}
	if os.Args[1] == gpu.ListArg {
		api, err := load()
		if err != nil {
			return err
		}
		all, err := device.List(api)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	shared, err := gpu.MapShared(gpu.SharedFD)
	if err != nil {
		return err
	}
	return device.Serve(load, shared, os.Stdin, os.Stdout)
}

// shrink makes devices have no more memory.
func shrink(api *opencl.API, bytes string) error {
	most, err := strconv.ParseUint(bytes, 10, 64)
	real := api.GetDeviceInfo
	api.GetDeviceInfo = func(id uintptr, param uint32, size uintptr, value unsafe.Pointer, got *uintptr) int32 {
		code := real(id, param, size, value, got)
		if param == 0x101F && size == 8 && value != nil { // CL_DEVICE_GLOBAL_MEM_SIZE
			*(*uint64)(value) = most
		}
		return code
	}
	return err
}

// spoil has the compiler given another text.
func spoil(api *opencl.API) {
	real := api.CreateProgram
	api.CreateProgram = func(ctx uintptr, n uint32, text **byte, length *uintptr, code *int32) uintptr {
		other := []byte("__kernel void broken(__global int *a) { a[0] = no_such_name; }\n")
		first, size := &other[0], uintptr(len(other))
		return real(ctx, n, &first, &size, code)
	}
}

// breakAPI makes the n-th call of a function fail, or crash if the code is "crash".
func breakAPI(api *opencl.API, fault string) error {
	part := strings.Split(fault, ":")
	if len(part) != 3 {
		return fmt.Errorf("fault %q", fault)
	}
	nth, err := strconv.Atoi(part[1])
	if err != nil {
		return err
	}
	code, _ := strconv.Atoi(part[2])
	f := reflect.ValueOf(api).Elem().FieldByName(part[0])
	if !f.IsValid() {
		return fmt.Errorf("no function %q", part[0])
	}
	real := reflect.ValueOf(f.Interface())
	calls := 0
	f.Set(reflect.MakeFunc(f.Type(), func(in []reflect.Value) []reflect.Value {
		if calls++; calls != nth {
			return real.Call(in)
		}
		if part[2] == "crash" { // in C
			nowhere := uintptr(8)
			api.GetPlatformIDs(1, *(**uintptr)(unsafe.Pointer(&nowhere)), nil)
		}
		if n := f.Type().NumIn(); f.Type().Out(0).Kind() == reflect.Uintptr {
			*in[n-1].Interface().(*int32) = int32(code)
			return []reflect.Value{reflect.ValueOf(uintptr(0))}
		}
		return []reflect.Value{reflect.ValueOf(int32(code))}
	}))
	return nil
}

func needDevice(t testing.TB) {
	t.Helper()
	if _, err := gpu.List(); err != nil {
		if !strings.Contains(err.Error(), opencl.NoLibrary) { // where there is one it must work
			t.Fatal(err)
		}
		t.Skip("needs a device of OpenCL: ", err)
	}
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// randomAccesses are of a few threads, some of them of several blocks.
func randomAccesses(r *rand.Rand, n, threads int, bytes uint64, stores float64) []model.Access {
	all := make([]model.Access, n)
	for i := range all {
		a := &all[i]
		*a = model.Access{Addr: 0x7fff00000000 + uint64(float64(bytes)*r.Float64()*r.Float64()), Size: 1 + r.Uint32N(16), PC: 0x400000 + r.Uint64N(40),
			Thread: int32(1000 + r.IntN(threads)), Op: model.Load}
		if r.Float64() < stores {
			a.Op = model.Store
		} else if r.IntN(50) == 0 {
			a.Op = model.OpUnknown
		}
		if r.IntN(1000) == 0 {
			a.Size = r.Uint32N(5000)
		}
		if i > 0 && r.IntN(3) == 0 {
			a.Addr = all[i-1].Addr
		}
	}
	return all
}

func inParts(r *rand.Rand, accesses []model.Access, add func([]model.Access) error) error {
	for len(accesses) > 0 {
		n := 1 + r.IntN(len(accesses))
		if err := add(accesses[:n]); err != nil {
			return err
		}
		accesses = accesses[n:]
	}
	return nil
}

func TestExact(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	needDevice(t)
	r := seeded(t)
	bins := model.LogBins(10).With([]uint64{77, 5000})
	accesses := randomAccesses(r, 300_000, 3, 10_000_000, 0.3)
	want, err := exact.New(model.WordBytes, bins)
	if err != nil {
		t.Fatal(err)
	}
	if err := want.Add(accesses); err != nil {
		t.Fatal(err)
	}
	e, err := gpu.NewExact(model.WordBytes, bins, gpu.Config{Device: "0", Segment: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := inParts(r, accesses, e.Add); err != nil {
		t.Fatal(err)
	}
	got, err := e.Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]any{
		"counts": {[5]uint64{want.Accesses(), want.Loads(), want.Stores(), want.Touches(), want.Blocks()}, [5]uint64{got.Accesses(), got.Loads(), got.Stores(), got.Touches(), got.Blocks()}},
		"times":  {want.Times(), got.Times()}, "distances": {want.Distances(), got.Distances()},
		"loads": {want.LoadDistances(), got.LoadDistances()}, "stores": {want.StoreDistances(), got.StoreDistances()},
		"footprint": {want.Footprint(), got.Footprint()}, "gap": {want.WindowError(), got.WindowError()},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", name, pair[1], pair[0])
		}
	}
}

// stacks is what both kinds of stacks on a GPU have.
type stacks interface {
	Add([]model.Access) error
	Finish() error
}

// Each touch of both kinds of stacks, their holes and invalidations among them.
func TestStacks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	needDevice(t)
	r := seeded(t)
	for round := range 10 {
		threads := 1 + r.IntN(6)
		accesses := randomAccesses(r, 1+r.IntN(8000), threads, 64<<r.IntN(12), []float64{0, 0.01, 0.3, 1}[r.IntN(4)])
		if round == 0 {
			accesses = randomAccesses(r, 150_000, 4, 3_000_000, 0.2)
		}
		segment := max(len(accesses)/5, 1+r.IntN(5000))
		for _, private := range []bool{false, true} {
			var want, got []exact.Touch
			var s exact.Stacks
			var err error
			if s, err = exact.NewSharedStack(64); private {
				s, err = exact.NewPrivateStacks(64)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Add(accesses, func(x *exact.Touch) { want = append(want, *x) }); err != nil {
				t.Fatal(err)
			}
			var g stacks
			each := func(x *exact.Touch) { got = append(got, *x) }
			if private {
				g, err = gpu.NewPrivateStacks(64, gpu.Config{Device: "0", Segment: segment}, each)
			} else {
				g, err = gpu.NewSharedStack(64, gpu.Config{Device: "0", Segment: segment}, each)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := inParts(r, accesses, g.Add); err != nil {
				t.Fatal(err)
			}
			if err := g.Finish(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(want, got) {
				for i := range want {
					if i >= len(got) || want[i] != got[i] {
						t.Fatalf("private %v, %d accesses of %d threads in segments of %d: touch %d of %d, want %d: %+v, want %+v", private, len(accesses), threads, segment, i, len(got), len(want), got[min(i, len(got)-1)], want[i])
					}
				}
			}
		}
	}
}

// A driver that fails is one line with what to do, wherever it fails.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	needDevice(t)
	r := seeded(t)
	accesses := randomAccesses(r, 200_000, 1, 1_000_000, 0.3)
	for _, x := range []struct{ fault, want string }{
		{"nolibrary", "install the package ocl-icd-libopencl1"},
		{"GetPlatformIDs:1:-1001", "CL_PLATFORM_NOT_FOUND_KHR"},
		{"GetDeviceIDs:2:-2", "CL_DEVICE_NOT_AVAILABLE"},
		{"CreateContext:1:-6", "CL_OUT_OF_HOST_MEMORY"},
		{"BuildProgram:1:-11", "another version of the driver"},
		{"source", "no_such_name"}, // the compiler's own words
		{"memory:2000000", "distinct blocks"},
		{"memory:100000", "segments of 20000 touches need"},
		{"CreateKernel:3:-5", "clCreateKernel"},
		{"CreateBuffer:1:-4", "a smaller --gpu-segment"},
		{"CreateBuffer:20:-4", "a device with more memory"},
		{"EnqueueMap:1:-12", "clEnqueueMapBuffer"},
		{"EnqueueKernel:1:-5", "clEnqueueNDRangeKernel"},
		{"EnqueueKernel:100:-5", "the device may be lost"},
		{"EnqueueWrite:6:-36", "the device may be lost"},
		{"EnqueueRead:2:-14", "clEnqueueReadBuffer"},
		{"EnqueueRead:2:-4", "a device with more memory"},
		{"WaitForEvents:3:-14", "clWaitForEvents"},
		{"SetKernelArg:50:-52", "clSetKernelArg"},
		{"Finish:1:-5", "clFinish"},
		{"EnqueueKernel:30:crash", "crashed"},
		{"BuildProgram:1:crash", "crashed"},
	} {
		t.Run(x.fault, func(t *testing.T) {
			t.Setenv(faultEnv, x.fault)
			e, err := gpu.NewExact(model.LineBytes, model.LogBins(10), gpu.Config{Device: "0", Segment: 20_000})
			if err == nil {
				for at := 0; at < len(accesses) && err == nil; at += 5000 {
					err = e.Add(accesses[at : at+5000])
				}
				if err == nil {
					_, err = e.Result()
				} else if again := e.Add(accesses[:5]); again == nil {
					t.Error("an error is not permanent")
				}
				e.Close()
			}
			if err == nil {
				t.Fatal("no error")
			}
			if s := err.Error(); !strings.Contains(s, x.want) || !strings.Contains(s, "(consider: ") || strings.Contains(s, "\n") {
				t.Errorf("%q, want one line with %q and a remedy", s, x.want)
			}
			if _, err := gpu.List(); x.fault == "nolibrary" && err == nil {
				t.Error("a list without a library")
			}
		})
	}
}

// What is not rdx-gpu, or another one, is said to be that.
func TestNoGPUProgram(t *testing.T) {
	for path, want := range map[string]string{"/bin/true": "ended without an answer", "/bin/false": "crashed", "/no/such": "not there"} {
		t.Setenv("RDX_GPU", path)
		if _, err := gpu.NewExact(64, model.LogBins(1), gpu.Config{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "(consider: ") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if _, err := gpu.List(); err == nil {
			t.Errorf("%s: a list", path)
		}
	}
}

// Devices are named by number and by a part of the name.
func TestChoose(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	needDevice(t)
	list, err := gpu.List()
	if err != nil {
		t.Fatal(err)
	}
	// The first one is a GPU if there is one. Without a name a processor is never taken.
	isGPU := list[0].Kind != "cpu"
	for _, x := range []struct {
		device string
		ok     bool
	}{{"", isGPU}, {"0", true}, {"99", false}, {"-1", false}, {"no such device", false}} {
		e, err := gpu.NewExact(64, model.LogBins(1), gpu.Config{Device: x.device, Segment: 1000})
		if (err == nil) != x.ok {
			t.Errorf("device %q: %v", x.device, err)
		}
		if err == nil {
			if e.Device == "" {
				t.Error("a device without a name")
			}
			e.Close()
		}
	}
	if _, err := gpu.NewExact(64, model.LogBins(1), gpu.Config{Device: "0", Segment: 1 << 30}); err == nil || errors.Is(err, exact.ErrTooManyBlocks) {
		t.Errorf("a segment too large: %v", err)
	}
}
