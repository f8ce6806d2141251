// Needs: the valgrind tool (make -C trace/valgrind).

package trace

import (
	"context"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// What RunTouches hands on is what Run does, block by block. The program's
// addresses differ from run to run, so that its accesses come from one.
func TestRunTouchesIsRun(t *testing.T) {
	for _, size := range []int{1, 8, 64, 4096} {
		g, err := model.NewGranularity(size)
		if err != nil {
			t.Fatal(err)
		}
		touches := newToucher(g)
		var got []uint64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for b := range touches.full {
				got = append(got, flat(b)...)
				touches.spare <- b
			}
		}()
		var want []uint64
		accesses := newBatcher(func(a []model.Access) { want = append(want, touched(g, a)...) })
		both := bothSinks{accesses, touches}
		if _, err := run(context.Background(), Command{Args: []string{"/bin/echo", "hello"}}, Options{Engine: engineDir(t)}, both); err != nil {
			t.Fatal(err)
		}
		accesses.flush()
		touches.flush()
		close(touches.full)
		<-done
		if len(want) < 10_000 || !slices.Equal(got, want) {
			t.Errorf("blocks of %d bytes: %d touches are not the %d of Run", size, len(got), len(want))
		}
	}
}
