#!/bin/bash
# gpu.sh build|test|bench|sanitize: tests and measurements on an NVIDIA GPU, through
# CUDA and through Vulkan.
#
#   build   makes dist/gpu: programs that need nothing but the driver, and this
#           script beside them. Copy that folder to the machine with the GPU. The one
#           for Vulkan needs a C compiler here, and libvulkan.so.1 there.
#   test    the driver interface, the native kernels, then the whole conformance
#           suite on the device, by CUDA and by WebGPU
#   bench   latencies of the driver interface, then operations on the device by each,
#           beside PyTorch where it is there; at last which goals are met, a
#           line each
#   sanitize  a part of the tests under NVIDIA's compute-sanitizer, which looks for
#           accesses out of bounds and for races. It needs programs that are linked
#           dynamically: RAYO_SANITIZE=1 gpu.sh build makes them too
#
# test, bench and sanitize run in this script's folder if the programs are there, else in
# dist/gpu. RAYO_TEST_GPU=cuda or vulkan chooses one of the two.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
self=$here/$(basename "$0")

if [ "${1-}" = build ]; then
	cd "$here/.."
	mkdir -p dist/gpu
	for p in cuda device/devicetest ptx/kernels; do
		CGO_ENABLED=0 GOOS=linux GOARCH=${GOARCH-amd64} ${GO-go} test -c -trimpath -ldflags='-s -w' -o "dist/gpu/$(basename $p).test" ./$p
	done
	rm -f dist/gpu/webgpu.test
	bash .ci/with.sh cgo env CGO_ENABLED=1 GOOS=linux GOARCH=${GOARCH-amd64} ${GO-go} test -c -tags nocuda -trimpath -ldflags='-s -w' -o dist/gpu/webgpu.test ./device/devicetest
	if [ -n "${RAYO_SANITIZE-}" ]; then
		for p in cuda device/devicetest ptx/kernels; do
			CGO_ENABLED=1 GOOS=linux ${GO-go} test -c -tags nowebgpu -trimpath -ldflags='-s -w' -o "dist/gpu/$(basename $p).cgo.test" ./$p
		done
	fi
	cp "$0" bench/peers/gpu.py dist/gpu/
	exit
fi

[ -x "$here/cuda.test" ] || here=$here/../dist/gpu
cd "$here"

# by says whether tests of a way to the GPU are wanted and can be run.
by() {
	[ "${RAYO_TEST_GPU-$1}" = "$1" ] || return 1
	[ "$1" = vulkan ] || return 0
	if [ ! -x webgpu.test ]; then
		echo "SKIPPED, needs webgpu.test: it was built without a C compiler"
		return 1
	fi
	if ! ldconfig -p | grep -q 'libvulkan\.so\.1 '; then
		echo "SKIPPED, needs vulkan: there is no libvulkan.so.1 (Debian package libvulkan1)"
		return 1
	fi
}

case ${1-} in
test)
	if by cuda; then
		export RAYO_REQUIRE=cuda
		./cuda.test -test.run GPU
		./kernels.test -test.run GPU
		./devicetest.test -test.run '^TestCUDA(Pair)?$' -test.timeout 20m
	fi
	if by vulkan; then
		RAYO_TEST_GPU=vulkan ./webgpu.test -test.run '^Test(WebGPU(ManyRows|LongRows)?|Texts)$' -test.timeout 20m
	fi
	;;
bench)
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
	# Operations on resident arrays are measured by the device's clock, beside
	# PyTorch where python3 has it: once is enough.
	python3 -c 'import torch' 2>/dev/null && export RAYO_PEER=$PWD/gpu.py
	if by cuda; then
		export RAYO_REQUIRE=cuda
		./cuda.test -test.run '^$' -test.bench GPU -test.benchtime 100ms
		./devicetest.test -test.run '^$' -test.bench 'CUDA/(oneshot|twenty)' -test.benchtime 300ms
		./devicetest.test -test.run '^$' -test.bench CUDAResident -test.benchtime 1x -test.timeout 20m
	fi
	if by vulkan; then
		export RAYO_TEST_GPU=vulkan
		./webgpu.test -test.run '^$' -test.bench 'WebGPU/(oneshot|twenty)' -test.benchtime 300ms
		./webgpu.test -test.run '^$' -test.bench WebGPUResident -test.benchtime 1x -test.timeout 20m
	fi
	;;
sanitize)
	export RAYO_REQUIRE=cuda
	command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
	failed=0
	sanitize() { # tool, program, tests
		echo "== $1 $2 $3"
		compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 99 --print-limit 3 "./$2.cgo.test" -test.short -test.v -test.run "$3" -test.timeout 20m >sanitize.log 2>&1 || failed=1
		# What was launched before each finding: a warning of where it came from.
		grep -E '^launch of|^========= (Error|Warning|Invalid|Misaligned|.* SUMMARY)|^ *--- FAIL|^PASS|^FAIL' sanitize.log |
			awk '/^launch of/ {last = $0; next} /Error|Warning|Invalid|Misaligned/ {if (!seen[last]++) print last} {print}'
	}
	for t in TestGPURows TestGPUReduce TestGPUSgemm TestGPUHalf TestGPUAttention TestGPUMatMulQ; do
		sanitize memcheck kernels "$t"
	done
	# racecheck does not follow mbarriers, by which warps of attention and of products
	# with many rows tell each other what is there: of those it reports each. The
	# emulator follows them.
	for t in TestGPURows TestGPUReduce TestGPUSgemm TestGPUHalf; do
		sanitize racecheck kernels "$t"
	done
	sanitize memcheck cuda 'TestGPU(RoundTrips|HostMemory|StagingIsOrdered|Modules|LaunchKinds|Graphs)$'
	sanitize memcheck devicetest '^TestCUDA$'
	exit $failed
	;;
*)
	sed -n '2,22s/^# \{0,1\}//p' "$self" >&2
	exit 2
	;;
esac
