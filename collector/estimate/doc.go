// Package estimate makes a profile of what a session has seen: plain data, an Input, becomes
// records with the weight that each stands for, its time in accesses, and the rate by which
// times were turned into accesses.
//
// It touches neither the kernel nor the target, and belongs to one goroutine.
//
// The package is rdx's own and may change.
package estimate
