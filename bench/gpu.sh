#!/bin/bash
# gpu.sh build|test|bench|sanitize: tests and measurements on an NVIDIA GPU, through
# CUDA and through Vulkan.
#
#   build   makes dist/gpu: programs that need nothing but the driver, and this
#           script beside them. Copy that folder to the machine with the GPU. Those
#           for Vulkan need a C compiler here, and libvulkan.so.1 there.
#   test    the driver interface, the native kernels, then the whole conformance
#           suite on the device, by CUDA and by WebGPU, and small language models
#   bench   latencies of the driver interface, then operations on the device by each,
#           beside PyTorch where it is there; at last which goals are met, a
#           line each
#   sanitize  all of the tests, in their short form, under NVIDIA's compute-sanitizer,
#           which looks for accesses out of bounds and for races, as many at once as
#           there are processors (3 minutes on 16). It needs programs that are linked
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
	for p in cuda internal/devicetest internal/ptxkernels llm; do
		CGO_ENABLED=0 GOOS=linux GOARCH=${GOARCH-amd64} ${GO-go} test -c -trimpath -ldflags='-s -w' -o "dist/gpu/$(basename $p).test" ./$p
	done
	rm -f dist/gpu/{webgpu.test,batches.test,vulkan}
	for p in webgpu:internal/devicetest batches:internal/driver/webgpu; do
		bash .ci/with.sh cgo env CGO_ENABLED=1 GOOS=linux GOARCH=${GOARCH-amd64} ${GO-go} test -c -tags nocuda -trimpath -ldflags='-s -w' -o "dist/gpu/${p%%:*}.test" "./${p#*:}"
	done
	# Only where it would run.
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
	# Operations on resident arrays are measured by the device's clock, beside
	# PyTorch where python3 has it: once is enough.
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
	# one runs a tool over some tests, says how it ended and, where something was found,
	# in which kernels how often.
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
		# racecheck takes what cp.async.bulk writes for a write of the thread that starts
		# the copy, and does not follow the mbarrier by which readers wait for it, nor what
		# a warp has read before one of its lanes arrives: it reports these of the two
		# kernels that copy so. The emulator follows both.
		if [ "$1" = racecheck ] && [ $rc = 99 ] && ! grep -qvE 'Race reported.* (rayo_)?matmul_q_[a-z0-9_]*(_ring[0-9]*_|_many)' <<<"$found"; then
			rc=0
		fi
		return $rc
	}
	export -f one
	# What takes longest goes first. The operations are all there: each name begins with
	# one of the letters.
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
