#!/usr/bin/env bash
# fetch.sh SERIES ARCH prints the path of a Debian cloud kernel of that series,
# such as 6.12, for amd64 or arm64, fetching it if it is not in the cache.
#
# Versions come and go; the index of Debian's suites says which are there, and
# the newest that can be had is taken.
set -euo pipefail
cd "$(dirname "$0")/.."
series=$1 arch=$2
cache=${RDX_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdx-vm}
mkdir -p "$cache/kernels"

have=$(find "$cache/kernels" -name "vmlinuz-$series.*-$arch" | sort -V | tail -1)
if [ -n "$have" ]; then
	echo "$have"
	exit 0
fi

APT_CONFIG=$(.ci/apt.sh "$cache/apt" "amd64 arm64" bullseye bookworm bookworm-backports trixie trixie-backports)
export APT_CONFIG

# From 7.0 on the image is in linux-binary, and linux-image depends on it.
names=$(for kind in binary image; do
	apt-cache pkgnames linux-$kind-"$series". | grep -E "^linux-$kind-${series//./\\.}\.[^-]+(-[0-9]+)?-cloud-$arch\$" | sort -Vr || true
done)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
for name in $names; do
	apt-get download -qq "$name:$arch" >/dev/null 2>&1 || continue
	dpkg-deb --fsys-tarfile ./*.deb | tar -x --wildcards './boot/vmlinuz-*' './usr/lib/modules/*/vmlinuz' 2>/dev/null || true
	rm -f ./*.deb
	image=$(find . -name 'vmlinuz*' -type f | head -1)
	[ -n "$image" ] || continue
	release=${name#linux-*-}
	mv "$image" "$cache/kernels/vmlinuz-$release"
	echo "$cache/kernels/vmlinuz-$release"
	exit 0
done
echo "no kernel $series for $arch can be fetched from Debian" >&2
exit 1
