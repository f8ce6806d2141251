#!/usr/bin/env bash
# Makes docs/web.png: the three panes on a profile of demo/matmul.c, in Chromium.
set -euo pipefail
cd "$(dirname "$0")"
RDX_WEB_PICTURE=$(realpath ../docs)/web.png go test -count=1 -run '^TestPicture$' .
