#!/bin/bash
# packages.sh SET prints the import paths of a set of packages of the root
# module. The sets are found by looking, so that a new package joins by itself.
#
#   concurrent  packages that use package sync or start goroutines, themselves or in their tests,
#               without those whose tests run long on one goroutine: internal/gen, internal/portable, internal/ptxgen,
#               internal/ptxkernels, wgsl, and ptx with its emulator and samples; and internal/devicetest,
#               whose tests of concurrency make race names.
#               simd is assembly, which the race detector cannot see: the drivers' tests run it
#               on several goroutines
#   native      the kernels of processors, the devices that run them, and what
#               records work: what the instruction set has a say in, which it has not
#               in the emulator of GPUs
#   kernels     portable kernels: how they are written, run, checked and printed
#   portable    everything that a browser can run, without what is for NVIDIA's GPUs alone,
#               generators, tests of the tree itself, and the library of portable kernels and the
#               printer of WGSL, which give the same results everywhere: those are built for it only
#   arm64       packages with files that amd64 has not
#   noasm       packages with files that are built without assembly alone
set -euo pipefail
module=$(go list -m)

# differing VARIABLE=VALUE... prints the packages that have other files under this setting of go.
differing() {
	local files='{{.ImportPath}} {{.GoFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}'
	export GOOS=linux GOARCH=amd64 CGO_ENABLED=0
	diff <(go list -f "$files" ./...) <(env "$@" go list -f "$files" ./...) | awk '/^>/ { print $2 }'
}

case $1 in
concurrent)
	go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./... | while read -r path dir; do
		grep -qE '^\s+"sync(/atomic)?"|^\s+go [a-z]|\.Go\(|\.Parallel\(\)' "$dir"/*.go && echo "$path"
	done | grep -v "^$module/\(cmd/\|examples/\|internal/gen$\|internal/portable$\|internal/ptxgen$\|wgsl$\|ptx$\|ptx/emu$\|internal/ptxkernels$\|ptx/samples$\|simd$\|simd/linalg$\|internal/devicetest$\)" || true
	;;
native)
	go list ./simd/... ./device/... ./batch/... ./internal/engine/... ./internal/driver/... ./internal/workers/... ./internal/memory/... ./internal/onnxtest ./internal/devicetest | grep -v "/cuda/emulated$"
	;;
kernels)
	go list ./kernel/... ./internal/portable ./wgsl/... ./gguf/... ./internal/interp/... ./internal/ir/...
	;;
portable)
	GOOS=js GOARCH=wasm go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... |
		grep -v "^$module/\(cmd/\|examples/\|docs$\|cuda$\|ptx$\|ptx/\|internal/driver/cuda/\|internal/ptxgen$\|internal/ptxkernels$\|internal/gen$\|internal/genfile$\|internal/archtest$\|internal/webgpu/wgpunative$\|kernel/internal/gen$\|internal/portable$\|internal/testutil$\|wgsl$\)" || true
	;;
arm64) differing GOARCH=arm64 ;;
noasm) differing GOFLAGS=-tags=noasm ;;
*)
	echo "packages.sh: no set is called $1" >&2
	exit 2
	;;
esac
