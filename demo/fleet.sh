#!/usr/bin/env bash
# What make demo-fleet runs: Pyroscope on loopback, two agents with the labels of two hosts, three
# services under load; prints rdx fleet top and leaves the server running until Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-75}
[ "$(id -u)" = 0 ] || { echo "demo-fleet: needs root (sudo make demo-fleet)" >&2; exit 1; }
pyroscope=$(deploy/pyroscope/build.sh | tail -1)
work=$(mktemp -d)
pids=()
end() {
	for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
port=${RDX_DEMO_PORT:-4040}
url=http://127.0.0.1:$port
loopback=()
for ring in ingester.lifecycler distributor.ring.instance query-scheduler.ring.instance store-gateway.sharding-ring.instance \
	compactor.ring.instance query-frontend.instance overrides-exporter.ring.instance; do
	case $ring in *lifecycler) loopback+=("-$ring.addr=127.0.0.1") ;; *) loopback+=("-$ring-addr=127.0.0.1") ;; esac
done
(cd "$work" && exec "$pyroscope" -target=all -log.level=error -server.http-listen-address=127.0.0.1 -server.http-listen-port="$port" \
	-server.grpc-listen-address=127.0.0.1 -server.grpc-listen-port=$((port + 1)) -memberlist.bind-addr=127.0.0.1 \
	-memberlist.bind-port=$((port + 2)) -memberlist.advertise-addr=127.0.0.1 -memberlist.advertise-port=$((port + 2)) \
	"${loopback[@]}" -ingester.min-ready-duration=0s -storage.backend=filesystem -storage.filesystem.dir="$work/storage" \
	-pyroscopedb.data-path="$work/db" -usage-stats.enabled=false -self-profiling.disable-push=true) >"$work/pyroscope.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do
	curl -fs "$url/ready" >/dev/null 2>&1 && break
	sleep .2
done
curl -fs "$url/ready" >/dev/null || { tail "$work/pyroscope.log" >&2; echo "demo-fleet: Pyroscope does not start on port $port (RDX_DEMO_PORT=...)" >&2; exit 1; }

gcc -O2 -g -o "$work/service" demo/service.c
run() { # HOST SERVICE VERSION LINES EVERY
	mkdir -p "$work/$1"
	ln -f "$work/service" "$work/$1/$2"
	OTEL_SERVICE_NAME=$2 OTEL_RESOURCE_ATTRIBUTES=service.version=$3 "$work/$1/$2" "$4" "$5" 0 30 &
	pids+=($!)
}
for host in a b; do
	run $host checkout 41 32768 10
	run $host search 41 512 4
done
run a cart 41 32768 20
run b cart 42 32768 4 # the version with more misses
for host in a b; do
	cat >"$work/$host.yaml" <<CONFIG
server: {url: "$url"}
host: host-$host
period: 15s
discover: 3s
overhead: 4
target_overhead: 3
spool: {dir: "$work/spool-$host"}
listen: "unix:$work/$host.sock"
only: [{exe: "^$work/$host/"}]
log_level: error
CONFIG
	./rdx agent --config "$work/$host.yaml" &
	pids+=($!)
done
echo "two agents sample three services for $seconds s: checkout misses in 10 % of its accesses, cart in 5 % (version 41) and 25 % (42), search hardly"
sleep "$seconds"
set -x
./rdx fleet top --server "$url" --by-label service_name --by l1d
./rdx fleet top --server "$url" --service checkout
./rdx fleet mrc --server "$url" --service cart --by version --sizes 64k,256k,8m
./rdx fleet diff --server "$url" --service cart version=41 version=42 --sizes 256k
{ set +x; } 2>/dev/null
echo
echo "flame graphs: $url (series rdx); Ctrl-C ends everything"
[ -t 0 ] && [ -z "${RDX_DEMO_ONCE:-}" ] && wait || true
