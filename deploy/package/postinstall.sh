#!/bin/sh
# deb: configure OLD-VERSION; rpm: 1, or 2 for an upgrade.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if [ "$1" = 2 ] || { [ "$1" = configure ] && [ -n "$2" ]; }; then
		systemctl try-restart rdx-agent.service || true
	fi
fi
