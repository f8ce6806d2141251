#!/usr/bin/env bash
# programs.sh prints a directory with arm64 programs of Debian 12 in it, fetching
# them if they are not in the cache. As in vm/fetch.sh, an apt of its own does it: the
# machine's sources and packages stay as they are.
set -euo pipefail
cache=${RDX_ARM64_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdx-arm64}
root=$cache/root
if [ -e "$root/complete" ]; then
	echo "$root"
	exit 0
fi
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ ! -e $keyring ]; then
	echo "no $keyring (apt-get install debian-archive-keyring)" >&2
	exit 1
fi
apt=$cache/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/debs" "$root"
: >"$apt/status"
echo "deb [signed-by=$keyring] http://deb.debian.org/debian bookworm main" >"$apt/sources.list"
cat >"$apt/apt.conf" <<EOF
Dir::State "$apt";
Dir::State::lists "lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
EOF
export APT_CONFIG=$apt/apt.conf
apt-get update -qq >&2
cd "$apt/debs"
apt-get download -qq libc6 libgcc-s1 libstdc++6 libcrypt1 zlib1g libbz2-1.0 liblzma5 libzstd1 liblz4-1 libxxhash0 libssl3 libsqlite3-0 libreadline8 libtinfo6 libexpat1 libffi8 \
	xz-utils gzip bzip2 zstd mawk perl-base openssl sqlite3 python3.11-minimal libpython3.11-minimal libpython3.11-stdlib >&2
for deb in *.deb; do
	dpkg-deb -x "$deb" "$root"
done
touch "$root/complete"
echo "$root"
