#!/usr/bin/env bash
# run.sh [RDX [CASE...]]: cases of bad locality, before and after. Each is measured and profiled, and fails if the finding is not
# made or the gain is not there. Then programs that behave well, of which nothing must stand out. Some four minutes; needs root,
# gcc, Go, gzip, openssl, sqlite3, mawk and xz.
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

# session PID [FLAGS...]: leaves the rules that spoke in $rules, the verdict in $says, and whether nothing standing out means
# something in $checked. Where a session on a busy machine could not tell, a longer one is taken, with more holds.
session() {
	local pid=$1 try
	shift
	for try in 1 2 3; do
		"$rdx" attach -p "$pid" -d "$((${SECONDS_EACH:-10} * try))s" --overhead "$((${OVERHEAD:-10} * try))" -q -o "$dir/p.pb.gz" "$@" || break
		"$rdx" why --format json "$dir/p.pb.gz" >"$dir/p.json"
		rules=$(sed -n 's/^ *"rule": "\(.*\)",$/\1/p' "$dir/p.json" | tr '\n' ' ')
		says=$(sed -n 's/^ *"says": "\(.*\)",$/\1/p' "$dir/p.json")
		checked=$(sed -n 's/^ *"checked": \([a-z]*\),\{0,1\}$/\1/p' "$dir/p.json")
		[ -n "$rules" ] && break
		case $says in *"can't tell"* | *"not known"*) ;; *) [ "$checked" = true ] && break ;; esac
	done
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

# profile CASE VARIANT [FLAGS...]: a session of a case.
profile() {
	local command
	command="$(program "$1") $2 100"
	shift 2
	$command >/dev/null &
	local pid=$!
	sleep 2
	session $pid "$@"
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

# calm NAME COMMAND: nothing must stand out of a program that does not wait for memory.
calm() {
	[ -z "$only" ] || [[ " $only " == *" $1 "* ]] || return
	local verdict=ok
	bash -c "exec $2" >/dev/null 2>&1 &
	local pid=$!
	sleep 1
	session $pid
	[ "$checked" = true ] || verdict="FAILED: it is not known whether something stands out"
	[ -z "$rules" ] || verdict="FAILED: findings of a program that has no problem: $rules"
	[ "$verdict" = ok ] || failed=1
	printf '%-8s rules: %s\n         %s\n         %s\n' "$1" "${rules:-none, nothing stands out}" "$says" "$verdict"
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
# Six programs that behave well.
gcc -O2 -g -o "$dir/kernels" "$src/../../bench/verdict/kernels/verdict.c" || exit 1
calm gzip 'gzip -9 -c < <(seq 1000000000)'
calm sha3 'openssl speed -seconds 100 -bytes 16384 -evp sha3-256'
calm sqlite3 "sqlite3 :memory: 'create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c limit 500) insert into t select x, x % 7 from c; select count(*) from t a, t b, t c where a.b + b.b + c.b = 3;'"
calm mawk "mawk 'BEGIN { for (i = 0; i < 1e10; i++) { s += i % 7; a[i % 100]++ } print s }'"
calm xz 'xz -0 -T1 -c < <(seq 1000000000)'
calm compute "'$dir/kernels' compute 1 100"
exit $failed
