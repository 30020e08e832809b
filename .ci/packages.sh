#!/bin/bash
# packages.sh SET prints the import paths of a set of packages of the root
# module. It finds the packages by their files, so that the sets include new packages.
#
#   concurrent  packages that use package sync or start goroutines, themselves or in their tests,
#               without those whose tests run long on one goroutine: internal/gen, internal/portable, internal/ptxgen,
#               internal/ptxkernels, wgsl, and ptx with its emulator and samples; and without internal/devicetest,
#               whose tests of concurrency `make race` runs separately.
#               simd is assembly, which the race detector cannot check; the drivers' tests run it
#               on several goroutines
#   native      packages whose results depend on the instruction set of the processor: its kernels, the
#               devices that run them, and the packages that record work, without the emulator of GPUs
#   kernels     portable kernels: how they are written, run, checked and printed
#   portable    packages that a browser can run, without packages for NVIDIA's GPUs, generators and tests of
#               the tree itself. It also leaves out the library of portable kernels and the printer of WGSL,
#               which have the same results everywhere and are only compiled for browsers
#   arm64       packages with files that amd64 does not have
#   noasm       packages with files that are only compiled without assembly
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
