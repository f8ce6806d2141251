package opencl

import "fmt"

// Error is a call that the driver refused.
type Error struct {
	Call string // clXxx, and of which kernel or how much memory
	Code int32
	Log  string // the compiler's, where that is what failed
}

// Codes of OpenCL 1.2 that say what a user can do.
const (
	codeDeviceNotFound   = -1
	codeNotAvailable     = -2
	codeNoCompiler       = -3
	codeAllocation       = -4
	codeOutOfResources   = -5
	codeOutOfHostMemory  = -6
	codeBuildFailure     = -11
	codeInvalidQueue     = -36
	codeInvalidSize      = -61
	codePlatformNotFound = -1001 // of the library that looks for drivers
)

var codeNames = map[int32]string{
	codeDeviceNotFound: "CL_DEVICE_NOT_FOUND", codeNotAvailable: "CL_DEVICE_NOT_AVAILABLE", codeNoCompiler: "CL_COMPILER_NOT_AVAILABLE",
	codeAllocation: "CL_MEM_OBJECT_ALLOCATION_FAILURE", codeOutOfResources: "CL_OUT_OF_RESOURCES", codeOutOfHostMemory: "CL_OUT_OF_HOST_MEMORY",
	codeBuildFailure: "CL_BUILD_PROGRAM_FAILURE", codeInvalidQueue: "CL_INVALID_COMMAND_QUEUE", codeInvalidSize: "CL_INVALID_BUFFER_SIZE",
	codePlatformNotFound: "CL_PLATFORM_NOT_FOUND_KHR", -34: "CL_INVALID_CONTEXT", -48: "CL_INVALID_KERNEL", -54: "CL_INVALID_WORK_GROUP_SIZE",
	-14: "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", -9999: "illegal memory access (NVIDIA)",
}

func (e *Error) Error() string {
	name := codeNames[e.Code]
	if name == "" {
		name = "OpenCL error"
	}
	text := fmt.Sprintf("%s: %s (%d)", e.Call, name, e.Code)
	if e.Log != "" {
		text += ": " + e.Log
	}
	return text + " (consider: " + e.remedy() + ")"
}

// NoRoom is what an allocation would come to that the device's memory is too small for.
var NoRoom error = &Error{Call: "clCreateBuffer", Code: codeAllocation}

// OutOfMemory says whether the device had no room.
func (e *Error) OutOfMemory() bool {
	switch e.Code {
	case codeAllocation, codeOutOfHostMemory, codeInvalidSize:
		return true
	}
	return false
}

func (e *Error) remedy() string {
	switch {
	case e.Code == codePlatformNotFound || e.Code == codeDeviceNotFound:
		return NoLibrary
	case e.Code == codeBuildFailure || e.Code == codeNoCompiler:
		return "another version of the driver, another device of --gpu=list, or leaving --gpu out"
	case e.OutOfMemory():
		return "a smaller --gpu-segment, a coarser --block, a device with more memory, or leaving --gpu out"
	}
	return "the device may be lost or reset; see the kernel's log (dmesg), try again, or leave --gpu out"
}

func check(code int32, call string) error {
	if code == 0 {
		return nil
	}
	return &Error{Call: call, Code: code}
}
