#!/bin/sh
# Measures the instrumented engine and the trace format; see bench/trace/main.go.
set -eu
cd "$(dirname "$0")/.."
make -s -C trace/valgrind
CGO_ENABLED=0 go build -o bin/rdx ./cmd/rdx
RDX_ENGINE=$PWD/bin/valgrind exec go run ./bench/trace -rdx bin/rdx "$@"
