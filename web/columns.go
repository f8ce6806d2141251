package web

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strings"
)

// ints and doubles are columns: what packed writes beside the JSON, in which they are null.
type (
	ints    []int32
	doubles []float64
)

func (ints) MarshalJSON() ([]byte, error)    { return []byte("null"), nil }
func (doubles) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// packed is an answer with columns: packedMagic, the length of the JSON, the JSON, and one column after the other as
// little-endian numbers, so that a browser takes them as typed arrays where they lie. Each part begins at a multiple of 8 bytes.
// The JSON has the value, and where in it which column belongs.
type packed struct {
	head    []byte
	columns []any
	size    int64
}

const packedMagic = "rdx\x01"

type column struct {
	Name string `json:"name"` // a path, such as cells.use
	Kind string `json:"kind"`
	N    int    `json:"n"`
}

// pack takes a struct's columns out of it. They are not copied: nobody may change them any more.
func pack(v any) (*packed, error) {
	p := &packed{}
	head := struct {
		Value   any      `json:"value"`
		Columns []column `json:"columns"`
	}{v, nil}
	eachColumn(reflect.ValueOf(v), "", func(name string, c any) {
		switch c := c.(type) {
		case ints:
			head.Columns = append(head.Columns, column{name, "i32", len(c)})
			p.size += aligned(4 * len(c))
		case doubles:
			head.Columns = append(head.Columns, column{name, "f64", len(c)})
			p.size += int64(8 * len(c))
		}
		p.columns = append(p.columns, c)
	})
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	p.head = binary.LittleEndian.AppendUint32([]byte(packedMagic), uint32(len(text)))
	p.head = append(p.head, text...)
	p.size += int64(len(p.head))
	return p, nil
}

func aligned(n int) int64 { return int64(n+7) &^ 7 }

// eachColumn goes through the exported fields of structs, by the names that they have in JSON.
func eachColumn(v reflect.Value, path string, f func(name string, c any)) {
	v = reflect.Indirect(v)
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "" || name == "-" {
			continue
		}
		switch c := v.Field(i).Interface().(type) {
		case ints, doubles:
			f(path+name, c)
		default:
			eachColumn(v.Field(i), path+name+".", f)
		}
	}
}

// WriteTo writes it piece by piece: no second copy is made.
func (p *packed) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(p.head)
	written := int64(n)
	buffer := make([]byte, 0, 64<<10)
	flush := func() {
		if err == nil {
			n, err = w.Write(buffer)
			written += int64(n)
		}
		buffer = buffer[:0]
	}
	for _, c := range p.columns {
		switch c := c.(type) {
		case ints:
			for _, v := range c {
				if buffer = binary.LittleEndian.AppendUint32(buffer, uint32(v)); len(buffer) > cap(buffer)-8 {
					flush()
				}
			}
			if len(c)%2 != 0 {
				buffer = append(buffer, 0, 0, 0, 0)
			}
		case doubles:
			for _, v := range c {
				if buffer = binary.LittleEndian.AppendUint64(buffer, math.Float64bits(v)); len(buffer) > cap(buffer)-8 {
					flush()
				}
			}
		}
		if err != nil {
			return written, err
		}
	}
	flush()
	return written, err
}

// steps are functions of the grid, one after the other. Function f has the entries From[f] to From[f+1], with
// At from the greatest down: at the size with index c it is worth Value of the last of them whose At is greater than c, and 0 if
// there is none.
type steps struct {
	From  ints    `json:"from"`
	At    ints    `json:"at"`
	Value doubles `json:"value"`
}

// add appends the function with these values on the grid.
func (s *steps) add(values []float64) {
	if len(s.From) == 0 {
		s.From = append(s.From, 0)
	}
	was := 0.0
	for i := len(values); i > 0; i-- {
		v := values[i-1]
		if v == was || math.Abs(v-was) <= 1e-12*math.Abs(v) {
			continue
		}
		s.At, s.Value = append(s.At, int32(i)), append(s.Value, v)
		was = v
	}
	s.From = append(s.From, int32(len(s.At)))
}

// last is what the function added last is worth at the size with index c.
func (s *steps) last(c int) (v float64) {
	for e := s.From[len(s.From)-2]; int(e) < len(s.At) && int(s.At[e]) > c; e++ {
		v = s.Value[e]
	}
	return v
}

// values are those of function f, on a grid of len(out) sizes.
func (s *steps) values(f int, out []float64) []float64 {
	clear(out)
	v, e := 0.0, s.From[f]
	for i := len(out); i > 0; i-- {
		if e < s.From[f+1] && s.At[e] == int32(i) {
			v = s.Value[e]
			e++
		}
		out[i-1] = v
	}
	return out
}
