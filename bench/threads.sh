#!/usr/bin/env bash
# threads.sh [RDX [RUNS]] prints what threads by the thousand cost rdx: attaching, memory, descriptors,
# and what was lost, with and without the priority that rdx gives itself, and
# with data watched in all threads; RUNS times, one if left out, of those that mostly wait. Needs root,
# gcc and a built rdx; takes a minute and a half.
set -euo pipefail
cd "$(dirname "$0")/.."
rdx=${1:-./rdx}
runs=${2:-1}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for t in sum churn; do
	gcc -O2 -pthread -o "$dir/$t" cmd/rdx/testdata/safety/$t.c -lrt
done

# session NAME SECONDS STACK RDX-COMMAND...: attaches to $pid, and says how it went.
session() {
	local name=$1 seconds=$2 stack=$3 begin fds=0
	shift 3
	begin=$EPOCHREALTIME
	"$@" attach -q --stack "$stack" -p "$pid" -d "${seconds}s" -o "$dir/p.pb.gz" &
	sleep "$((seconds * 2 / 3))"
	fds=$(ls "/proc/$!/fd" | wc -l)
	wait $!
	printf '%-46s %6.1f s for %s s of sampling, %s descriptors\n' "$name" "$(awk "BEGIN { print $EPOCHREALTIME - $begin }")" "$seconds" "$fds"
	"$rdx" hist --format json "$dir/p.pb.gz" | grep -E '"(attached to|the profiler.s own memory|thread held|overhead by|watched by CPU|not watched)' | sed 's/^ */    /' || true
	"$rdx" hist --format json "$dir/p.pb.gz" | sed -n '/"losses": {$/,/}/p' | grep -v '[{}]' | sed 's/^ */    lost: /' || true
}

# target COMMAND...: starts it with its input open, and waits until it is at work.
target() {
	coproc { exec "$@"; }
	pid=$COPROC_PID
	read -r _ <&"${COPROC[0]}"
}

finish() {
	local said
	eval "exec ${COPROC[1]}>&-"
	read -r said <&"${COPROC[0]}" || said="(nothing)"
	echo "    target: $said"
	wait "$pid" || true
}

for _ in $(seq "$runs"); do
	for stack in own private both; do
		target "$dir/sum" 1000 0 calm
		session "1000 threads that mostly wait, --stack $stack" 3 $stack "$rdx"
		finish
	done
done
target "$dir/sum" 1000
session "1000 busy threads" 5 own "$rdx"
finish
target "$dir/sum" 1000
session "the same without CAP_SYS_NICE" 5 own setpriv --bounding-set -sys_nice --inh-caps -sys_nice "$rdx"
finish
target "$dir/churn"
session "threads that come and go" 5 own "$rdx"
finish
target "$dir/churn"
session "the same, --stack private" 5 private "$rdx"
finish
