package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// The values of flags that are more than a number or a word.
func FuzzFlagValues(f *testing.F) {
	for _, s := range []string{"rate=0.01", "size=8192", "rate=0", "rate=nan", "size=-1", "size=99999999999", "250,20", "word", "64", "1,2,3", "0x40", "inf", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var shards shardsFlag
		if err := shards.Set(s); err == nil && !(shards.value.Size > 0 || shards.value.Rate > 0 && shards.value.Rate <= 1) {
			t.Errorf("--shards %q: %+v", s, shards.value)
		}
		for n := 1; n <= 2; n++ {
			v, err := numbers("normal", s, n)
			if err == nil && len(v) != n {
				t.Errorf("%q: %v, want %d numbers", s, v, n)
			}
			for _, x := range v {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%q: %v", s, v)
				}
			}
		}
		n, err := blockBytes(s)
		if err == nil {
			if _, err := model.NewGranularity(n); err != nil {
				t.Errorf("--block %q: %v", s, err)
			}
		} else if !errors.As(err, new(report.UsageError)) {
			t.Errorf("--block %q: %v is no usage error", s, err)
		}
		caches, err := cacheSizes(strings.Split(s, ","))
		for _, c := range caches {
			if err != nil || c.Size < 1 {
				t.Errorf("--caches %q: %+v, %v", s, caches, err)
			}
		}
	})
}

// A trace of any bytes, and flags of the commands that read one: a report, or an
// error of one line that names the place.
func FuzzExactCommand(f *testing.F) {
	f.Add([]byte(abbca), false)
	f.Add([]byte("I  0401ab73,5\n L 1fff0005e8,8\n M 0421e190,4\n"), true)
	f.Add([]byte("0xffffffffffffffff R 8\n0 W 64 1\nbroken\n"), false)
	f.Add([]byte("\x1f\x8b"), true)
	f.Fuzz(func(t *testing.T, in []byte, partial bool) {
		if strings.Count(string(in), "\n") > 1000 { // a run of the whole command each
			return
		}
		for _, stack := range []string{"shared", "private"} {
			out, _, err := rdxErr(t, string(in), "exact", "-", "--stack", stack, "--jobs", "1", "--block", "4096", "--format", "csv", "--partial="+strconv.FormatBool(partial))
			if err != nil {
				if out != "" || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "-:") {
					t.Errorf("%q: printed %q, error %q", in, out, err)
				}
				continue
			}
			if !strings.HasPrefix(out, "quantity,from,to,value\n") {
				t.Errorf("%q: printed %q", in, out)
			}
		}
	})
}
