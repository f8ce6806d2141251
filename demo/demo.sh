#!/usr/bin/env bash
# The hello world of data locality, and then a real program on real data.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${RDX_DEMO_DIR:-$(mktemp -d /tmp/rdx-demo.XXXXXX)}
mkdir -p "$out"
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo

say() { printf '\n=== %s\n' "$*"; }

say "1. A matrix multiply, in the bad and in the good loop order"
gcc -O1 -g -fno-omit-frame-pointer -o "$out/matmul" demo/matmul.c
$sudo ./rdx run -o "$out/bad.pb.gz" -- "$out/matmul" bad 4
$sudo ./rdx run -o "$out/good.pb.gz" -- "$out/matmul" good 30
say "bad order: which reuse misses"
./rdx top -n 5 "$out/bad.pb.gz"
say "good order: which reuse misses"
./rdx top -n 5 "$out/good.pb.gz"

say "2. xz compressing 300 MB of this machine's own files"
tar cf - --ignore-failed-read /usr/lib /usr/share /usr/bin 2>/dev/null | head -c 300M >"$out/data" || true
ls -l "$out/data"
xz -T1 -1 -k -c "$out/data" >"$out/data.xz" &
xz=$!
sleep 1
$sudo ./rdx attach -p $xz -d 20s -o "$out/xz.pb.gz"
wait $xz
ls -l "$out/data.xz"
say "xz: the reuse-time histogram"
./rdx hist "$out/xz.pb.gz"
say "xz: which reuse misses"
./rdx top -n 10 "$out/xz.pb.gz"

say "Profiles are in $out. Look closer with:"
echo "  go tool pprof -http :0 $out/xz.pb.gz"
