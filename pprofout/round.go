package pprofout

import (
	"fmt"
	"math"
)

// A carry turns a column of weights into integers. Each rounding error is
// carried to the next weight, so that every run of consecutive results is off
// by less than one from the sum of its weights, and the whole column by at
// most one half.
type carry struct {
	column string
	err    float64
	total  int64
}

// next rounds w >= 0. It is an error if w or the column's total does not fit
// an int64: pprof adds up columns without looking for overflow.
func (c *carry) next(w float64) (int64, error) {
	if n := int64(w); c.err == 0 && float64(n) == w && 0 <= w && w < 1<<53 && n <= math.MaxInt64-c.total { // as nearly all of an exact profile
		c.total += n
		return n, nil
	}
	if math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
		return 0, fmt.Errorf("%s: value %v is not a finite number >= 0", c.column, w)
	}
	// The error, -1/2 or more and less than 1/2, goes to the part below one:
	// added to a large weight it would be rounded away.
	whole, part := math.Modf(w)
	part += c.err
	up := math.Floor(part + 0.5)
	// 2^63 itself is a float64, MaxInt64 is not.
	if whole+up >= 1<<63 {
		return 0, c.overflow()
	}
	n := int64(whole) + int64(up)
	c.err = part - up
	if n > math.MaxInt64-c.total {
		return 0, c.overflow()
	}
	c.total += n
	return n, nil
}

func (c *carry) overflow() error {
	return fmt.Errorf("%s: values add up to more than %d, the most that a pprof file can hold: profile for a shorter time", c.column, int64(math.MaxInt64))
}
