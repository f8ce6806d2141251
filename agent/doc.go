// Package agent samples every process of a machine, a few at a time and for ever, and
// sends what it finds to a fleet's back end.
//
// Time goes by periods. Before each the agent draws processes with a probability
// proportional to their CPU time of late (schedule.go), as many as the machine's budget pays
// for (budget.go), and samples each in a child process of its own (child.go), which
// answers with one window (package fleet). A window stands for one over its probability
// windows, so that sums over any set of processes and periods come out right on average,
// whoever was drawn. Windows go to a spool on disk and from there to the server
// (spool.go, push.go).
//
// Nothing that a process says of itself is trusted: names, environments and paths of
// control groups are cleaned and bounded, and the number of series that they can make is,
// too (labels.go).
//
// The package is rdx's own and may change.
package agent
