package model

import "path"

// DataKind says what kind of memory a datum lies in.
type DataKind uint8

const (
	DataUnknown    DataKind = iota // in no mapping that is known
	DataStatic                     // of a program or library
	DataStack                      // in a frame of the accessing thread's stack
	DataOtherStack                 // of the process's first thread, accessed by another
	DataHeap                       // the break, where malloc takes small blocks from
	DataAnonymous                  // mapped without a file: large blocks, arenas, other stacks
	DataFile                       // a mapped file that is no code
	DataBlock                      // a block from malloc or its kin whose allocation was seen
)

// Data is the data object of an access, as far as it is known.
type Data struct {
	Kind    DataKind
	Mapping *Mapping    // of Static: one of its file
	Address uint64      // of Static: in the file, as it is loaded
	Site    []*Location // of Block: the call stack of its allocation, from the allocator on
	Frame   int         // of Stack: index in Record.Use of the function whose frame it is, -1 if not known
	// Below and Above are of Stack, where Frame is known: bytes from the datum up to the stack pointer before that function was called, and from
	// its stack pointer up to the datum, which is less than nothing in a red zone.
	Below, Above int64
	// Name is what the object is called. Symbolizing gives it; what has been
	// read from a file has nothing else.
	Name string
}

// Describe names an object for which there is no symbol. function is that of
// a stack frame.
func (d *Data) Describe(function string) string {
	switch d.Kind {
	case DataStatic:
		return "static data of " + path.Base(d.Mapping.File)
	case DataStack:
		return "stack of " + function
	case DataOtherStack:
		return "stack of the first thread"
	case DataHeap:
		return "heap"
	case DataAnonymous:
		return "anonymous memory"
	case DataFile:
		return "mapped file"
	case DataBlock:
		return "heap block of " + function
	}
	return "unknown memory"
}
