package cost

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestKept(t *testing.T) {
	t.Setenv("RDX_CACHE", filepath.Join(t.TempDir(), "made"))
	k, err := Keep("figure", "v1")
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	if k.Read(&got) {
		t.Error("there is one before it was written")
	}
	for _, v := range [][]int{{1, 2}, {3}} {
		if err := k.Write(v); err != nil {
			t.Fatal(err)
		}
		if got = nil; !k.Read(&got) || len(got) != len(v) || got[0] != v[0] {
			t.Errorf("read %v of %v", got, v)
		}
	}
	other, err := Keep("figure", "v2")
	if err != nil {
		t.Fatal(err)
	}
	if other.Read(&got) {
		t.Error("another rdx's was read")
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("RDX_CACHE"), "*")); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	t.Setenv("RDX_CACHE", os.DevNull)
	if _, err := Keep("figure", "v1"); err == nil {
		t.Error("kept in a file that is no folder")
	}
}

func TestProcessor(t *testing.T) {
	info := "processor\t: 0\nmodel name\t: X 1\ncpu MHz\t\t: 12.5\nstepping\t: 3\n\nprocessor\t: 1\nmodel name\t: Y\n"
	if got := processor(info); got != "X 1 3" {
		t.Errorf("got %q", got)
	}
}

// What a clock that was ahead has dated is not taken for new until that day has come.
func TestKeptOfTheFuture(t *testing.T) {
	t.Setenv("RDX_CACHE", t.TempDir())
	k, err := Keep("figure", "v1")
	if err == nil {
		err = k.Write(1)
	}
	if err != nil {
		t.Fatal(err)
	}
	if age := k.Age(); age > time.Minute {
		t.Errorf("%v old", age)
	}
	then := time.Now().Add(24 * time.Hour)
	if err := os.Chtimes(filepath.Join(os.Getenv("RDX_CACHE"), "figure.json"), then, then); err != nil {
		t.Fatal(err)
	}
	if age := k.Age(); age < 24*time.Hour {
		t.Errorf("one of tomorrow is %v old", age)
	}
}
