package model

import (
	"fmt"
	"strings"
)

// Model converts reuse times to stack distances and miss ratios.
//
// Reset takes the reuse times of the program, whose endless masses are blocks
// never touched again. Stacks adds to dst the stack distances of the accesses
// with the given reuse times: those given to Reset, or any part of the
// program's, such as one code location's. MissRatio is their miss ratio in a
// fully associative LRU cache, endless masses missing; 0 if they have no
// weight. A Model belongs to one goroutine and keeps its memory between
// Resets.
type Model interface {
	Reset(times *Hist) error
	Stacks(dst, times *Hist) error
	MissRatio(times *Hist, blocks uint64) float64
}

// ModelNames are the names NewModel takes, the best model first.
var ModelNames = []string{"ssx", "shen", "statstack", "aet", "footprint"}

// NewModel returns a model by name.
func NewModel(name string) (Model, error) {
	switch name {
	case "ssx":
		return &SSX{}, nil
	case "shen":
		return &Shen{}, nil
	case "statstack":
		return &StatStack{}, nil
	case "aet":
		return &AET{}, nil
	case "footprint":
		return &Footprint{}, nil
	}
	return nil, fmt.Errorf("unknown model %q (known are %s)", name, strings.Join(ModelNames, ", "))
}
