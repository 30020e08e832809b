# Every target works on a machine with only Go and make. A part that needs another tool
# (a C compiler, qemu, Node.js) is skipped with a message if the tool is missing, or fails
# if RAYO_REQUIRE names the tool. See CONTRIBUTING.md.

SHELL       := /bin/bash
GO          ?= go
FUZZTIME    ?= 10s
# With -short a test runs some of its cases, chosen at random where cases are independent.
SHORT       ?= -short
FUZZAPI_TIME ?= 2m
# The test cache of go distinguishes commands by their flags, including this one.
TIMEOUT     := -timeout 30m
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
QEMU        := $(firstword $(shell command -v qemu-aarch64-static qemu-aarch64))
WITH        := bash .ci/with.sh
PACKAGES    := bash .ci/packages.sh
# The browser build gives a program its arguments and environment in 4 KiB.
NODE_EXEC    = $(CURDIR)/.ci/node_exec.sh

# Tests whose results do not depend on the instruction set. `make test` runs them once on this
# machine: planted defects, texts, cases, and graphs that are checked without a device.
anywhere = Mutants|Shaders|GraphsAre|GraphsNotice|CasesAre|ApproximateTexts|TestLibrary

# The garbage collector takes a seventh of the time of compilers, unless it runs less often (but what
# benchmarks measure depends on it), and tables for debuggers take a tenth. The build cache distinguishes
# packages with and without these tables. Programs with cgo, which is most tests, are linked by the linker of the C
# toolchain; gold takes two thirds of the time of the default one, but its programs do not start with the race detector.
gold := $(if $(shell command -v ld.gold),-ldflags=-extldflags=-fuse-ld=gold)
compiling = test test-all race kernels levels webgpu arm64 wasm-test cross vet lint generate generated fuzz examples
$(compiling): export GOGC ?= 300
$(compiling): export GOMEMLIMIT ?= 3GiB
export GOFLAGS ?= -gcflags=all=-dwarf=false $(gold)

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# make vet vets all packages under all settings, with more rules than go test has: here -vet=off saves
# the time. Package devicetest runs for longer than all others, mostly on one core: it comes first, so that the
# others run beside it. go test prints results in this order.
.PHONY: test
test: ## run every test, with a new random sample of long series of cases
	@echo 'internal/devicetest runs first, for some minutes; the results of all packages follow it.'
	$(GO) test -vet=off $(SHORT) $(TIMEOUT) ./internal/devicetest ./...
	@for t in objdump ptxas naga tint vulkan swiftshader unshare; do $(WITH) $$t true || exit 1; done

.PHONY: test-all
test-all: ## run every test with all of its cases, then again under the race detector if it can be built
	@$(MAKE) --no-print-directory test SHORT=
	@$(MAKE) --no-print-directory race

.PHONY: kernels
kernels: ## check the portable kernels in the interpreter, and compile them with naga and tint
	@$(WITH) naga true && $(WITH) tint true
	$(GO) test $(TIMEOUT) $$($(PACKAGES) kernels)

# Tests that compare numbers, texts and errors on one goroutine: the race detector makes them slow
# and finds nothing in them. The mistakes of the CPU device are not skipped, because its calls run on several
# threads. A pattern with a slash comes last: go test does not try the patterns after one that matches the first
# part of a name.
settled = TransformerCopies|^TestDraft$$|^TestInt8$$|^TestLibrary$$|Portable|ONNX|NumPy|Quotients|WebGPU(Loops|LongRows|Flows|Windows|Extremes|Halves|ManyHalves|ManyRows|Cut|Bare|Miscompiled)|DeepExpressions|CUDAEmulatedNumbers|Mutations|Golden|Variants|Reference$$|DamagedModels|HalfCache|Steady|RandomSizes|^TestReal|(WebGPU|CUDAEmulated)/^mistakes$$

# The parts of the conformance suite that call a device from several goroutines, or wait.
together = ^Test(CPU|CUDAEmulated|WebGPU)$$/^(concurrency|streams|buffers|plans|cancellation|closing|leaks)$$

.PHONY: race
race: export GOFLAGS := $(filter-out -ldflags=-extldflags=-fuse-ld=gold,$(GOFLAGS))
race: ## test the concurrent packages under the race detector
	@$(WITH) race env CGO_ENABLED=1 sh -c '$(GO) test -race -vet=off -short -skip "$(settled)" -timeout 20m $$($(PACKAGES) concurrent) && \
		$(GO) test -race -vet=off -short -timeout 20m -run Together ./internal/portable && \
		$(GO) test -race -vet=off -short -timeout 20m -run "$(together)" ./internal/devicetest'

.PHONY: gonum
gonum: ## test the module gonum with gonum's own BLAS suite
	cd gonum && $(GO) test $(TIMEOUT) ./...

.PHONY: wazero
wazero: ## test the WebAssembly kernels in wazero: against float64 references, in package simd, and as a device by a sample of the conformance suite, and generated kernels
	CGO_ENABLED=0 $(GO) test -vet=off -tags wazero,nocuda,nowebgpu -short $(TIMEOUT) ./internal/wasm/wazero ./simd
	CGO_ENABLED=0 $(GO) test -vet=off -tags wazero,nocuda,nowebgpu -short $(TIMEOUT) -run 'Test(Wasm|Chains)$$' ./device ./internal/devicetest ./internal/driver/cpu

.PHONY: client
client: ## test the language model server with OpenAI's client
	cd llm/serve/openai && $(GO) test $(TIMEOUT) ./...

# go test does not see RAYO_SIMD, which a process reads before a test starts: without -count=1 it
# would reuse cached results of another level. The emulated GPU, the software GPUs and the
# interpreter do not depend on the level.
levels: same = $(anywhere)|CUDA|WebGPU|Portable
.PHONY: levels
levels: ## test native code on each narrower instruction set, and without assembly; run the whole conformance suite on the widest
	RAYO_SIMD=avx2 $(GO) test -vet=off -count=1 -timeout 15m ./simd/...
	@if [ -r /proc/cpuinfo ] && ! grep -qw avx512f /proc/cpuinfo; then echo "AVX2 is the widest set of this machine: make test tests the other packages with it"; else \
		set -x; RAYO_SIMD=avx2 $(GO) test -vet=off -skip "$(same)" -short -count=1 -timeout 15m $$($(PACKAGES) native | grep -v /simd); fi
	RAYO_SIMD=generic $(GO) test -vet=off -skip "$(same)" -short -count=1 -timeout 15m $$($(PACKAGES) native)
	$(GO) test -skip "$(same)" -vet=off -short -tags noasm,nocuda,nowebgpu -timeout 15m ./simd/... ./device ./internal/driver/cpu # generic has tested the others
	$(GO) test -vet=off -timeout 15m -run '^Test(CPU|CPUThreads|Portable|ONNXPortable)$$' ./internal/devicetest # make test runs a sample

# With cgo, make test runs all of these tests on lavapipe and a sample on SwiftShader.
.PHONY: webgpu
webgpu: ## test WebGPU without cgo on lavapipe and SwiftShader, with a sample of the conformance suite
	@$(WITH) vulkan true && $(WITH) swiftshader true
	CGO_ENABLED=0 $(GO) test -vet=off -timeout 8m ./internal/webgpu/gogpu
	CGO_ENABLED=0 $(GO) test -vet=off -timeout 15m -run 'WebGPUSample|Drivers' ./internal/devicetest

# goffi_static, because code that loads libraries needs the dynamic loader of arm64. Products, attention and
# rows in plain Go take most of the time of their tests under qemu; make levels tests them on this machine.
generic = Gemm/^generic$$|TestAttention$$/^generic$$|TestRows$$/^generic$$
.PHONY: arm64
arm64: ## test native code, the interpreter of kernels and GGUF as arm64 programs under qemu
	@$(WITH) qemu env RAYO_REQUIRE= GOARCH=arm64 CGO_ENABLED=0 $(GO) test -skip "$(anywhere)|CUDA|WebGPU|Portable|CPUThreads|$(generic)" -vet=off -tags goffi_static -short -timeout 20m -exec '$(QEMU)' $$($(PACKAGES) native) $$($(PACKAGES) kernels | grep -v "/internal/portable$$\|/wgsl$$")

# Tests of sessions and sampling. They compare tokens and not numbers, so their results are the same on every device.
sessions = ^Test(Draft|ModelVariants|DamagedModels|ChoiceOnDevice|PrefixesAtRandom|Int8)$$
.PHONY: wasm-test
wasm-test: ## test the packages that pages can run, on SIMD128 and one thread, as js/wasm programs under Node.js
	@$(WITH) node env RAYO_REQUIRE= GOOS=js GOARCH=wasm CGO_ENABLED=0 $(GO) test -vet=off -skip "$(anywhere)|$(sessions)|Portable|CPUThreads|Steady|RandomSizes" -short -timeout 20m -exec '$(NODE_EXEC)' $$($(PACKAGES) portable)

.PHONY: test-browser
test-browser: ## test WebGPU in Node.js with Dawn and in Chromium, with a sample of the conformance suite; the JavaScript module; the demo site
	@bash .ci/browser.sh install && $(WITH) browser bash .ci/browser.sh test

.PHONY: npm
npm: ## build the package for JavaScript users: wasm/npm/rayo.wasm
	@bash wasm/npm/build.sh

.PHONY: site
site: ## build the demo site in dist/site as static files; MODEL=file.gguf gives its chat a model; go run ./wasm/serve serves it
	@MODEL="$(MODEL)" bash wasm/site/build.sh

.PHONY: page-size
page-size: ## check that the smallest browser program has not grown
	@bash .ci/page_size.sh

# No tests run on these systems or with these tags. typecheck finds the errors that a compiler finds, in a
# twentieth of a compiler's time.
targets = windows/amd64 darwin/arm64 js/wasm js/wasm,nowebgpu linux/386 linux/riscv64,noasm,nocuda,nowebgpu linux/arm64 linux/amd64 linux/amd64,noasm
# The command, which nearly all packages are part of. For windows it is compiled without
# optimisation, which takes a sixth less time. Other stages compile most packages of the others
# with the same settings: arm64, wasm-test, webgpu and test.
program = env $(1) $(GO) build $(2) -ldflags="-s -w" -o /dev/null ./cmd/rayo

.PHONY: cross
cross: ## check types for every supported platform, and build the command for some
	$(GO) test ./.ci/typecheck
	$(GO) run ./.ci/typecheck $(targets)
	$(call program,GOOS=windows GOARCH=amd64 CGO_ENABLED=0,-gcflags=all="-N -l -dwarf=false")
	$(call program,GOOS=linux GOARCH=arm64 CGO_ENABLED=0,-tags goffi_static)
	$(call program,GOOS=js GOARCH=wasm CGO_ENABLED=0)
	$(call program,CGO_ENABLED=0)
	@$(WITH) cgo $(call program,CGO_ENABLED=1)

.PHONY: check
check: format vet lint tidy generated ## run the source checks of CI: format, vet, lint, tidy modules, generated files

.PHONY: format
format: ## check that gofmt changes nothing
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l); if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

.PHONY: vet
vet: ## run go vet on all packages, and on those with other files for arm64 and without assembly
	$(GO) vet ./...
	GOARCH=arm64 CGO_ENABLED=0 $(GO) vet -tags goffi_static $$($(PACKAGES) arm64) # arm64 has these tags, levels the next
	$(GO) vet -tags noasm,nocuda,nowebgpu $$($(PACKAGES) noasm)
	CGO_ENABLED=0 $(GO) vet ./internal/webgpu/... ./internal/driver/webgpu ./internal/dl ./internal/devicetest
	CGO_ENABLED=0 $(GO) vet -tags wazero,nocuda,nowebgpu ./simd ./device ./internal/wasm/... ./internal/driver/cpu ./internal/devicetest
	$(GO) vet ./.ci/chromexec ./.ci/pagesize ./.ci/typecheck && $(GO) vet examples/browser/serve.go
	$(GO) vet -tags browser ./internal/chrome ./wasm/serve ./examples/browser
	GOOS=js GOARCH=wasm $(GO) vet ./examples/browser ./wasm/... ./batch ./device ./simd ./internal/devicetest ./internal/driver/cpu ./internal/driver/webgpu ./internal/env ./internal/fmt ./internal/ir ./internal/jscall ./internal/memory ./internal/testutil ./internal/wasm/jshost ./internal/webgpu ./internal/webgpu/jshost

.PHONY: lint
lint: ## run staticcheck in every module
	@for m in $$(git ls-files 'go.mod' '*/go.mod'); do echo "staticcheck: $$m"; (cd $$(dirname $$m) && $(GO) run $(STATICCHECK) ./...) || exit 1; done

.PHONY: tidy
tidy: ## check that go mod tidy changes no go.mod and go.sum
	@for m in $$(git ls-files 'go.mod' '*/go.mod'); do echo "go mod tidy -diff: $$m"; (cd $$(dirname $$m) && $(GO) mod tidy -diff) || exit 1; done

.PHONY: generate
generate: ## regenerate every generated file
	@for m in $$(git ls-files '*_asm/go.mod'); do echo "go generate: $$(dirname $$m)"; (cd $$(dirname $$m) && $(GO) generate ./...) || exit 1; done
	$(GO) generate ./...

.PHONY: generated
generated: ## regenerate every generated file and fail if one differs
	@bash .ci/generated.sh $(MAKE) --no-print-directory generate

.PHONY: cover
cover: ## write the test coverage of the packages to dist/cover.html
	@mkdir -p dist
	$(GO) test -coverprofile dist/cover.out -coverpkg ./... ./...
	$(GO) tool cover -func dist/cover.out | tail -1
	$(GO) tool cover -html dist/cover.out -o dist/cover.html

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s)
	@bash .ci/fuzz.sh $(FUZZTIME)

.PHONY: fuzz-api
fuzz-api: ## compare random batches of all operations with the references for FUZZAPI_TIME (2m); RAYO_SEED repeats one
	FUZZAPI_TIME=$(FUZZAPI_TIME) $(GO) test -vet=off $(TIMEOUT) -count=1 -v -run 'TestFuzzAPI$$' ./internal/devicetest

.PHONY: examples
examples: ## run every example that needs no model file
	@d=$$(mktemp -d) && trap 'rm -rf "$$d"' EXIT && CGO_ENABLED=0 $(GO) build -ldflags='-s -w' -o "$$d/" ./examples/... && \
	for m in examples/*/main.go; do e=$$(basename $$(dirname $$m)); case $$e in llm_*) continue;; esac; echo "== go run ./examples/$$e"; timeout 120 "$$d/$$e" || exit 1; done

.PHONY: demo
demo: ## run the demonstration: a photograph, a product of matrices, a chain of operations
	$(GO) run ./cmd/rayo demo

.PHONY: bench
bench: ## run the benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: gpu-test
gpu-test: ## test the driver interface and the conformance suite on an NVIDIA GPU, by CUDA and Vulkan; dist/gpu can be copied to such a machine
	@bash bench/gpu.sh build && bash bench/gpu.sh test

.PHONY: gpu-bench
gpu-bench: ## run the benchmarks of calls and operations on an NVIDIA GPU
	@bash bench/gpu.sh build && bash bench/gpu.sh test && bash bench/gpu.sh bench

.PHONY: bench-ptx
bench-ptx: ## compare the speed of PTX generation with trueno-gpu, a generator in Rust (needs cargo)
	@bash bench/ptx.sh

.PHONY: bench-peers
bench-peers: ## compare with NumPy, PyTorch, OpenBLAS and MKL, and rewrite docs/BENCHMARKS.md and docs/measurements/cpu.md (PEERS_FLAGS=-quick)
	@bash bench/peers.sh
	cd bench && $(GO) build -o out/bench . && ./out/bench $(PEERS_FLAGS)
