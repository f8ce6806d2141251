#!/usr/bin/env bash
# run.sh [RDX]: cases of bad locality, before and after. Each is measured and profiled, and fails if the finding is not
# made or the gain is not there. Needs root and gcc.
set -u
rdx=${1:-rdx}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
src=$(cd "$(dirname "$0")" && pwd)
gcc -O2 -g -o "$dir/cases" "$src/cases.c" || exit 1
failed=0

# profile CASE VARIANT: leaves the rules that spoke in $rules, and the verdict in $says.
profile() {
	"$dir/cases" "$1" "$2" 20 >/dev/null &
	local pid=$!
	sleep 1
	"$rdx" attach -p $pid -d "${SECONDS_EACH:-10}s" --overhead "${OVERHEAD:-10}" -q -o "$dir/p.pb.gz"
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	"$rdx" why --format json "$dir/p.pb.gz" >"$dir/p.json"
	rules=$(sed -n 's/^ *"rule": "\(.*\)",$/\1/p' "$dir/p.json" | tr '\n' ' ')
	says=$(sed -n 's/^ *"says": "\(.*\)",$/\1/p' "$dir/p.json")
}

# check CASE RULES GAIN: one of the rules, separated by |, must speak before, and after be at least GAIN times as fast.
check() {
	local name=$1 want=$2 gain=$3 before after
	before=$("$dir/cases" "$name" before 2) || exit 1
	after=$("$dir/cases" "$name" after 2) || exit 1
	profile "$name" before
	local verdict=ok
	echo "$rules" | tr ' ' '\n' | grep -qxE "$want" || verdict="FAILED: no finding $want, but: ${rules:-none}"
	awk -v b="$before" -v a="$after" -v g="$gain" 'BEGIN { exit !(b >= g * a) }' || verdict="FAILED: less than $gain times as fast"
	[ "$verdict" = ok ] || failed=1
	printf '%-8s before %8.3f after %8.3f ns an item, rules: %s\n         %s\n         %s\n' "$name" "$before" "$after" "$rules" "$says" "$verdict"
}

check matmul 'stride|block' 2
check split 'split|block' 1.5
check list 'chase|scattered|random' 3
check column 'stride' 2
check hash 'chase|random|scattered' 1.3
exit $failed
