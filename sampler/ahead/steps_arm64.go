package ahead

import "github.com/rdx-profiler/rdx/sampler/interp"

// CanStep says whether threads can be stepped on this architecture: there was no
// arm64 machine to try it on.
const CanStep = false

func (s *Steps) walk(int) (uint64, string) { return 0, interp.Unsupported.String() }
func (s *Steps) unchanged() bool           { return true }
func (s *Steps) afterCall() uint64         { return 0 }
