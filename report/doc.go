// Package report is what rdx prints: every report as text in lines of about 80 columns,
// as a table for CSV and as JSON, and curves as SVG.
//
// A function takes a profile, or several, or what an exact analysis found, and returns a value that has all its numbers;
// Write writes that in one of Formats. How a number, a share, a size, a time, a band and a
// place in the code are shown is said once, in quantity.go and pair.go.
//
// Errors that come of what the user has asked for are a UsageError.
//
// The package is rdx's own and may change.
package report
