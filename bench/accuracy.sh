#!/usr/bin/env bash
# Prints the table of docs/explanation/accuracy.md: live profiles without a PMU against the
# exact answer, on real programs. See bench/accuracy/main.go. Needs root and a
# quiet machine; exact runs take some 20 minutes, live ones as much again for
# each pair of runs asked for. DIR keeps exact profiles from one call to the next.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/deps.sh mawk perl coreutils zstd pigz
make -s -C trace/valgrind
CGO_ENABLED=0 go build -o bin/rdx ./cmd/rdx
exec go run ./bench/accuracy -rdx bin/rdx ${DIR:+-dir "$DIR"} "$@"
