# rdx: see README.md. Targets that install Debian packages do so by name and
# only what is missing.
SHELL := /bin/bash
export CGO_ENABLED := 0

.PHONY: build rdx-gpu engine pyroscope test test-short test-root test-vm mutants generate check-generate lint demo demo-fleet release check-release check-deploy bench accuracy coverage paper deps clean

# What rdx version says, where git knows it.
stamp := -X github.com/rdx-profiler/rdx/internal/version.release=$(shell git describe --tags --dirty --match 'v[0-9]*' 2>/dev/null) \
	-X github.com/rdx-profiler/rdx/internal/version.commit=$(shell git rev-parse HEAD 2>/dev/null)

build:
	go build -trimpath -ldflags "-s -w $(stamp)" -o rdx ./cmd/rdx

# What rdx exact --gpu runs beside itself: it alone loads the system's OpenCL library.
rdx-gpu:
	go build -trimpath -ldflags "-s -w" -o rdx-gpu ./cmd/rdx-gpu

# What rdx trace record and rdx exact -- PROGRAM run programs under: the valgrind
# tool, for which the package valgrind has what it needs, and the plugin for
# QEMU's emulator in the package qemu-user.
engine:
	$(MAKE) -C trace/valgrind
	$(MAKE) -C trace/qemu

# Grafana Pyroscope, the back end of rdx fleet, for its tests and the demonstration: from
# the module proxy into the user's cache, once.
pyroscope:
	deploy/pyroscope/build.sh

# Everything that can be tested on this machine; the closing line counts what
# was skipped, and the lines before it say why.
test: lint check-generate
	-$(MAKE) -s engine # without it, what needs it is skipped
	.ci/test.sh ./...

# What a contributor runs first: under two minutes, and no root.
test-short:
	.ci/test.sh -short ./...

# Only what needs root, BPF, ptrace and watchpoints.
test-root:
	.ci/test.sh ./sampler/... ./collector/... ./cmd/...

# Boots Debian's kernels from 5.10 on, x86-64 and arm64, under QEMU and runs the
# end-to-end tests in each; prints the tables of docs/reference/kernels.md. Kernels are
# kept in ~/.cache/rdx-vm.
test-vm:
	vm/run.sh
	RDX_VM_FAULTS=1 vm/run.sh 5.10-arm64 6.12-arm64 7.3-arm64
	RDX_VM_PATTERNS=1 vm/run.sh 5.10-arm64 6.12-arm64 7.3-arm64
	RDX_VM_RIGHTS=1 RDX_VM_TIMEOUT=900 vm/run.sh 6.1-amd64
	RDX_VM_CLOCK=1 RDX_VM_TIMEOUT=900 vm/run.sh 6.12-amd64
	RDX_VM_COST=1 RDX_VM_TIMEOUT=3600 vm/run.sh 6.12-amd64
	RDX_VM_CPUS=2 vm/run.sh 5.10-amd64 7.3-amd64 5.10-arm64 6.12-arm64 7.3-arm64

# Takes mends back one at a time, and wants a test to fail each time: some minutes, root.
mutants:
	go run ./internal/mutants

lint:
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt: $$out"; exit 1; fi
	go mod tidy -diff
	go vet ./...
	go test ./internal/layout
	.ci/check-format.sh
	.ci/lint.sh
	GOOS=darwin go build ./model ./exact ./trace ./pprofout
	GOOS=windows go build ./model ./exact ./trace ./pprofout
	GOOS=linux GOARCH=arm64 go build ./...

generate:
	cd bpf && go generate
	cd web && go generate

# Stale generated code is an error. Needs clang; the committed objects come
# from the version named in bpf/gen.go, another one cannot be compared.
check-generate:
	.ci/check-generate.sh

demo: deps build engine
	demo/demo.sh

# A fleet on this machine: Pyroscope, two agents, three services.
demo-fleet: build
	demo/fleet.sh

# What a release has, in dist/: static binaries, packages, an image, SBOMs and checksums; and its test.
release:
	deploy/release.sh

check-release:
	deploy/check-release.sh

# What can be said of the unit and the manifests without systemd and Kubernetes.
check-deploy:
	systemd-analyze security --offline=true deploy/systemd/rdx-agent.service | tail -1
	cd deploy/kubernetes/check && go run . ../rdx-agent.yaml

bench: build
	bench/run.sh

# Live profiles against the exact answer: the table of docs/explanation/accuracy.md.
accuracy:
	bench/accuracy.sh

# How often bands hold, by sessions simulated from recorded streams: hours, or minutes by
# bench/accuracy.sh -judge coverage,programs -repetitions 100.
coverage:
	bench/accuracy.sh -judge coverage,kernels,programs

# The papers' tables beside ours; those on real programs take minutes. The
# conversions' are TestRealAccuracy and TestRealAccuracyLocal, that of recording the bench's first.
paper: engine rdx-gpu
	RDX_LONG=1 RDX_GPU=$(CURDIR)/rdx-gpu go test -count=1 -timeout 90m -run 'Paper|TestRealAccuracy' -v ./model ./exact
	bench/trace.sh

# What make test and make demo use, from Debian or Ubuntu.
deps:
	.ci/deps.sh

clean:
	rm -rf rdx rdx-gpu dist
