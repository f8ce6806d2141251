package opencl

import (
	"fmt"
	"strings"
	"time"
	"unsafe"
)

// Context is a device in use: a program, and two queues, so that what is copied and
// what is computed run side by side. It is for one goroutine. Close frees all that it has made.
type Context struct {
	*Device
	api     *API
	ctx     uintptr
	program uintptr
	queues  [2]uintptr
	kernels map[string]uintptr
	buffers map[uintptr]uint64
	mapped  map[uintptr]uintptr // pinned ones: where
	held    uint64
	// Observe, if it is set, is told how long each kernel took. They do not overlap with anything then.
	Observe func(kernel string, elapsed time.Duration)
}

// The queues of a context.
const (
	Compute = iota
	Copy
)

// Buffer is memory of the device.
type Buffer struct {
	mem  uintptr
	Size uint64 // bytes
}

// Local is an argument of a kernel: so many bytes of local memory.
type Local uint64

// Event is a command that was started; 0 is none.
type Event uintptr

// Open compiles the program for the device.
func (d *Device) Open(source, options string) (*Context, error) {
	if why := d.Unfit(); why != "" {
		return nil, fmt.Errorf("%s: %s (consider: another device of --gpu=list)", d, why)
	}
	c := &Context{Device: d, api: d.api, kernels: map[string]uintptr{}, buffers: map[uintptr]uint64{}, mapped: map[uintptr]uintptr{}}
	if err := c.open(source, options); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Context) open(source, options string) error {
	var code int32
	c.ctx = c.api.CreateContext(nil, 1, &c.id, 0, 0, &code)
	if err := check(code, "clCreateContext"); err != nil {
		return err
	}
	for i := range c.queues {
		c.queues[i] = c.api.CreateCommandQueue(c.ctx, c.id, 0, &code)
		if err := check(code, "clCreateCommandQueue"); err != nil {
			return err
		}
	}
	text := append([]byte(source), 0)
	first, length := &text[0], uintptr(len(source))
	c.program = c.api.CreateProgram(c.ctx, 1, &first, &length, &code)
	if err := check(code, "clCreateProgramWithSource"); err != nil {
		return err
	}
	how := append([]byte(options), 0)
	if code = c.api.BuildProgram(c.program, 1, &c.id, &how[0], 0, 0); code != 0 {
		return &Error{Call: "clBuildProgram", Code: code, Log: c.buildLog()}
	}
	return nil
}

// buildLog is the first line of what the compiler said that tells of an error.
func (c *Context) buildLog() string {
	const buildLog = 0x1183
	log := infoText(func(size uintptr, to unsafe.Pointer, got *uintptr) int32 {
		return c.api.GetBuildInfo(c.program, c.id, buildLog, size, to, got)
	})
	first, _, _ := strings.Cut(log, "\n")
	for _, line := range strings.Split(log, "\n") {
		if strings.Contains(line, "error") {
			first = line
			break
		}
	}
	return strings.TrimSpace(first)
}

// Held is the device's memory in use, in bytes.
func (c *Context) Held() uint64 { return c.held }

// Alloc returns memory of the device, at least 4 bytes. Its content is undefined.
func (c *Context) Alloc(size uint64) (*Buffer, error) {
	const readWrite = 1
	return c.alloc(size, readWrite)
}

func (c *Context) alloc(size, flags uint64) (*Buffer, error) {
	size = max(size, 4)
	var code int32
	mem := c.api.CreateBuffer(c.ctx, flags, uintptr(size), nil, &code)
	if err := check(code, fmt.Sprintf("clCreateBuffer of %d bytes beside %d", size, c.held)); err != nil {
		return nil, err
	}
	c.buffers[mem] = size
	c.held += size
	return &Buffer{mem, size}, nil
}

// Free gives memory back; nil is none.
func (c *Context) Free(b *Buffer) {
	if b == nil || b.mem == 0 {
		return
	}
	c.api.ReleaseMemObject(b.mem)
	c.held -= c.buffers[b.mem]
	delete(c.buffers, b.mem)
	b.mem = 0
}

// Pinned returns memory of the host from which the device copies at its full speed.
// It is good until Close.
func (c *Context) Pinned(size uint64) ([]byte, error) {
	const readWrite, allocHost, mapWrite = 1, 1 << 4, 2
	b, err := c.alloc(size, readWrite|allocHost)
	if err != nil {
		return nil, err
	}
	var code int32
	p := c.api.EnqueueMap(c.queues[Copy], b.mem, 1, mapWrite, 0, uintptr(b.Size), 0, nil, nil, &code)
	if err := check(code, "clEnqueueMapBuffer"); err != nil {
		return nil, err
	}
	c.mapped[b.mem] = p
	// The driver's memory: the collector knows nothing of it and must not.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), size), nil
}

// Write starts to copy to the device. from must stay as it is until the event is over.
func (c *Context) Write(queue int, to *Buffer, at uint64, from []byte) (Event, error) {
	if len(from) == 0 {
		return 0, nil
	}
	var e uintptr
	err := check(c.api.EnqueueWrite(c.queues[queue], to.mem, 0, uintptr(at), uintptr(len(from)), unsafe.Pointer(&from[0]), 0, nil, &e), "clEnqueueWriteBuffer")
	if err == nil {
		err = check(c.api.Flush(c.queues[queue]), "clFlush")
	}
	return Event(e), err
}

// Read copies from the device when what was started on the compute queue is done, and waits.
func (c *Context) Read(to []byte, from *Buffer, at uint64) error {
	if len(to) == 0 {
		return nil
	}
	return check(c.api.EnqueueRead(c.queues[Compute], from.mem, 1, uintptr(at), uintptr(len(to)), unsafe.Pointer(&to[0]), 0, nil, nil), "clEnqueueReadBuffer")
}

// Wait waits for events, and forgets them.
func (c *Context) Wait(events ...Event) error {
	var list []uintptr
	for _, e := range events {
		if e != 0 {
			list = append(list, uintptr(e))
		}
	}
	if len(list) == 0 {
		return nil
	}
	err := check(c.api.WaitForEvents(uint32(len(list)), &list[0]), "clWaitForEvents")
	for _, e := range list {
		c.api.ReleaseEvent(e)
	}
	return err
}

// Finish waits until the device has done all.
func (c *Context) Finish() error {
	for _, q := range c.queues {
		if err := check(c.api.Finish(q), "clFinish"); err != nil {
			return err
		}
	}
	return nil
}

// Run starts a kernel with so many work-groups of so many work-items. Arguments are
// *Buffer, Local, uint32 and uint64.
func (c *Context) Run(name string, groups, items uint64, args ...any) error {
	k, err := c.kernel(name)
	if err != nil {
		return err
	}
	for i, a := range args {
		var code int32
		switch v := a.(type) {
		case *Buffer:
			code = c.api.SetKernelArg(k, uint32(i), unsafe.Sizeof(v.mem), unsafe.Pointer(&v.mem))
		case Local:
			code = c.api.SetKernelArg(k, uint32(i), uintptr(v), nil)
		case uint32:
			code = c.api.SetKernelArg(k, uint32(i), 4, unsafe.Pointer(&v))
		case uint64:
			code = c.api.SetKernelArg(k, uint32(i), 8, unsafe.Pointer(&v))
		default:
			panic(fmt.Sprintf("opencl: kernel %s: argument %d is a %T", name, i, a))
		}
		if err := check(code, fmt.Sprintf("clSetKernelArg %d of kernel %s", i, name)); err != nil {
			return err
		}
	}
	global, local := uintptr(groups*items), uintptr(items)
	start := time.Now()
	err = check(c.api.EnqueueKernel(c.queues[Compute], k, 1, nil, &global, &local, 0, nil, nil), "clEnqueueNDRangeKernel of "+name)
	if c.Observe != nil && err == nil {
		err = check(c.api.Finish(c.queues[Compute]), "clFinish")
		c.Observe(name, time.Since(start))
	}
	return err
}

func (c *Context) kernel(name string) (uintptr, error) {
	if k := c.kernels[name]; k != 0 {
		return k, nil
	}
	text := append([]byte(name), 0)
	var code int32
	k := c.api.CreateKernel(c.program, &text[0], &code)
	if err := check(code, "clCreateKernel "+name); err != nil {
		return 0, err
	}
	c.kernels[name] = k
	return k, nil
}

// FreeAll gives all memory back, pinned one too, when what uses it is done. A driver that fails in this has the memory back
// with the context.
func (c *Context) FreeAll() {
	for mem, p := range c.mapped {
		c.api.EnqueueUnmap(c.queues[Copy], mem, p, 0, nil, nil)
	}
	if len(c.mapped) > 0 {
		c.api.Finish(c.queues[Copy])
	}
	c.mapped = map[uintptr]uintptr{}
	for mem := range c.buffers {
		c.api.ReleaseMemObject(mem)
	}
	c.buffers, c.held = map[uintptr]uint64{}, 0
}

// Close frees what the context has made.
func (c *Context) Close() {
	c.FreeAll()
	for _, k := range c.kernels {
		c.api.ReleaseKernel(k)
	}
	c.kernels = map[string]uintptr{}
	if c.program != 0 {
		c.api.ReleaseProgram(c.program)
	}
	for _, q := range c.queues {
		if q != 0 {
			c.api.ReleaseQueue(q)
		}
	}
	if c.ctx != 0 {
		c.api.ReleaseContext(c.ctx)
	}
	c.program, c.ctx, c.queues = 0, 0, [2]uintptr{}
}
