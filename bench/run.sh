#!/usr/bin/env bash
# Prints the figures that README and docs quote, each against its peer in the
# same run. Needs root and a quiet machine; takes about half an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/deps.sh
echo "== rdx doctor"
./rdx doctor || true
echo
echo "== nanoseconds that a run of each BPF program takes"
./rdx doctor --json | sed -n '/"programs"/,/]/p'
echo
echo "== cost to the program profiled, interleaved pairs; counters where there are some"
go run ./bench/overhead
echo
echo "== the same by CPU time alone"
go run ./bench/overhead -flags "--source clock --clock cpu-time"
echo
echo "== what it costs to learn of a sample late, simulated"
go run ./bench/hold -late
echo
echo "== patterns of known reuse time"
go run ./bench/patterns
echo
echo "== conversions"
bench/models.sh
echo
echo "== exact engine"
bench/trace.sh
echo
echo "== exact analysis"
bench/exact.sh
