#!/usr/bin/env bash
# release.sh [VERSION] makes in dist/ what a release has: static binaries for amd64 and arm64, Debian and
# RPM packages, an OCI image, SBOMs and checksums. The same commit gives the same bytes. VERSION is that
# of the tag vX.Y.Z at this commit, or else 0.0.0 with the commit's date. NFPM names a built nfpm; without
# it the one pinned in internal/tools is used.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null | sed s/^v// || true)}
[ -n "$version" ] || version=0.0.0-git$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
DATE=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
export SOURCE_DATE_EPOCH CGO_ENABLED=0 TZ=UTC LC_ALL=C
umask 022
rm -rf dist
mkdir -p dist
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
if [ -z "${NFPM:-}" ]; then
	NFPM=$stage/nfpm
	go build -C internal/tools -o "$NFPM" github.com/goreleaser/nfpm/v2/cmd/nfpm
fi

# tarball DIR NAMES... is a tar of them, by root, whose bytes depend on their contents alone.
tarball() {
	tar --create --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=go-w -C "$@"
}

# blob FILE puts a file into the image by its hash, and says which and how large it is.
blob() {
	local sum
	sum=$(sha256sum "$1" | cut -d' ' -f1)
	cp "$1" "$stage/image/blobs/sha256/$sum"
	printf '"digest":"sha256:%s","size":%d' "$sum" "$(stat -c %s "$1")"
}

stamp="-s -w -X github.com/rdx-profiler/rdx/internal/version.release=v$version -X github.com/rdx-profiler/rdx/internal/version.commit=$(git rev-parse HEAD)"
go build -trimpath -buildvcs=false -ldflags "$stamp" -o "$stage/native" ./cmd/rdx
"$stage/native" docs "$stage/docs" # pages are the same for all architectures
gzip -9 -n "$stage"/docs/man/*.1
mkdir -p "$stage/image/blobs/sha256"
manifests=
for arch in amd64 arm64; do
	STAGE=$stage/$arch
	mkdir "$STAGE"
	cp -r "$stage/docs/man" "$stage/docs/completion" "$STAGE"
	GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "$stamp" -o "$STAGE/rdx" ./cmd/rdx
	go run ./deploy/sbom "$STAGE/rdx" "v$version" >"dist/rdx_${version}_linux_$arch.cdx.json"
	cp LICENSE README.md CHANGELOG.md docs/how-to/fleet.md deploy/agent.yaml deploy/systemd/rdx-agent.service "$STAGE"
	sed "s#@DATE@#$DATE#; s#@STAGE@#$STAGE#; s#@ARCH@#$arch#; s#@VERSION@#$version#" deploy/package/nfpm.yaml >"$STAGE/nfpm.yaml"
	find "$STAGE" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	tarball "$STAGE" rdx LICENSE README.md man completion | gzip -9 -n >"dist/rdx_${version}_linux_$arch.tar.gz"
	for packager in deb rpm; do
		"$NFPM" package --config "$STAGE/nfpm.yaml" --packager $packager --target dist/ >"$stage/said" || { cat "$stage/said" >&2; exit 1; }
	done
	tarball "$STAGE" rdx >"$stage/layer.tar"
	printf '{"architecture":"%s","os":"linux","created":"%s","config":{"Entrypoint":["/rdx"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
		$arch "$DATE" "$(sha256sum "$stage/layer.tar" | cut -d' ' -f1)" >"$stage/config.json"
	printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json",%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar",%s}]}' \
		"$(blob "$stage/config.json")" "$(blob "$stage/layer.tar")" >"$stage/manifest.json"
	manifests=$manifests${manifests:+,}$(printf '{"mediaType":"application/vnd.oci.image.manifest.v1+json",%s,"platform":{"architecture":"%s","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"%s"}}' \
		"$(blob "$stage/manifest.json")" $arch "$version")
done
printf '{"imageLayoutVersion":"1.0.0"}' >"$stage/image/oci-layout"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' "$manifests" >"$stage/image/index.json"
tarball "$stage/image" blobs index.json oci-layout >"dist/rdx_${version}_oci.tar"
(cd dist && sha256sum -- * >SHA256SUMS)
ls -l dist
