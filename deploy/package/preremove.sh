#!/bin/sh
# deb: remove or upgrade; rpm: 0, or 1 for an upgrade.
set -e
if [ -d /run/systemd/system ] && { [ "$1" = remove ] || [ "$1" = 0 ]; }; then
	systemctl disable --now rdx-agent.service || true
fi
