// Package why says from a profile why a program misses its caches, what that costs it, and what would help: plain
// data for commands and pages. A figure that the profile does not support is left out, and the answer says so.
//
// The package is rdx's own and may change.
package why
