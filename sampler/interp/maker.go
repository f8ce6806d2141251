package interp

// amd says that where makers' processors differ instructions do as AMD's do, and not as Intel's. The interpreted process runs on this machine's
// processor, which is asked.
var amd bool

// transactions says that the processor has transactional memory (RTM).
var transactions bool

// xtest says that no transaction is open: no thread can be held in one, and none is begun by the interpreter.
func xtest(m *Machine, _ *inst) { m.flags = m.flags&^arithFlags | FlagZF }

// misalignment says that MXCSR has misalignedSSE.
var misalignment bool
