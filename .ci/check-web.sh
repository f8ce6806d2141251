#!/usr/bin/env bash
# Compares the committed bundle of the pages with a fresh one. esbuild is pinned and gives the same
# bytes everywhere.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
	echo "check-web: skipped: node or npm is missing (apt-get install nodejs npm)"
	exit 0
fi
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
	echo "check-web: skipped: node $(node --version), 20 or later is needed"
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -r web/ui "$tmp/ui"
if ! "$tmp/ui/build.sh" "$tmp/static" >"$tmp/log" 2>&1; then
	cat "$tmp/log"
	if grep -qE 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT' "$tmp/log"; then
		echo "check-web: skipped: the npm registry can't be reached"
		exit 0
	fi
	echo "check-web: the pages can't be bundled"
	exit 1
fi
if ! diff -rq web/static "$tmp/static"; then
	echo "check-web: web/static is stale: run make generate"
	exit 1
fi
size=$(cat web/static/app.js web/static/app.css | gzip -9 | wc -c)
if [ "$size" -gt 400000 ]; then
	echo "check-web: the bundle has $size bytes, packed; at most 400000 may it have"
	exit 1
fi
echo "check-web: web/static is up to date ($size bytes, packed)"
