package pprofout

import (
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func TestAllocatorBeyondWrappers(t *testing.T) {
	site := func(names ...string) (out []*model.Location) {
		for _, n := range names {
			out = append(out, &model.Location{Address: 1, Lines: []model.Line{{Function: n, File: "/src/f.cc", Line: 7}}})
		}
		return out
	}
	for _, c := range []struct {
		site []*model.Location
		want string
	}{
		{site("malloc", "double* Allocate<double>(unsigned long)", "Domain::AllocateNodes(int)", "main"), "Domain::AllocateNodes(int) f.cc:7 < main"},
		{site("malloc", "operator new(unsigned long)", "std::allocator<int>::allocate(unsigned long)", "table::grow()", "main"), "table::grow() f.cc:7 < main"},
		{site("calloc", "xcalloc", "new_table"), "new_table f.cc:7"},
		{site("malloc", "xmalloc"), "xmalloc f.cc:7"}, // nothing else is known
		{site("malloc", "allocate_rows", "main"), "allocate_rows f.cc:7 < main"},
	} {
		if got := allocator(c.site); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
