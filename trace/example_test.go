package trace_test

import (
	"fmt"
	"strings"

	"github.com/rdx-profiler/rdx/trace"
)

// A line that can't be read does not end the trace.
func ExampleOpenText() {
	r, err := trace.OpenText(strings.NewReader("0x1000 R 8\n0x1008 W 8\nnonsense here\n0x1000 R 8\n"), "small")
	if err != nil {
		panic(err)
	}
	for r.Next() {
		a, bad := r.Record()
		if bad != nil {
			fmt.Println("bad:", bad)
			continue
		}
		fmt.Printf("%#x %v %d\n", a.Addr, a.Op, a.Size)
	}
	fmt.Println(r.Err())
	// Output:
	// 0x1000 load 8
	// 0x1008 store 8
	// bad: small:3: address is not a decimal or 0x number of up to 64 bits: "nonsense here"
	// 0x1000 load 8
	// <nil>
}
