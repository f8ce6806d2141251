package ahead

import "github.com/rdx-profiler/rdx/sampler/pipeline"

// CanForetell says whether there is a model of this kind of processor.
const CanForetell = false

// Foretell tells nothing.
func (*Locator) Foretell(*pipeline.Model) (pipeline.Times, bool) { return pipeline.Times{}, false }
