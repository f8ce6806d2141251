package interp

// Cause says why a burst ended.
type Cause uint8

const (
	AccessesDone     Cause = iota // the accesses asked for are done
	InstructionLimit              // the instructions allowed are done
	Syscall                       // at a system call
	Unsupported                   // at an instruction that End.Op names
	Fault                         // at an instruction that would raise an exception
	Unreadable                    // at an access to a page that cannot be read
	Locked                        // at an atomic access, if Limit.StopLocked
	MemoryLimit                   // more pages touched than a burst may hold
	Arrived                       // at one of Machine.Waypoints
	numCauses
)

var causeNames = [numCauses]string{"accesses done", "instruction limit", "system call", "unsupported instruction",
	"fault", "unreadable page", "atomic access", "memory limit", "arrived"}

func (c Cause) String() string {
	if c >= numCauses {
		return "unknown"
	}
	return causeNames[c]
}

// Limit says how far to read ahead.
type Limit struct {
	// Accesses ends the burst once this many are done. The instruction that
	// reaches the number is completed, so there can be a few more; a string
	// instruction stops between two iterations.
	Accesses int
	// Instructions bounds the burst where code does not access memory. There
	// is no default: with zero nothing is run.
	Instructions int
	// StopLocked ends the burst at atomic read-modify-writes, which other
	// threads may see or contend for.
	StopLocked bool
}

// End is how a burst ended.
type End struct {
	Cause        Cause
	Op           string // mnemonic or opcode, for Unsupported and Fault
	Instructions int    // completed
	Err          error  // of Memory or LoadVector, with Unreadable
}

// Halt is the panic value that ends a burst from inside an instruction.
type Halt struct {
	Cause Cause
	Err   error
}

// Time is what a burst takes the processor's clock to be: what the thread will find is not known ahead, but where it goes
// seldom hangs on it.
type Time struct {
	// Ticks is the clock at Start; it goes on by one an instruction. 0: a burst ends where the clock is read.
	Ticks uint64
	// Read says that the burst has come by an instruction that reads the clock.
	Read bool
}

// SetTime says what the clock is at Start, for the bursts to come until it is told anew.
func (m *Machine) SetTime(ticks uint64) { m.time = Time{Ticks: ticks} }

// Time is what the clock was taken to be.
func (m *Machine) Time() Time { return m.time }

// Now is the clock after so many instructions since Start.
func (t *Time) Now(instructions int) uint64 {
	if t.Ticks == 0 {
		panic(Halt{Cause: Unsupported})
	}
	t.Read = true
	return t.Ticks + uint64(instructions)
}

func rdtsc(m *Machine, _ *inst) {
	now := m.time.Now(m.ran + m.done)
	m.r[RAX], m.r[RDX] = now&0xffffffff, now>>32
}

// rdtscp says that the thread runs on processor 0, which the clocks of the vDSO do not look at.
func rdtscp(m *Machine, in *inst) {
	rdtsc(m, in)
	m.r[RCX] = 0
}
