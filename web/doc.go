// Package web shows profiles in a browser: as pages of a small server, or as one file that
// needs neither server nor network.
//
// What the pages show is a [Data] for each profile and kind of stack. All mathematics is
// done here, by model and report: miss ratios with their bands on a grid of cache sizes, and for
// each sample its predicted misses on the same grid, as a step function. The browser adds up and
// draws. So a number at a cache size is the number that the commands print, and the size that a
// user drags goes from one point of the grid to the next: nothing is interpolated.
//
// Names and paths in a profile are the profiled program's, which may be hostile. They reach the
// pages as JSON and are put there as text, never as markup, under a content security policy that
// runs no script but the bundle.
//
// The package is rdx's own and may change.
package web
