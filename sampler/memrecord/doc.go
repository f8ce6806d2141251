// Package memrecord decodes what processors report of a sampled memory access:
// perf's data_src word, AMD's IBS op registers and the packets of Arm's
// Statistical Profiling Extension. It turns bytes into values and nothing
// else, so that it can be tested on any machine.
//
// Unknown encodings are never guessed: they are zero values with a name of
// their own (LevelUnknown), or an error with the offset of the byte.
//
// The package is rdx's own and may change.
package memrecord

// Level is where the data of an access came from.
type Level uint8

const (
	LevelUnknown Level = iota
	L1
	FillBuffer // on its way because of an earlier miss
	L2
	L3
	L4
	Memory
	RemoteMemory
	RemoteCache
	Uncached
	IO
)

var levelNames = [...]string{"unknown", "L1", "fill buffer", "L2", "L3", "L4", "memory", "remote memory", "remote cache", "uncached", "I/O"}

func (l Level) String() string { return levelNames[l] }

// Access is one sampled memory access as the processor reported it.
type Access struct {
	PC      uint64
	Addr    uint64 // linear; valid only if HasAddr
	HasAddr bool
	Load    bool
	Store   bool
	Size    int // bytes, 0 if not reported
	Level   Level
	TLBMiss bool // of the first level
	Locked  bool
	// Modified: the data came from another core's cache, which had changed it.
	Modified bool
	// Latency in cycles until the data came; 0 if not reported.
	Latency int
}

// Source says in words where the data came from, for a label: few and fixed.
func (a Access) Source() string {
	s := a.Level.String()
	if a.Modified {
		s += ", modified by another core"
	}
	if a.TLBMiss {
		s += ", TLB miss"
	}
	if a.Locked {
		s += ", locked"
	}
	return s
}
