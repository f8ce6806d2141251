#!/usr/bin/env bash
# lint.sh runs staticcheck, of the version in internal/tools, and shellcheck, of the version in
# .ci/shellcheck-version: another says other things.
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
want=$(cat .ci/shellcheck-version)
have=$(shellcheck --version 2>/dev/null | sed -n 's/^version: //p' || true)
if [ "$have" = "$want" ]; then
	git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck -S warning
else
	echo "lint: skipped: shellcheck $want is wanted, there is ${have:-none} (Debian 12 has it: apt-get install shellcheck)"
fi
