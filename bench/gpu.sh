#!/bin/sh
# Measures rdx exact --gpu against one core and all cores on a machine with a GPU; see bench/gpu/main.go. It takes two
# minutes. Where there is no Go, bring a folder bin from a machine that has: bench/gpu.sh build makes it.
set -eu
cd "$(dirname "$0")/.."
if [ "${1-}" = build ] || [ ! -x bin/gpubench ]; then
	mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -o bin/gpubench ./bench/gpu
	CGO_ENABLED=0 go build -trimpath -o bin/rdx-gpu ./cmd/rdx-gpu
	# The library that finds drivers, for machines that have a driver alone.
	for l in /usr/lib/*/libOpenCL.so.1; do
		[ -e "$l" ] && cp -L "$l" bin/
	done
	[ "${1-}" != build ] || exit 0
fi
export RDX_GPU="$PWD/bin/rdx-gpu"
if ! ldconfig -p 2>/dev/null | grep -q 'libOpenCL\.so\.1'; then
	export LD_LIBRARY_PATH="$PWD/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
# NVIDIA's containers have its driver and do not say so.
if ! ls /etc/OpenCL/vendors/*.icd >/dev/null 2>&1 && ldconfig -p | grep -q 'libnvidia-opencl\.so\.1'; then
	mkdir -p bin/vendors
	echo libnvidia-opencl.so.1 >bin/vendors/nvidia.icd
	export OCL_ICD_VENDORS="$PWD/bin/vendors/"
fi
exec bin/gpubench "$@"
