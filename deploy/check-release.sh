#!/usr/bin/env bash
# check-release.sh tries out what make release makes of the last commit: that two builds in different
# folders are equal byte by byte, the arm64 binary under QEMU, and the Debian package on a clean Debian,
# from installing to purging. It needs root, debootstrap, qemu-user and Debian's mirror; what is missing is
# said and skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
root=$tmp/root
cleanup() {
	for m in proc sys dev; do mountpoint -q "$root/$m" && umount -l "$root/$m"; done
	rm -rf --one-file-system "$tmp"
}
trap cleanup EXIT

for n in 1 22; do # paths of different length
	git clone -q . "$tmp/clone$n"
	(cd "$tmp/clone$n" && deploy/release.sh 0.0.1 >/dev/null)
done
diff "$tmp/clone1/dist/SHA256SUMS" "$tmp/clone22/dist/SHA256SUMS"
(cd "$tmp/clone1/dist" && sha256sum --quiet -c SHA256SUMS)
echo "check-release: two builds are equal: $(wc -l <"$tmp/clone1/dist/SHA256SUMS") files"
dist=$tmp/clone1/dist

# The image's parts are what its index says.
mkdir "$tmp/image"
tar -C "$tmp/image" -xf "$dist/rdx_0.0.1_oci.tar"
(cd "$tmp/image/blobs/sha256" && for f in *; do echo "$f  $f"; done | sha256sum --quiet -c -)
for f in $(grep -o 'sha256:[0-9a-f]*' "$tmp/image/index.json"); do test -e "$tmp/image/blobs/sha256/${f#sha256:}"; done
echo "check-release: the image is whole"

if command -v qemu-aarch64 >/dev/null; then
	mkdir "$tmp/arm64"
	tar -C "$tmp/arm64" -xzf "$dist/rdx_0.0.1_linux_arm64.tar.gz"
	qemu-aarch64 "$tmp/arm64/rdx" version | grep -q "^rdx v0.0.1 .*linux/arm64"
	said=$(printf '0 R\n64 R\n0 R\n' | qemu-aarch64 "$tmp/arm64/rdx" exact --format json -)
	grep -q '"accesses": 3' <<<"$said"
	echo "check-release: the arm64 binary runs under QEMU"
else
	echo "check-release: skipped: the arm64 binary: no qemu-aarch64 (apt-get install qemu-user)"
fi

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null || [ "$(dpkg --print-architecture)" != amd64 ]; then
	echo "check-release: skipped: the package: needs root on amd64 and debootstrap (apt-get install debootstrap)"
	exit 0
fi
debootstrap --variant=minbase bookworm "$root" http://deb.debian.org/debian >"$tmp/said" || { tail "$tmp/said"; exit 1; }
for m in proc sys dev; do mount --rbind "/$m" "$root/$m" && mount --make-rslave "$root/$m"; done
# files lists what there is, without what dpkg keeps of its own work.
files() { find "$root" -xdev \( -path "$root/var/lib/dpkg" -o -path "$root/var/cache" -o -path "$root/var/log" -o -path "$root/tmp" \) -prune -o -printf '%P %m %s\n' | sort; }
files >"$tmp/before"
cp "$dist/rdx_0.0.1_amd64.deb" "$root/tmp/rdx.deb"
chroot "$root" dpkg -i /tmp/rdx.deb >/dev/null
chroot "$root" rdx version
chroot "$root" rdx agent --config /etc/rdx/agent.yaml --check
for f in usr/share/man/man1/rdx-attach.1.gz usr/share/bash-completion/completions/rdx usr/lib/systemd/system/rdx-agent.service; do test -s "$root/$f"; done
chroot "$root" rdx doctor
# run ends with its program, so that one is run that ends.
chroot "$root" timeout 120 rdx run -o /tmp/p.pb.gz -- awk 'BEGIN { for (i = 0; i < 40000000; i++) s += i; print s }'
chroot "$root" rdx top /tmp/p.pb.gz
chroot "$root" dpkg --purge rdx >/dev/null
files >"$tmp/after"
diff "$tmp/before" "$tmp/after"
echo "check-release: the package was installed, ran, and is gone without a trace"
