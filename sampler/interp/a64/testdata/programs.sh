#!/usr/bin/env bash
# programs.sh prints a directory with arm64 programs of Debian 12 in it, fetching
# them if they are not in the cache.
set -euo pipefail
cache=${RDX_ARM64_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdx-arm64}
root=$cache/root
if [ -e "$root/complete" ]; then
	echo "$root"
	exit 0
fi
APT_CONFIG=$("$(dirname "$0")/../../../../.ci/apt.sh" "$cache/apt" arm64 bookworm)
export APT_CONFIG
mkdir -p "$cache/debs" "$root"
cd "$cache/debs"
packages="libc6 libgcc-s1 libstdc++6 libcrypt1 zlib1g libbz2-1.0 liblzma5 libzstd1 liblz4-1 libxxhash0 libssl3 libsqlite3-0 libreadline8 libtinfo6 libexpat1 libffi8
	xz-utils gzip bzip2 zstd mawk perl-base openssl sqlite3 python3.11-minimal libpython3.11-minimal libpython3.11-stdlib"
# shellcheck disable=SC2046,SC2086 # words
apt-get download -qq $(printf '%s:arm64 ' $packages) >&2
for deb in *.deb; do
	dpkg-deb -x "$deb" "$root"
done
touch "$root/complete"
echo "$root"
