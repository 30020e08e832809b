#!/bin/bash
# gpu.sh build|test|bench|sanitize tests and measures rayo on an NVIDIA GPU, through CUDA
# and through Vulkan.
#
#   build     builds test programs, which need only the driver, and copies them and this
#             script to dist/gpu. Copy that folder to the machine with the GPU. The programs
#             for Vulkan need a C compiler to build, and libvulkan.so.1 to run
#   test      tests the driver interface and the native kernels, and runs the whole
#             conformance suite and small language models on the device, by CUDA and by WebGPU
#   bench     measures latencies of the driver interface, and operations on the device by
#             CUDA and by WebGPU, in turn with PyTorch if python3 has it
#   sanitize  runs the short form of all tests under NVIDIA's compute-sanitizer, which
#             searches for accesses out of bounds and for races. It runs one process for
#             each processor (3 minutes on 16). It needs dynamically linked programs:
#             RAYO_SANITIZE=1 gpu.sh build builds them too
#
# test, bench and sanitize use the programs in the folder of this script, if it has them, or
# those in dist/gpu. RAYO_TEST_GPU=cuda or vulkan selects one of the two.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
self=$here/$(basename "$0")

if [ "${1-}" = build ]; then
	cd "$here/.."
	mkdir -p dist/gpu
	for p in cuda internal/devicetest internal/ptxkernels llm; do
		CGO_ENABLED=0 GOOS=linux GOARCH=${GOARCH-amd64} ${GO-go} test -c -trimpath -ldflags='-s -w' -o "dist/gpu/$(basename $p).test" ./$p
	done
	rm -f dist/gpu/{webgpu.test,batches.test,vulkan}
	for p in webgpu:internal/devicetest batches:internal/driver/webgpu; do
		bash .ci/with.sh cgo env CGO_ENABLED=1 GOOS=linux GOARCH=${GOARCH-amd64} ${GO-go} test -c -tags nocuda -trimpath -ldflags='-s -w' -o "dist/gpu/${p%%:*}.test" "./${p#*:}"
	done
	# Build this program only for the architecture of this machine.
	[ "${GOARCH-amd64}" != "$(${GO-go} env GOHOSTARCH)" ] || bash .ci/with.sh cgo ${CC-cc} -O2 -o dist/gpu/vulkan bench/peers/vulkan.c -ldl
	if [ -n "${RAYO_SANITIZE-}" ]; then
		for p in cuda internal/devicetest internal/ptxkernels; do
			CGO_ENABLED=1 GOOS=linux ${GO-go} test -c -tags nowebgpu -trimpath -ldflags='-s -w' -o "dist/gpu/$(basename $p).cgo.test" ./$p
		done
	fi
	cp "$0" bench/peers/gpu.py dist/gpu/
	exit
fi

[ -x "$here/cuda.test" ] || here=$here/../dist/gpu
cd "$here"

# by API succeeds if the tests of this API, cuda or vulkan, are selected and can run.
by() {
	[ "${RAYO_TEST_GPU-$1}" = "$1" ] || return 1
	[ "$1" = vulkan ] || return 0
	if [ ! -x webgpu.test ]; then
		echo "SKIPPED, needs webgpu.test: gpu.sh build had no C compiler to build it"
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
		./ptxkernels.test -test.run GPU
		./devicetest.test -test.run '^TestCUDA(Pair)?$' -test.timeout 20m
		./llm.test -test.run '^TestCUDA$' -test.timeout 20m
	fi
	if by vulkan; then
		RAYO_TEST_GPU=vulkan ./webgpu.test -test.run '^Test(WebGPU(ManyRows|LongRows|Extremes|Halves|Flows|EmptyArrays|HalfBounds|KeepsNaN)?|Texts)$' -test.timeout 20m
	fi
	;;
bench)
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
	# Operations on resident arrays are measured by the device's clock, in turn with
	# PyTorch if python3 has it, so one run suffices.
	python3 -c 'import torch' 2>/dev/null && export RAYO_PEER=$PWD/gpu.py
	if by cuda; then
		export RAYO_REQUIRE=cuda
		./cuda.test -test.run '^$' -test.bench GPU -test.benchtime 100ms
		./devicetest.test -test.run '^$' -test.bench 'CUDA/(oneshot|twenty)' -test.benchtime 300ms
		./devicetest.test -test.run '^$' -test.bench CUDAResident -test.benchtime 1x -test.timeout 20m
		./devicetest.test -test.run '^$' -test.bench CUDAArrays -test.benchtime 1x -test.timeout 20m
		./devicetest.test -test.run '^$' -test.bench CUDAPipeline -test.benchtime 1x
	fi
	if by vulkan; then
		export RAYO_TEST_GPU=vulkan
		[ ! -x vulkan ] || export RAYO_VULKAN_START=$PWD/vulkan
		./webgpu.test -test.run '^$' -test.bench WebGPUFirst -test.benchtime 10x
		./webgpu.test -test.run '^$' -test.bench 'WebGPU/(oneshot|twenty)' -test.benchtime 300ms
		./webgpu.test -test.run '^$' -test.bench WebGPUResident -test.benchtime 1x -test.timeout 20m
	fi
	;;
sanitize)
	export RAYO_REQUIRE=cuda
	command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
	mkdir -p sanitized
	# one TOOL PROGRAM TESTS [SKIPPED] runs a tool over some tests and prints the exit status. If the
	# tool has findings, it also prints their kernels and numbers.
	one() {
		log=sanitized/$1-$2-$(tr -c 'a-zA-Z_\n' - <<<"$3${4+ without $4}")
		rc=0
		compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 99 --print-limit 2000 \
			"./$2.cgo.test" -test.short -test.v -test.run "$3" -test.skip "${4-^$}" -test.timeout 20m >"$log" 2>&1 || rc=$?
		grep -qe '--- PASS' "$log" || rc=1 # nothing was tested
		echo "== $1 $2 $3${4+ without $4}: exit $rc, $(grep -c -e '--- PASS' "$log" || true) passed, $(grep -c -e '--- FAIL' "$log" || true) failed," "$(grep -oE '(ERROR|RACECHECK) SUMMARY.*' "$log" || true)"
		found=$(grep -E '^========= (Error|Warning|Invalid|Misaligned|Program)|^ *--- FAIL|^panic' "$log" |
			sed -E 's/\+0x[0-9a-f]+//g; s/0x[0-9a-f]+//g; s/(block|thread) \([0-9,]+\)//g; s/\[[0-9]+ hazards\]//' | sort | uniq -c | sort -rn || true)
		[ -z "$found" ] || head -20 <<<"$found"
		# racecheck has false positives for the two kernels with cp.async.bulk: it treats the copy
		# as a write of the thread that starts it, ignores the mbarrier on which readers wait, and
		# does not order the reads of a warp before the arrival of one of its lanes. The emulator
		# checks both.
		if [ "$1" = racecheck ] && [ $rc = 99 ] && ! grep -qvE 'Race reported.* (rayo_)?matmul_q_[a-z0-9_]*(_ring[0-9]*_|_many)' <<<"$found"; then
			rc=0
		fi
		return $rc
	}
	export -f one
	# The longest parts run first. The patterns of letters match the names of all operations.
	for tool in racecheck memcheck; do
		for part in 'ptxkernels TestGPUHalf' 'ptxkernels TestGPU(MatMulQ|Attention)' 'ptxkernels TestGPU(Sgemm|TF32)' 'ptxkernels TestGPU(Rows|Reduce|Functions|Instructions)' \
			'devicetest ^TestCUDA$ ^TestCUDA$/^(operations|graphs|aliasing|mistakes|buffers|blocks|copies|plans|cancellation|closing)$' \
			'devicetest ^TestCUDA$ ^TestCUDA$/^(operations|graphs|concurrency|leaks)$' 'devicetest ^TestCUDA$/^graphs$' \
			'devicetest ^TestCUDA$/^operations$/^matmul$' 'devicetest ^TestCUDA$/^operations$/^matmul_q$' 'devicetest ^TestCUDA$/^operations$/^m([^a]|a[^t]|at[^m])' \
			'devicetest ^TestCUDA$/^operations$/^[ab]' 'devicetest ^TestCUDA$/^operations$/^[c-e]' 'devicetest ^TestCUDA$/^operations$/^[f-k]' 'devicetest ^TestCUDA$/^operations$/^l' \
			'devicetest ^TestCUDA$/^operations$/^[n-q]' 'devicetest ^TestCUDA$/^operations$/^r' 'devicetest ^TestCUDA$/^operations$/^s' 'devicetest ^TestCUDA$/^operations$/^[t-z]' \
			'cuda TestGPU(RoundTrips|HostMemory|StagingIsOrdered|Modules|LaunchKinds|Graphs)$'; do
			echo "$tool $part"
		done
	done | tr '\n' '\0' | xargs -0 -P "$(nproc)" -n 1 bash -c 'read -ra of <<<"$0"; one "${of[@]}"'
	exit
	;;
*)
	sed -n '2,22s/^# \{0,1\}//p' "$self" >&2
	exit 2
	;;
esac
