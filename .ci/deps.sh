#!/usr/bin/env bash
# Installs what building, testing and the demo need and is missing.
set -euo pipefail
packages="gcc g++ make mawk perl-base zstd libc6-dev binutils binutils-aarch64-linux-gnu libc6-arm64-cross libstdc++6-arm64-cross clang llvm llvm-dev libbpf-dev linux-libc-dev xz-utils bzip2 gzip sqlite3 openssl python3 luajit stress-ng strace gdb valgrind qemu-user elfutils file procps util-linux"
missing=
for p in $packages "$@"; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
