#!/usr/bin/env bash
# Compares the committed BPF code with a fresh one. The objects depend on the
# compiler, so that another clang than the one named in bpf/clang-version can
# only be told, not compared.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/check-web.sh
want=$(cat bpf/clang-version)
have=$(clang --version 2>/dev/null | sed -n 's/.*clang version \([0-9]*\).*/\1/p' || true)
if [ -z "$have" ]; then
	echo "check-generate: skipped: clang is missing (apt-get install clang llvm libbpf-dev)"
	exit 0
fi
if [ "$have" != "$want" ]; then
	echo "check-generate: skipped: clang $have, the committed objects are from clang $want"
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp go.mod go.sum "$tmp"
cp -r bpf "$tmp/bpf"
(cd "$tmp/bpf" && rm -f ./*_bpfel.* && go generate)
for f in bpf/*_bpfel.*; do
	if ! cmp -s "$f" "$tmp/$f"; then
		echo "check-generate: $f is stale: run make generate"
		exit 1
	fi
done
echo "check-generate: bpf/ is up to date (clang $have)"
