// Package fleet keeps profiles of many machines in Grafana Pyroscope and reads
// them back merged.
//
// Each window of a process becomes two series. "rdx" is for people: named frames
// and columns of misses, which flame graphs show. "rdx_raw" is the pack, for
// computing: Pyroscope keeps a sample's frames and its value and nothing else, so
// all else that a record says stands in one more frame at the root (see tag), and
// its columns are additive. Merging packs is adding values of equal stacks, which
// is what Pyroscope does.
//
// # Pack
//
// The columns of a pack are
//
//	observations/count      as in the profile
//	accesses/count          that these stand for, times the window's weight
//	squares/square_of_2_15  sum of the squares of what the independent observations stand for,
//	                        in units of (2^15 accesses)^2: bands of a merge come from it
//
// and its samples, leaf first, are the stacks as package pprofout writes them and then the
// tag. Times and counts of blocks are the middles of bins, PackBins to an octave. A sample
// with the tag's frame alone tells of the window:
//
//	head=1          of what the figures are, a value of 1 for each window
//	count=NAME      a count of the profile, such as a loss
//	sum=NAME        what is added up over windows, see sums
//
// A tag begins with the version of the format. Keys that a reader does not know are
// passed over, so that a later version can add some; one that gives a known key another
// meaning needs another version, which an older reader refuses.
//
// The package is rdx's own and may change.
package fleet
