package web

import (
	"encoding/base64"
	"encoding/binary"
	"math"
)

// Columns are little-endian arrays, in JSON as base64: the browser takes them as typed arrays.

type ints []int32

func (c ints) MarshalText() ([]byte, error) {
	b := make([]byte, 0, 4*len(c))
	for _, v := range c {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

type doubles []float64

func (c doubles) MarshalText() ([]byte, error) {
	b := make([]byte, 0, 8*len(c))
	for _, v := range c {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// steps are functions of the grid, one after the other. Function f has the entries From[f] to
// From[f+1]: entry (at, amount) is worth amount at all sizes with an index less than at. One that
// misses everywhere has at = number of sizes.
type steps struct {
	From   ints    `json:"from"`
	At     ints    `json:"at"`
	Amount doubles `json:"amount"`
}

// add appends the function with these values on the grid.
func (s *steps) add(values []float64) {
	if len(s.From) == 0 {
		s.From = append(s.From, 0)
	}
	// In the order in which they are summed up again: what was 0 is 0.
	sum := 0.0
	for i := len(values); i > 0; i-- {
		if d := values[i-1] - sum; math.Abs(d) > 1e-12*math.Abs(values[i-1]) {
			s.At = append(s.At, int32(i))
			s.Amount = append(s.Amount, d)
			sum += d
		}
	}
	s.From = append(s.From, int32(len(s.At)))
}

// values are those of function f, on a grid of len(out) sizes.
func (s *steps) values(f int, out []float64) []float64 {
	clear(out)
	sum, e := 0.0, s.From[f]
	for i := len(out); i > 0; i-- {
		if e < s.From[f+1] && s.At[e] == int32(i) {
			sum += s.Amount[e]
			e++
		}
		out[i-1] = sum
	}
	return out
}
