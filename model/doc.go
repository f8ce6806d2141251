// Package model says what accesses mean: histograms of reuse times, their
// conversion to stack distances, footprints and miss ratio curves, and the
// profile that carries them.
//
// It imports nothing of rdx, builds on any OS and needs no privileges. Terms are those of
// the field: an access is one user-mode load or store, a block is what counts
// as the same datum, a reuse time is the number of accesses from a use to its
// reuse, a stack distance the number of distinct blocks between them.
//
// # For others to import
//
// Stable: Access, Bins, Hist, Sparse, the models that NewModel knows, Curve, Profile and Record.
// What the estimators of a session share with it may change.
//
// Units: times are in accesses, or in touches of blocks where a Granularity says so; stack
// distances in a Hist are in blocks, in a Record in bytes; sizes are in bytes; a Clock's own
// unit is named in it. Shapes: Hist.W has a weight for each of Bins.Len bins; Record.Misses has
// one for each of Profile.Caches. Infinite stands for what is never reused. Errors: a histogram
// whose weights are negative, not finite or of other bins; what is not known is 0 or nil only
// where its comment says so.
//
// Sources: Kaplan and Meier (1958) for what was cut off, Xiang and Ding for footprints, Hu et al.
// (USENIX ATC 2016) for AET, Eklov and Hagersten (ISPASS 2010) for StatStack. Each formula names its own.
package model
