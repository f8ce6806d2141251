// Package coverage counts, by simulation, how often bands hold the truth: it records what real
// programs touch, draws sessions from it as a collector would see them, has the estimator that users
// get make profiles of them, and compares what these say with the exact miss ratios.
//
// A recorded stretch of a program's steady state is run through again and again, so that there is an
// exact answer. Who draws knows how long each access takes; the estimator knows of it what a session
// does. What is not simulated: threads, probes, losses, and instructions that can't be read ahead.
package coverage
