#!/usr/bin/env bash
# Installs what building, testing and the demo need and is missing.
set -euo pipefail
packages="gcc g++ make mawk perl-base zstd libc6-dev binutils dwz clang-format binutils-aarch64-linux-gnu libc6-arm64-cross libstdc++6-arm64-cross clang llvm llvm-dev libbpf-dev linux-libc-dev xz-utils bzip2 gzip sqlite3 openssl python3 luajit stress-ng strace gdb valgrind qemu-user elfutils shellcheck file procps util-linux"
missing=
for p in $packages "$@"; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
# OpenCL on processors, for what runs on GPUs, and a browser and node for pages: where they can't be had their tests are skipped.
optional=
for p in ocl-icd-libopencl1 pocl-opencl-icd oclgrind chromium nodejs npm; do
	command -v "$p" >/dev/null && continue # node of another maker brings npm and conflicts with Debian's
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || optional="$optional $p"
done
[ -z "$missing$optional" ] && exit 0
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
[ -z "$missing" ] || $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
# One by one, so that one that can't be installed does not keep the others away.
for p in $optional; do
	$sudo apt-get install -y -qq --no-install-recommends "$p" >/dev/null || echo "deps: not installed: $p"
done
