// Package layout has the rules of how rdx is laid out, as a test: which package may import
// which, and how large packages, types and functions may be.
package layout
