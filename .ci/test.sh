#!/usr/bin/env bash
# Runs go test on the given packages and closes with "N passed, N failed, N
# skipped", each skip with its reason. Packages run one after the other: some
# measure time, and debug registers are few.
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -p 1 -count=1 -timeout 20m -v "$@" 2>&1 | tee "$log" | grep --line-buffered -E '^(ok|FAIL|panic:|--- FAIL)'
status=${PIPESTATUS[0]}
awk '
/^=== RUN/ { name = $3; text[name] = ""; current = name; next }
/^=== (PAUSE|CONT|NAME)/ { current = $3; next }
/^ *--- PASS/ { pass++; next }
/^ *--- SKIP/ { skip++; skipped[skip] = $3 ": " text[$3]; next }
/^ *--- FAIL/ { fail++; failed[fail] = $3 "\n" text[$3]; next }
/^(ok|FAIL|\?) / || /^(panic|fatal error|SIG)/ || /build failed/ || /^#/ { print; next }
current != "" && length(text[current]) < 4000 { text[current] = text[current] $0 "\n" }
END {
	for (i = 1; i <= fail; i++) print "--- FAIL: " failed[i]
	for (i = 1; i <= skip; i++) { gsub(/[ \n]+/, " ", skipped[i]); print "skipped " skipped[i] }
	printf "%d passed, %d failed, %d skipped\n", pass, fail, skip
}' "$log"
if [ $status -ne 0 ] && ! grep -q -- '^ *--- FAIL' "$log"; then
	tail -50 "$log"
fi
exit $status
