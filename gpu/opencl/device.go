package opencl

import (
	"fmt"
	"strings"
	"unsafe"
)

// Device is one that a driver offers.
type Device struct {
	api      *API
	id       uintptr
	Platform string // of the driver
	Name     string
	Vendor   string
	Driver   string // its version
	Version  string // of OpenCL
	Kind     string // gpu, cpu, accelerator or other
	Memory   uint64 // bytes
	MaxAlloc uint64 // bytes, of one buffer
	Local    uint64 // bytes of a work-group's own memory
	Group    uint64 // work-items that a work-group has at most
	Units    uint32 // compute units
	Unified  bool   // its memory is the host's
	compiler bool
}

const (
	platformName = 0x0902

	deviceType        = 0x1000
	deviceUnits       = 0x1002
	deviceMaxGroup    = 0x1004
	deviceMaxAlloc    = 0x1010
	deviceMemory      = 0x101F
	deviceLocal       = 0x1023
	deviceCompiler    = 0x1028
	deviceName        = 0x102B
	deviceVendor      = 0x102C
	deviceDriver      = 0x102D
	deviceVersion     = 0x102F
	deviceUnified     = 0x1035
	typeCPU           = 1 << 1
	typeGPU           = 1 << 2
	typeAccelerator   = 1 << 3
	typeAll           = 0xFFFFFFFF
	needGroup, needKB = 256, 32
)

// Devices are all of all drivers, GPUs first, otherwise in the drivers' order.
func (a *API) Devices() ([]*Device, error) {
	var n uint32
	if err := check(a.GetPlatformIDs(0, nil, &n), "clGetPlatformIDs"); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, &Error{Call: "clGetPlatformIDs", Code: codePlatformNotFound}
	}
	platforms := make([]uintptr, n)
	if err := check(a.GetPlatformIDs(n, &platforms[0], nil), "clGetPlatformIDs"); err != nil {
		return nil, err
	}
	var gpus, others []*Device
	for _, p := range platforms {
		var n uint32
		code := a.GetDeviceIDs(p, typeAll, 0, nil, &n)
		if code == codeDeviceNotFound || code == 0 && n == 0 {
			continue
		}
		if err := check(code, "clGetDeviceIDs"); err != nil {
			return nil, err
		}
		ids := make([]uintptr, n)
		if err := check(a.GetDeviceIDs(p, typeAll, n, &ids[0], nil), "clGetDeviceIDs"); err != nil {
			return nil, err
		}
		platform := infoText(func(size uintptr, to unsafe.Pointer, got *uintptr) int32 {
			return a.GetPlatformInfo(p, platformName, size, to, got)
		})
		for _, id := range ids {
			d := a.device(id, platform)
			if d.Kind == "gpu" {
				gpus = append(gpus, d)
			} else {
				others = append(others, d)
			}
		}
	}
	all := append(gpus, others...)
	if len(all) == 0 {
		return nil, &Error{Call: "clGetDeviceIDs", Code: codeDeviceNotFound}
	}
	return all, nil
}

func (a *API) device(id uintptr, platform string) *Device {
	text := func(param uint32) string {
		return infoText(func(size uintptr, to unsafe.Pointer, got *uintptr) int32 {
			return a.GetDeviceInfo(id, param, size, to, got)
		})
	}
	number := func(param uint32, size uintptr) (v uint64) {
		a.GetDeviceInfo(id, param, size, unsafe.Pointer(&v), nil) // what is not known is 0
		return v
	}
	d := &Device{api: a, id: id, Platform: platform, Name: text(deviceName), Vendor: text(deviceVendor), Driver: text(deviceDriver),
		Version: text(deviceVersion), Memory: number(deviceMemory, 8), MaxAlloc: number(deviceMaxAlloc, 8), Local: number(deviceLocal, 8),
		Group: number(deviceMaxGroup, 8), Units: uint32(number(deviceUnits, 4)), Unified: number(deviceUnified, 4) != 0,
		compiler: number(deviceCompiler, 4) != 0}
	switch kind := number(deviceType, 8); {
	case kind&typeGPU != 0:
		d.Kind = "gpu"
	case kind&typeCPU != 0:
		d.Kind = "cpu"
	case kind&typeAccelerator != 0:
		d.Kind = "accelerator"
	default:
		d.Kind = "other"
	}
	return d
}

// infoText is a text that the driver has, without spaces around it.
func infoText(get func(size uintptr, to unsafe.Pointer, got *uintptr) int32) string {
	var n uintptr
	if get(0, nil, &n) != 0 || n == 0 {
		return ""
	}
	b := make([]byte, n)
	if get(n, unsafe.Pointer(&b[0]), nil) != 0 {
		return ""
	}
	return strings.TrimSpace(strings.TrimRight(string(b), "\x00"))
}

// Unfit says why the kernels of package device cannot run on it; "" if they can.
func (d *Device) Unfit() string {
	switch {
	case !d.compiler:
		return "its driver has no compiler"
	case d.Group < needGroup:
		return fmt.Sprintf("work-groups of %d, and %d are needed", d.Group, needGroup)
	case d.Local < needKB<<10:
		return fmt.Sprintf("%d KB of local memory, and %d are needed", d.Local>>10, needKB)
	}
	return ""
}

// String names the device and its driver.
func (d *Device) String() string {
	return fmt.Sprintf("%s (%s, %s)", d.Name, d.Platform, d.Driver)
}
