#!/usr/bin/env bash
# test.sh [-short] PACKAGE... runs their tests and closes with "N passed, N failed, N skipped", each
# skip with its reason, and the time of each part; see internal/suite.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go run ./internal/suite "$@"
