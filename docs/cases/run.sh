#!/usr/bin/env bash
# run.sh [RDX [CASE...]]: cases of bad locality, before and after. Each is measured and profiled, and fails if the finding is not
# made or the gain is not there. Needs root, gcc and Go.
set -u
rdx=${1:-rdx}
[ $# -gt 0 ] && shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
src=$(cd "$(dirname "$0")" && pwd)
gcc -O2 -g -pthread -o "$dir/cases" "$src/cases.c" || exit 1
go build -o "$dir/pointers" "$src/pointers.go" || exit 1
failed=0

# program CASE: the command that runs it, up to its variant.
program() {
	case $1 in
	pointers) echo "$dir/pointers" ;;
	*) echo "$dir/cases $1" ;;
	esac
}

# profile CASE VARIANT [FLAGS...]: leaves the rules that spoke in $rules, and the verdict in $says.
profile() {
	local command pid
	command="$(program "$1") $2 60"
	shift 2
	$command >/dev/null &
	pid=$!
	sleep 2
	"$rdx" attach -p $pid -d "${SECONDS_EACH:-10}s" --overhead "${OVERHEAD:-10}" -q -o "$dir/p.pb.gz" "$@"
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	"$rdx" why --format json "$dir/p.pb.gz" >"$dir/p.json"
	rules=$(sed -n 's/^ *"rule": "\(.*\)",$/\1/p' "$dir/p.json" | tr '\n' ' ')
	says=$(sed -n 's/^ *"says": "\(.*\)",$/\1/p' "$dir/p.json")
}

# check CASE RULES GAIN [FLAGS...]: one of the rules, separated by |, must speak before, and after be at least GAIN times as
# fast.
check() {
	local name=$1 want=$2 gain=$3 before after
	shift 3
	[ -z "$only" ] || [[ " $only " == *" $name "* ]] || return
	before=$($(program "$name") before 2) || exit 1
	after=$($(program "$name") after 2) || exit 1
	profile "$name" before "$@"
	local verdict=ok
	echo "$rules" | tr ' ' '\n' | grep -qxE "$want" || verdict="FAILED: no finding $want, but: ${rules:-none}"
	awk -v b="$before" -v a="$after" -v g="$gain" 'BEGIN { exit !(b >= g * a) }' || verdict="FAILED: less than $gain times as fast"
	[ "$verdict" = ok ] || failed=1
	printf '%-8s before %8.3f after %8.3f ns an item, rules: %s\n         %s\n         %s\n' "$name" "$before" "$after" "$rules" "$says" "$verdict"
}

only=$*
check matmul 'stride|block' 2
check split 'split|block' 1.5
check list 'chase|scattered|random' 3
check column 'stride' 2
check hash 'chase|random|scattered' 1.3
check fuse 'fuse' 1.2
check pointers 'gather|chase' 2
check sharing 'sharing' 2 --stack private --overhead 1 -d 50s
exit $failed
