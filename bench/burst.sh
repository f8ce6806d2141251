#!/usr/bin/env bash
# How far bursts get and what they cost, by both engines: for a few programs the
# accesses that a use is followed for without a reuse, the share of bursts ended by each cause, and
# how long threads were held; and nanoseconds an instruction, interpreted, in
# steps, and single-stepped by ptrace. Needs root; prints the table of docs/explanation/reading-ahead.md.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/rdx" ./cmd/rdx
go test -c -o "$dir/interp.test" ./sampler/interp
cat bpf/*.o model/*.go exact/*.go > "$dir/in"
for _ in 1 2 3 4 5; do cat "$dir/in" "$dir/in" > "$dir/in2"; mv "$dir/in2" "$dir/in"; done
head -c "${RDX_BURST_BYTES:-48M}" "$dir/in" > "$dir/in2"
one() { # ENGINE NAME COMMAND...
	local engine=$1 name=$2 overhead=20
	shift 2
	[ "$engine" = interpret ] || overhead=60 # their holds are some ten times as long
	"$dir/rdx" run -q -o "$dir/p.pb.gz" --overhead $overhead --burst-engine "$engine" -- "$@" > /dev/null 2> "$dir/err"
	go tool pprof -comments "$dir/p.pb.gz" 2> "$dir/err" | sed -n 's/^rdx\[[0-9a-f]*\] //p' > "$dir/comments"
	awk -v engine="$engine" -v name="$name" '
		function us(d) { # of a duration, in µs
			return sprintf("%.0f", d ~ /ms$/ ? 1000 * d : d ~ /µs$/ ? d + 0 : d ~ /ns$/ ? d / 1000 : 1e6 * d)
		}
		/^count=[0-9]+ bursts ended: / {
			n = substr($1, 7) + 0; all += n; sub(/^.*bursts ended: /, ""); if (n > 0) ended[$0] = n
		}
		/^comment=thread held per sample/ { split($0, f, /[ ,]+/); for (i in f) { if (f[i] == "p50") held = us(f[i+1]); if (f[i] == "p99") held99 = us(f[i+1]) } }
		/^comment=(read ahead|burst engine)/ {
			n = split($0, f, /[ ,;:]+/)
			for (i = 1; i <= n; i++) {
				if (f[i] == "at" && f[i+2] == "median" && took == "") took = us(f[i-1] == "burst" ? f[i-3] : f[i-1])
				if (f[i] == "at" && f[i+1] == "p99") took99 = us(f[i-1])
				if (f[i] == "far") reach = f[i+2]
				if (f[i] == "of" && f[i+2] == "instructions") inst = f[i+1]
				if (f[i] == "each") step = us(f[i-1])
			}
		}
		END {
			causes = ""
			while (1) {
				best = ""
				for (c in ended) if (best == "" || ended[c] > ended[best]) best = c
				if (best == "") break
				causes = causes (causes == "" ? "" : ", ") sprintf("%s %.1f %%", best, 100 * ended[best] / all)
				delete ended[best]
			}
			if (reach == 0) reach = "-" # every use had its reuse before
			per = step == "" ? "" : sprintf("%.0f", 1000 * step / inst)
			printf "| %s | %s | %d | %s | %s | %s / %s µs | %s / %s µs | %s |\n", name, engine, all, causes, reach, took, took99, held, held99, per
		}' "$dir/comments"
}
echo "| program | engine | bursts | ended by | reach | burst p50 / p99 | held p50 / p99 | ns an instruction, stepped |"
echo "|---|---|---|---|---|---|---|---|"
for engine in interpret step; do
	one $engine "xz -1" xz -1 -k -c "$dir/in2"
	one $engine "gzip -6" gzip -6 -c "$dir/in2"
	one $engine "perl, an array in a loop" perl -e 'for $i (0..15000000) { $s += $i % 7; $a[$i % 50000] = $s }'
	one $engine "sqlite3, a recursive query" sqlite3 :memory: "with recursive n(i) as (select 1 union all select i+1 from n where i < 2000000) select count(distinct i*7919%100003), sum(i) from n"
	one $engine "openssl, AES" openssl speed -seconds 2 -bytes 1024 aes-128-cbc
done
echo "nanoseconds an instruction, interpreted, pages copied (live) and at hand (kept), and single-stepped by ptrace:"
(cd sampler/interp && "$dir/interp.test" -test.run '^$' -test.bench '^(BenchmarkBurst|BenchmarkStep)$' -test.benchtime 100x) > "$dir/bench" || { cat "$dir/bench"; exit 1; }
awk '/^Benchmark/ { for (i = 1; i < NF; i++) if ($(i+1) == "ns/instruction") printf "%s %s\n", $1, $i }' "$dir/bench"
