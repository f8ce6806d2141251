#!/usr/bin/env bash
# Holds the BPF code against bpf/.clang-format. Versions of clang-format differ: the one of bpf/clang-version is meant.
set -euo pipefail
cd "$(dirname "$0")/.."
want=$(cat bpf/clang-version)
for c in "clang-format-$want" clang-format; do
	if [ "$($c --version 2>/dev/null | sed -n 's/.*version \([0-9]*\).*/\1/p')" = "$want" ]; then
		$c --dry-run -Werror bpf/*.c bpf/*.h
		echo "check-format: bpf/ is formatted"
		exit 0
	fi
done
echo "check-format: skipped: clang-format $want is missing (apt-get install clang-format-$want)"
