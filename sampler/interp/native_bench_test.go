// Needs amd64.

//go:build amd64

package interp

import (
	"fmt"
	"math/bits"
	"testing"
)

// BenchmarkFloat is a loop of one instruction each on floats, natively and by the
// interpreter's own code.
func BenchmarkFloat(b *testing.B) {
	for _, c := range []struct{ name, code string }{
		{"addsd", "f20f58c1"}, {"mulsd", "f20f59c1"}, {"addps", "0f58c1"}, {"vaddpd", "c5f558c2"}, {"vfmadd231pd", "c4e2f5b8c2"}, {"vfmadd231ps", "c4e275b8c2"}, {"addsd memory", "f20f5803"}, {"comisd", "660f2fc1"}, {"cvtsi2sd", "f2480f2ac0"},
	} {
		code := ""
		for range 20 {
			code += c.code
		}
		r, mem := target(b, code+fmt.Sprintf("e9%08x", bits.ReverseBytes32(uint32(-(len(code)/2+5)))))
		for i := range r.Vector.Z {
			r.Vector.Z[i] = Vec{0x3ff3c0ca428c59fb, 0x3ff3c0ca428c59fb, 0x3ff3c0ca428c59fb, 0x3ff3c0ca428c59fb}
		}
		for _, native := range []bool{true, false} {
			m := New()
			if m.nativeOK(); !native {
				m.stubs.err = errIllegal
			}
			name := c.name + "/interpreted"
			if native {
				name = c.name + "/native"
			}
			b.Run(name, func(b *testing.B) {
				n := 0
				for b.Loop() {
					m.Start(r, mem)
					n += m.Run(Limit{Accesses: 1000, Instructions: 21 * 100}).Instructions
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/instruction")
			})
		}
	}
}
