#!/bin/bash
# gpu.sh build|test|bench: tests and measurements on an NVIDIA GPU.
#
#   build   makes dist/gpu: programs that need nothing but the driver, and this
#           script beside them. Copy that folder to the machine with the GPU.
#   test    the driver interface, the native kernels, then the whole conformance
#           suite on the device
#   bench   latencies of the driver interface, then operations on the device, beside
#           PyTorch where it is there
#
# test and bench run in this script's folder if the programs are there, else in
# dist/gpu.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [ "${1-}" = build ]; then
	cd "$here/.."
	mkdir -p dist/gpu
	for p in cuda device/devicetest ptx/kernels; do
		CGO_ENABLED=0 GOOS=linux GOARCH=${GOARCH-amd64} ${GO-go} test -c -trimpath -ldflags='-s -w' -o "dist/gpu/$(basename $p).test" ./$p
	done
	cp "$0" bench/peers/gpu.py dist/gpu/
	exit
fi

[ -x "$here/cuda.test" ] || here=$here/../dist/gpu
cd "$here"
export RAYO_REQUIRE=cuda
case ${1-} in
test)
	./cuda.test -test.run GPU
	./kernels.test -test.run GPU
	./devicetest.test -test.run '^TestCUDA(Pair)?$' -test.timeout 20m
	;;
bench)
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
	./cuda.test -test.run '^$' -test.bench GPU -test.benchtime 100ms
	./devicetest.test -test.run '^$' -test.bench 'CUDA/(oneshot|twenty)' -test.benchtime 300ms
	# Operations on resident arrays are measured by the device's clock, beside
	# PyTorch where python3 has it: once is enough.
	python3 -c 'import torch' 2>/dev/null && export RAYO_PEER=$PWD/gpu.py
	./devicetest.test -test.run '^$' -test.bench CUDAResident -test.benchtime 1x -test.timeout 20m
	;;
*)
	sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
