package fleet

import (
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The few messages of Pyroscope's API that rdx needs, by hand: push.v1.PushRequest,
// querier.v1.SelectMergeProfileRequest, SeriesRequest and SeriesResponse.

// A Label is one of a series.
type Label struct{ Name, Value string }

// A Series is one profile with its labels, as it is pushed.
type Series struct {
	Labels  []Label
	Profile []byte // gzip'd pprof
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendString(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendVarint(b []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

// pushRequest encodes push.v1.PushRequest.
func pushRequest(series []Series) []byte {
	var out []byte
	for _, s := range series {
		var one []byte
		for _, l := range s.Labels {
			one = appendBytes(one, 1, appendString(appendString(nil, 1, l.Name), 2, l.Value))
		}
		one = appendBytes(one, 2, appendBytes(nil, 1, s.Profile))
		out = appendBytes(out, 1, one)
	}
	return out
}

// mergeRequest encodes querier.v1.SelectMergeProfileRequest. It never limits nodes: what a
// limit cuts off would be missing in the sums.
func mergeRequest(typeID, selector string, from, to time.Time) []byte {
	b := appendString(nil, 1, typeID)
	b = appendString(b, 2, selector)
	b = appendVarint(b, 3, from.UnixMilli())
	return appendVarint(b, 4, to.UnixMilli())
}

// seriesRequest encodes querier.v1.SeriesRequest.
func seriesRequest(matcher string, names []string, from, to time.Time) []byte {
	b := appendString(nil, 1, matcher)
	for _, n := range names {
		b = appendString(b, 2, n)
	}
	b = appendVarint(b, 3, from.UnixMilli())
	return appendVarint(b, 4, to.UnixMilli())
}

var errWire = errors.New("the answer is no protocol buffers message")

// eachField calls f with the fields of a message; v is nil but for those of bytes.
func eachField(b []byte, f func(field protowire.Number, v []byte) error) error {
	for len(b) > 0 {
		field, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, typ, b); n < 0 {
				return errWire
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if err := f(field, v); err != nil {
			return err
		}
	}
	return nil
}

// parseSeries decodes querier.v1.SeriesResponse.
func parseSeries(b []byte) ([][]Label, error) {
	var out [][]Label
	err := eachField(b, func(field protowire.Number, set []byte) error {
		if field != 2 {
			return nil
		}
		var labels []Label
		err := eachField(set, func(field protowire.Number, pair []byte) error {
			if field != 1 {
				return nil
			}
			var l Label
			err := eachField(pair, func(field protowire.Number, v []byte) error {
				switch field {
				case 1:
					l.Name = string(v)
				case 2:
					l.Value = string(v)
				}
				return nil
			})
			labels = append(labels, l)
			return err
		})
		out = append(out, labels)
		return err
	})
	return out, err
}
