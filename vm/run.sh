#!/usr/bin/env bash
# run.sh [SERIES-ARCH...] boots Debian's kernels under software emulation, runs
# the tests of vm/guest in each and prints a table. Without arguments it runs
# the whole matrix. A kernel that cannot be fetched is a row that says so. With
# RDX_VM_CPUS=2 it is tried out instead what happens when a CPU is taken away,
# with RDX_VM_FAULTS=1 (arm64, which has counters) what when the counters are.
set -uo pipefail
cd "$(dirname "$0")/.."
matrix=${*:-5.10-amd64 6.1-amd64 6.12-amd64 6.16-amd64 6.19-amd64 7.3-amd64 5.10-arm64 6.1-arm64 6.12-arm64 6.16-arm64 6.19-arm64 7.3-arm64}
for tool in qemu-system-x86_64 qemu-system-aarch64 cpio dpkg-deb; do
	if ! command -v $tool >/dev/null; then
		echo "vm: skipped: no $tool (apt-get install qemu-system-x86 qemu-system-arm cpio)"
		exit 0
	fi
done
limit=${RDX_VM_TIMEOUT:-240}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

initrd() { # ARCH
	local root=$tmp/root-$1
	[ -e "$tmp/initrd-$1" ] && return
	mkdir -p "$root"
	CGO_ENABLED=0 GOOS=linux GOARCH=$1 go build -trimpath -ldflags "-s -w" -o "$root/rdx" ./cmd/rdx &&
		CGO_ENABLED=0 GOOS=linux GOARCH=$1 go build -trimpath -ldflags "-s -w" -o "$root/init" ./vm/guest &&
		(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$tmp/initrd-$1"
}

# With -icount every instruction takes a nanosecond of the guest's time: what
# is measured does not depend on how busy the host is. arm64 has a PMU then,
# which counts exactly.
boot() { # ARCH KERNEL
	local faults=${RDX_VM_FAULTS:+rdx.faults}
	local common="-smp ${RDX_VM_CPUS:-1} -accel tcg,thread=single -icount shift=0 -m 768 -kernel $2 -initrd $tmp/initrd-$1 -nographic -no-reboot -nodefaults -serial stdio"
	case $1 in
	amd64)
		timeout "$limit" qemu-system-x86_64 -M q35 -cpu max $common \
			-append "console=ttyS0 panic=-1 quiet mitigations=off tsc=reliable $faults" </dev/null
		;;
	arm64)
		timeout "$limit" qemu-system-aarch64 -M virt,gic-version=3 -cpu cortex-a72 $common \
			-append "console=ttyAMA0 panic=-1 quiet mitigations=off $faults" </dev/null
		;;
	esac
}

if [ -n "${RDX_VM_FAULTS:-}" ]; then
	echo "| kernel | what happens | flags | what rdx does | |"
	echo "|---|---|---|---|---|"
elif [ "${RDX_VM_CPUS:-1}" != 1 ]; then
	echo "| kernel | source / clock | CPU time after | CPU time sampled | observations | lost | |"
	echo "|---|---|---|---|---|---|---|"
else
	echo "| kernel | watchpoints | limit honoured | can be armed again | traps per arming | bpf_link / read value / whole sample / task work | source / clock | pairs | within half an octave | given up before | median / truth | resolution | lost | held p50 | EINTR | signals | |"
	echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
fi
failed=0
for guest in $matrix; do
	series=${guest%-*} arch=${guest##*-}
	if ! initrd "$arch"; then
		echo "| $guest | not built |"
		failed=1
		continue
	fi
	if ! kernel=$(vm/fetch.sh "$series" "$arch" 2>"$tmp/why"); then
		echo "| $guest | skipped: $(tail -1 "$tmp/why") |"
		continue
	fi
	boot "$arch" "$kernel" >"$tmp/console" 2>&1
	tr -d '\r' <"$tmp/console" | sed -n 's/^RDX-VM //p' >"$tmp/rows"
	if [ ! -s "$tmp/rows" ]; then
		echo "| $guest | FAILED: no result within $limit s |"
		tail -20 "$tmp/console" >&2
		failed=1
		continue
	fi
	cat "$tmp/rows"
	if grep -q 'FAILED\|failed' "$tmp/rows"; then
		failed=1
		[ -z "${RDX_VM_VERBOSE:-}" ] || cat "$tmp/console" >&2
	fi
done
exit $failed
