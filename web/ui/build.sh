#!/usr/bin/env bash
# Bundles the pages into a folder below web/, by what package-lock.json pins. Needs node 20 or later, npm and its registry.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")"
mkdir -p "$out"
npm ci --silent --no-audit --no-fund
npm run --silent check
node build.mjs "$out"
