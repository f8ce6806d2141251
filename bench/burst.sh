#!/usr/bin/env bash
# How far reading ahead gets and what it costs: for a few programs the accesses
# read ahead of a sample, what ended it, and how long threads were held; and
# nanoseconds an instruction, interpreted and single-stepped. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat bpf/*.o model/*.go > "$dir/in"
for _ in 1 2 3 4 5; do cat "$dir/in" "$dir/in" > "$dir/in2"; mv "$dir/in2" "$dir/in"; done
one() {
	echo "== $*"
	./rdx run -q -o "$dir/p.pb.gz" --overhead 5 -- "$@" > /dev/null
	go tool pprof -comments "$dir/p.pb.gz" 2> "$dir/err" | sed -n 's/^rdx\[[0-9a-f]*\] //p' |
		sed -n 's/^comment=\(thread held.*\|read ahead.*\|access rate.*\)/\1/p; s/^count=\([0-9]* bursts ended.*\)/\1/p' | sort -k1,1nr
}
one xz -1 -k -c "$dir/in"
one gzip -6 -c "$dir/in"
one perl -e 'for $i (0..6000000) { $s += $i % 7; $a[$i % 50000] = $s }'
echo "== nanoseconds an instruction"
go test -run '^$' -bench '^(BenchmarkBurst|BenchmarkStep)$' -benchtime 200x ./sampler/interp | grep '^Benchmark'
