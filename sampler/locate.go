package sampler

// Located is the access a held thread is about to make.
type Located struct {
	Addr  uint64
	Size  int // bytes
	Store bool
	PC    uint64 // of the accessing instruction
	Next  uint64 // the instruction after it, which a trap on x86 reports
}

// Words is the number of aligned words the access overlaps.
func (l Located) Words() int {
	return int((l.Addr+uint64(l.Size)-1)/wordSize-l.Addr/wordSize) + 1
}

// Word is the address of the i-th of them.
func (l Located) Word(i int) uint64 { return (l.Addr/wordSize + uint64(i)) * wordSize }

// Declined says why no access was located. It is a loss of one sample, not
// the end of the session.
type Declined struct {
	Reason string // few and fixed: counted
	Op     string // the instruction, if that is the reason
}

// Label names the loss for a counter.
func (d *Declined) Label() string {
	if d.Op != "" {
		return d.Reason + ": " + d.Op
	}
	return d.Reason
}

func (d *Declined) Error() string { return "locate access: " + d.Label() }
