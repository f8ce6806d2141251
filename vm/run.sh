#!/usr/bin/env bash
# run.sh [SERIES-ARCH...] boots Debian's kernels under software emulation, runs
# the tests of vm/guest in each and prints a table. Without arguments it runs
# the whole matrix. A kernel that cannot be fetched is a row that says so. With
# RDX_VM_CPUS=2 it is tried out instead what happens when a CPU is taken away,
# with RDX_VM_FAULTS=1 (arm64, which has counters) what when the counters are,
# with RDX_VM_PATTERNS=1 (likewise) how programs of known reuse times come out,
# with RDX_VM_RIGHTS=1 who may profile whom at each setting of yama, and with
# RDX_VM_CLOCK=1 (by the host's time, without -icount) an agent whose clock is set,
# with RDX_VM_COST=1 (ten minutes) what an agent costs the programs.
# RDX_VM_JOBS guests run at a time: as many as there are CPUs, if memory allows.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
matrix=${*:-5.10-amd64 6.1-amd64 6.12-amd64 6.16-amd64 6.19-amd64 7.3-amd64 5.10-arm64 6.1-arm64 6.12-arm64 6.16-arm64 6.19-arm64 7.3-arm64}
tools="cpio dpkg-deb"
[[ "$matrix" != *-amd64* ]] || tools+=" qemu-system-x86_64"
[[ "$matrix" != *-arm64* ]] || tools+=" qemu-system-aarch64"
for tool in $tools; do
	if ! command -v $tool >/dev/null; then
		echo "vm: skipped: no $tool (apt-get install qemu-system-x86 qemu-system-arm cpio)"
		exit 0
	fi
done
limit=${RDX_VM_TIMEOUT:-240}
cpus=${RDX_VM_CPUS:-1}
memory=768 # MiB of a guest
jobs=${RDX_VM_JOBS:-$(awk -v cpus="$(nproc)" -v guest=$((memory + 256)) '/^MemAvailable/ { n = int($2 / 1024 / guest); if (n > cpus) n = cpus; print (n > 1 ? n : 1) }' /proc/meminfo)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

initrd() { # ARCH
	local root=$tmp/root-$1
	mkdir -p "$root"
	CGO_ENABLED=0 GOOS=linux GOARCH=$1 go build -trimpath -ldflags "-s -w" -o "$root/rdx" ./cmd/rdx &&
		CGO_ENABLED=0 GOOS=linux GOARCH=$1 go build -trimpath -ldflags "-s -w" -o "$root/init" ./vm/guest &&
		(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$tmp/initrd-$1"
}

# With -icount every instruction takes a nanosecond of the guest's time: what
# is measured does not depend on how busy the host is. arm64 has a PMU then,
# which counts exactly.
boot() { # ARCH KERNEL
	local tests="${RDX_VM_FAULTS:+rdx.faults} ${RDX_VM_PATTERNS:+rdx.patterns} ${RDX_VM_RIGHTS:+rdx.rights} ${RDX_VM_CLOCK:+rdx.clock} ${RDX_VM_COST:+rdx.cost}"
	local count="-icount shift=0"
	[ -z "${RDX_VM_CLOCK:-}" ] || count=
	local common="-smp $cpus -accel tcg,thread=single $count -m $memory -kernel $2 -initrd $tmp/initrd-$1 -nographic -no-reboot -nodefaults -serial stdio"
	case $1 in
	amd64)
		timeout "$limit" qemu-system-x86_64 -M q35 -cpu max $common \
			-append "console=ttyS0 panic=-1 quiet mitigations=off tsc=reliable $tests" </dev/null
		;;
	arm64)
		timeout "$limit" qemu-system-aarch64 -M virt,gic-version=3 -cpu cortex-a72 $common \
			-append "console=ttyAMA0 panic=-1 quiet mitigations=off $tests" </dev/null
		;;
	esac
}

if [ -n "${RDX_VM_FAULTS:-}" ]; then
	echo "| kernel | what happens | flags | what rdx does | |"
	echo "|---|---|---|---|---|"
elif [ -n "${RDX_VM_PATTERNS:-}" ]; then
	echo "| kernel | program | source / clock | pairs | in the right bins | reuse times / truth | shares / truth | |"
	echo "|---|---|---|---|---|---|---|---|"
elif [ -n "${RDX_VM_RIGHTS:-}" ]; then
	echo "| kernel | ptrace_scope | who | process | rdx | |"
	echo "|---|---|---|---|---|---|"
elif [ -n "${RDX_VM_CLOCK:-}" ]; then
	echo "| kernel | the clock set an hour ahead, two back | |"
	echo "|---|---|---|"
elif [ -n "${RDX_VM_COST:-}" ]; then
	echo "| kernel | what an agent costs | |"
	echo "|---|---|---|"
elif [ "$cpus" != 1 ]; then
	echo "| kernel | source / clock | CPU time after | CPU time sampled | observations | lost | |"
	echo "|---|---|---|---|---|---|---|"
else
	echo "| kernel | watchpoints | limit honoured | can be armed again | traps per arming | bpf_link / read value / whole sample / task work | source / clock | pairs | within half an octave | given up before | median / truth | resolution | lost | held p50 | EINTR | signals | |"
	echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
fi

# starved says why the kernel would not get its second CPU: with -icount, QEMU
# before 8.1 gives all instructions to a CPU that waits for another without a
# pause instruction, as those before 6.5 do for the second one on amd64.
starved() { # SERIES ARCH
	local qemu
	[ "$cpus" != 1 ] && [ "$2" = amd64 ] || return 1
	qemu=$(qemu-system-x86_64 --version | sed -n 's/.*version \([0-9.]*\).*/\1/p')
	[ "$(printf '%s\n' "$1" 6.5 | sort -V | head -1)" != 6.5 ] && [ "$(printf '%s\n' "$qemu" 8.1 | sort -V | head -1)" != 8.1 ] &&
		echo "QEMU $qemu starves the second CPU of Linux $1 (8.1 or later do not)"
}

# run boots one guest of the matrix and prints its rows. It fails if they do.
run() { # SERIES-ARCH
	local series=${1%-*} arch=${1##*-} kernel why
	if why=$(starved "$series" "$arch"); then
		echo "| $1 | skipped: $why |"
		return 0
	fi
	local console=$tmp/$1.console rows=$tmp/$1.found
	if ! kernel=$(vm/fetch.sh "$series" "$arch" 2>"$console"); then
		echo "| $1 | skipped: $(tail -1 "$console") |"
		return 0
	fi
	boot "$arch" "$kernel" >"$console" 2>&1
	tr -d '\r' <"$console" | sed -n 's/^RDX-VM //p' >"$rows"
	if [ ! -s "$rows" ]; then
		echo "| $1 | FAILED: no result within $limit s |"
		tail -20 "$console" >&2
		return 1
	fi
	cat "$rows"
	if grep -q 'FAILED\|failed' "$rows"; then
		[ -z "${RDX_VM_VERBOSE:-}" ] || cat "$console" >&2
		return 1
	fi
}

# finish prints what a guest said, when it is done.
finish() { # INDEX
	wait "${pids[$1]}" || failed=1
	cat "$tmp/${guests[$1]}.rows"
	cat "$tmp/${guests[$1]}.errors" >&2
}

failed=0
for arch in amd64 arm64; do
	[[ "$matrix" != *-$arch* ]] || initrd $arch || exit 1
done
read -ra guests <<<"$matrix"
pids=()
for i in "${!guests[@]}"; do
	[ "$i" -lt "$jobs" ] || finish $((i - jobs))
	run "${guests[$i]}" >"$tmp/${guests[$i]}.rows" 2>"$tmp/${guests[$i]}.errors" &
	pids+=($!)
done
for ((i = ${#guests[@]} > jobs ? ${#guests[@]} - jobs : 0; i < ${#guests[@]}; i++)); do
	finish "$i"
done
exit $failed
