#!/bin/sh
# deb: remove, then purge; rpm: 0, or 1 for an upgrade. What the agent has kept goes with the package.
set -e
if [ "$1" = purge ] || [ "$1" = 0 ]; then
	rm -rf /var/lib/rdx /var/lib/private/rdx
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
