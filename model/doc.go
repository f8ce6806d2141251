// Package model says what accesses mean: histograms of reuse times, their
// conversion to stack distances, footprints and miss ratio curves, and the
// profile that carries them.
//
// It imports nothing of rdx, builds on any OS and needs no privileges. Terms are those of
// the field: an access is one user-mode load or store, a block is what counts
// as the same datum, a reuse time is the number of accesses from a use to its
// reuse, a stack distance the number of distinct blocks between them.
package model
