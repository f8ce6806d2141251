#!/usr/bin/env bash
# fetch.sh SERIES ARCH prints the path of a Debian cloud kernel of that series,
# such as 6.12, for amd64 or arm64, fetching it if it is not in the cache.
#
# An apt of its own, with its own lists, looks in all of Debian's suites: the
# machine's sources stay as they are. Versions come and go; the index says
# which are there, and the newest that can be had is taken.
set -euo pipefail
series=$1 arch=$2
cache=${RDX_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdx-vm}
apt=$cache/apt
mkdir -p "$cache/kernels" "$apt/lists/partial" "$apt/archives/partial"

have=$(find "$cache/kernels" -name "vmlinuz-$series.*-$arch" | sort -V | tail -1)
if [ -n "$have" ]; then
	echo "$have"
	exit 0
fi

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ ! -e $keyring ]; then
	echo "no $keyring (apt-get install debian-archive-keyring)" >&2
	exit 1
fi
: >"$apt/status"
for suite in bullseye bookworm bookworm-backports trixie trixie-backports; do
	echo "deb [signed-by=$keyring] http://deb.debian.org/debian $suite main"
done >"$apt/sources.list"
cat >"$apt/apt.conf" <<EOF
Dir::State "$apt";
Dir::State::lists "lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Architectures { "amd64"; "arm64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
EOF
export APT_CONFIG=$apt/apt.conf
if [ -z "$(find "$apt/lists" -name '*Packages*' -mtime -1 | head -1)" ]; then
	apt-get update -qq >&2
fi

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
