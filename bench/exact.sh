#!/bin/sh
# Measures the exact analysers against their goals; see bench/exact/main.go.
set -eu
cd "$(dirname "$0")/.."
CGO_ENABLED=0 exec go run ./bench/exact "$@"
