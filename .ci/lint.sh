#!/usr/bin/env bash
# lint.sh runs staticcheck, of the version in internal/tools, and shellcheck, where Debian's package is
# installed.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
if go build -C internal/tools -o "$tool/staticcheck" honnef.co/go/tools/cmd/staticcheck; then
	"$tool/staticcheck" ./...
else
	echo "lint: staticcheck cannot be built, see above" >&2
	exit 1
fi
if command -v shellcheck >/dev/null; then
	git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck -S warning
else
	echo "lint: skipped: shellcheck is missing (apt-get install shellcheck)"
fi
