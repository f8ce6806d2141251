#!/usr/bin/env bash
# deb.sh [VERSION [ARCH]] builds rdx_VERSION_ARCH.deb of the binary ./rdx (make build), with the agent's unit,
# which is installed disabled: a configuration comes first.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-0.$(git log -1 --format=%cd --date=format:%Y%m%d).0}
arch=${2:-$(dpkg --print-architecture)}
[ -x rdx ] || { echo "deb.sh: no ./rdx (make build)" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
install -D -m 755 rdx "$root/usr/bin/rdx"
install -D -m 644 deploy/systemd/rdx-agent.service "$root/lib/systemd/system/rdx-agent.service"
install -D -m 640 deploy/agent.yaml "$root/etc/rdx/agent.yaml"
install -D -m 644 LICENSE "$root/usr/share/doc/rdx/copyright"
install -D -m 644 docs/fleet.md "$root/usr/share/doc/rdx/fleet.md"
mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: rdx
Version: $version
Architecture: $arch
Maintainer: rdx maintainers <maintainers@rdx-profiler.invalid>
Section: devel
Priority: optional
Installed-Size: $(du -sk "$root" | cut -f1)
Homepage: https://github.com/rdx-profiler/rdx
Description: profiler for data locality, and its agent for fleets
 rdx shows where a running program loses its data locality: which instruction
 touched a datum, which touched it next, how much other data went by, and so
 which cache sizes would have missed. The service rdx-agent samples every
 process of a machine; it is installed disabled.
CONTROL
echo /etc/rdx/agent.yaml >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if [ -n "$2" ]; then systemctl try-restart rdx-agent.service || true; fi
fi
SCRIPT
cat >"$root/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now rdx-agent.service || true
fi
SCRIPT
cat >"$root/DEBIAN/postrm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = purge ]; then rm -rf /var/lib/rdx /var/lib/private/rdx; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
SCRIPT
chmod 755 "$root"/DEBIAN/{postinst,prerm,postrm}
out=rdx_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$out" >/dev/null
echo "$out"
