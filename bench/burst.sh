#!/usr/bin/env bash
# How far reading ahead gets and what it costs: for a few programs the accesses
# read ahead of a sample, the share ended by each cause, and how long threads were
# held; and nanoseconds an instruction, interpreted and single-stepped. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/rdx" ./cmd/rdx
go test -c -o "$dir/interp.test" ./sampler/interp
cat bpf/*.o model/*.go > "$dir/in"
for _ in 1 2 3 4 5; do cat "$dir/in" "$dir/in" > "$dir/in2"; mv "$dir/in2" "$dir/in"; done
one() {
	echo "== $*"
	"$dir/rdx" run -q -o "$dir/p.pb.gz" --overhead 20 -- "$@" > /dev/null
	go tool pprof -comments "$dir/p.pb.gz" 2> "$dir/err" | sed -n 's/^rdx\[[0-9a-f]*\] //p' > "$dir/comments"
	sed -n 's/^comment=\(thread held.*\|read ahead.*\)/\1/p' "$dir/comments"
	sed -n 's/^count=\([0-9]*\) bursts ended: /\1 /p' "$dir/comments" |
		awk '{n[$0] = $1; sum += $1} END {for (l in n) {c = l; sub(/^[0-9]+ /, "", c); printf "%5.1f %% of %d bursts ended: %s\n", 100 * n[l] / sum, sum, c}}' | sort -rn
}
one xz -1 -k -c "$dir/in"
one gzip -6 -c "$dir/in"
one perl -e 'for $i (0..6000000) { $s += $i % 7; $a[$i % 50000] = $s }'
one sqlite3 :memory: "with recursive n(i) as (select 1 union all select i+1 from n where i < 400000) select count(distinct i*7919%100003), sum(i) from n"
one openssl speed -seconds 2 -bytes 1024 aes-128-cbc
echo "== nanoseconds an instruction"
(cd sampler/interp && "$dir/interp.test" -test.run '^$' -test.bench '^(BenchmarkBurst|BenchmarkStep)$' -test.benchtime 200x) > "$dir/bench" || { cat "$dir/bench"; exit 1; }
grep '^Benchmark' "$dir/bench"
