// Package opencl speaks to a GPU through the system's OpenCL library, without
// cgo: the library is opened when a program runs, and its kernels are source that the
// device's driver compiles. It has what package device needs of OpenCL 1.2.
//
// The package is rdx's own and may change.
package opencl

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// API is the functions of the library: the boundary beyond which is the
// driver's code. Names, arguments and return codes are those of the OpenCL 1.2
// specification, clXxx as Xxx; where a function returns a handle, the code is the last argument's.
type API struct {
	GetPlatformIDs     func(n uint32, ids *uintptr, num *uint32) int32
	GetPlatformInfo    func(id uintptr, param uint32, size uintptr, value unsafe.Pointer, got *uintptr) int32
	GetDeviceIDs       func(platform uintptr, kind uint64, n uint32, ids *uintptr, num *uint32) int32
	GetDeviceInfo      func(id uintptr, param uint32, size uintptr, value unsafe.Pointer, got *uintptr) int32
	CreateContext      func(props *uintptr, n uint32, devices *uintptr, notify, user uintptr, code *int32) uintptr
	CreateCommandQueue func(ctx, device uintptr, props uint64, code *int32) uintptr
	CreateProgram      func(ctx uintptr, n uint32, text **byte, length *uintptr, code *int32) uintptr
	BuildProgram       func(program uintptr, n uint32, devices *uintptr, options *byte, notify, user uintptr) int32
	GetBuildInfo       func(program, device uintptr, param uint32, size uintptr, value unsafe.Pointer, got *uintptr) int32
	CreateKernel       func(program uintptr, name *byte, code *int32) uintptr
	SetKernelArg       func(kernel uintptr, i uint32, size uintptr, value unsafe.Pointer) int32
	CreateBuffer       func(ctx uintptr, flags uint64, size uintptr, host unsafe.Pointer, code *int32) uintptr
	EnqueueWrite       func(queue, buf uintptr, wait uint32, at, size uintptr, from unsafe.Pointer, n uint32, after, event *uintptr) int32
	EnqueueRead        func(queue, buf uintptr, wait uint32, at, size uintptr, to unsafe.Pointer, n uint32, after, event *uintptr) int32
	EnqueueMap         func(queue, buf uintptr, wait uint32, flags uint64, at, size uintptr, n uint32, after, event *uintptr, code *int32) uintptr
	EnqueueUnmap       func(queue, buf, p uintptr, n uint32, after, event *uintptr) int32
	EnqueueKernel      func(queue, kernel uintptr, dims uint32, offset, global, local *uintptr, n uint32, after, event *uintptr) int32
	Flush              func(queue uintptr) int32
	Finish             func(queue uintptr) int32
	WaitForEvents      func(n uint32, events *uintptr) int32
	ReleaseEvent       func(event uintptr) int32
	ReleaseMemObject   func(mem uintptr) int32
	ReleaseKernel      func(kernel uintptr) int32
	ReleaseProgram     func(program uintptr) int32
	ReleaseQueue       func(queue uintptr) int32
	ReleaseContext     func(ctx uintptr) int32
}

// Libraries are the names under which Load looks for the library.
var Libraries = []string{"libOpenCL.so.1", "libOpenCL.so"}

// NoLibrary is the remedy where there is no OpenCL library.
const NoLibrary = "install the package ocl-icd-libopencl1 and the GPU's driver: nvidia-opencl-icd, rocm-opencl-icd or mesa-opencl-icd for AMD, intel-opencl-icd; pocl-opencl-icd runs on processors"

// Load opens the first library that there is.
func Load(libraries ...string) (*API, error) {
	var handle uintptr
	var err error
	for _, name := range libraries {
		if handle, err = purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL); err == nil {
			break
		}
	}
	if handle == 0 {
		return nil, fmt.Errorf("open OpenCL: %w (consider: %s)", err, NoLibrary)
	}
	a := &API{}
	for name, f := range a.functions() {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("open OpenCL: %w (consider: a library of OpenCL 1.2 or later)", err)
		}
		purego.RegisterFunc(f, symbol)
	}
	return a, nil
}

func (a *API) functions() map[string]any {
	return map[string]any{
		"clGetPlatformIDs": &a.GetPlatformIDs, "clGetPlatformInfo": &a.GetPlatformInfo,
		"clGetDeviceIDs": &a.GetDeviceIDs, "clGetDeviceInfo": &a.GetDeviceInfo,
		"clCreateContext": &a.CreateContext, "clCreateCommandQueue": &a.CreateCommandQueue,
		"clCreateProgramWithSource": &a.CreateProgram, "clBuildProgram": &a.BuildProgram, "clGetProgramBuildInfo": &a.GetBuildInfo,
		"clCreateKernel": &a.CreateKernel, "clSetKernelArg": &a.SetKernelArg,
		"clCreateBuffer": &a.CreateBuffer, "clEnqueueWriteBuffer": &a.EnqueueWrite, "clEnqueueReadBuffer": &a.EnqueueRead,
		"clEnqueueMapBuffer": &a.EnqueueMap, "clEnqueueUnmapMemObject": &a.EnqueueUnmap, "clEnqueueNDRangeKernel": &a.EnqueueKernel,
		"clFlush": &a.Flush, "clFinish": &a.Finish, "clWaitForEvents": &a.WaitForEvents, "clReleaseEvent": &a.ReleaseEvent,
		"clReleaseMemObject": &a.ReleaseMemObject, "clReleaseKernel": &a.ReleaseKernel, "clReleaseProgram": &a.ReleaseProgram,
		"clReleaseCommandQueue": &a.ReleaseQueue, "clReleaseContext": &a.ReleaseContext,
	}
}
