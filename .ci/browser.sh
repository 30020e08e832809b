#!/bin/bash
# browser.sh tests WebGPU in JavaScript: the host, and a sample of the conformance suite that is new in each run, in
# Node.js with Dawn and in headless Chromium, both over SwiftShader. Then it tests the module for JavaScript in Node.js
# and Chromium, the demo site and the example page.
#
#   browser.sh install    installs missing programs: Debian package chromium, npm package webgpu (in the user's cache)
#   browser.sh found      fails if a program is missing, and prints which
#   browser.sh test       runs the tests; RAYO_SEED repeats a sample
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rayo-ci
export RAYO_DAWN=$cache/browser # where dawn.mjs looks for the package
dawn=webgpu@0.6.2

missing() {
	command -v node >/dev/null || echo "node is not on the path (Debian package nodejs)"
	[ -s "$RAYO_DAWN/node_modules/webgpu/package.json" ] || echo "npm package webgpu is not in $RAYO_DAWN"
	command -v chromium >/dev/null || echo "chromium is not on the path (Debian package chromium)"
}

install() {
	local want=()
	command -v chromium >/dev/null || want+=(chromium)
	command -v node >/dev/null || want+=(nodejs)
	command -v npm >/dev/null || want+=(npm)
	if [ ${#want[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${want[@]}"; } >/dev/null 2>&1 || true
	fi
	if [ ! -s "$RAYO_DAWN/node_modules/webgpu/package.json" ] && command -v npm >/dev/null; then
		mkdir -p "$RAYO_DAWN"
		npm install --prefix "$RAYO_DAWN" --no-audit --no-fund --ignore-scripts --silent "$dawn" >/dev/null 2>&1 || true
	fi
}

# run NAME EXEC runs the tests with EXEC as -exec of go test.
run() {
	echo "--- $1"
	GOOS=js GOARCH=wasm CGO_ENABLED=0 RAYO_REQUIRE=browser go test -vet=off -short -count=1 -timeout 10m -v -exec "$2" \
		-run 'TestMayWait|TestHost|TestLost|TestFault|TestMistake|TestTooLarge|TestBrowser|TestSIMD128|TestMapLengths|TestConv2DAtRandom|TestPromise|TestFunc$|TestTypedArrays|TestWrongArrays|TestInt$|TestView' ./wasm/bridge ./internal/jscall ./internal/webgpu/jshost ./simd ./internal/devicetest |
		grep -v '^\(=== \(RUN\|PAUSE\|CONT\)\| *--- PASS: Test[A-Za-z]*/.*/\|error: XDG_RUNTIME_DIR\)'
}

case $1 in
install) install ;;
found)
	reasons=$(missing)
	[ -z "$reasons" ] || { echo "$reasons" | head -1; exit 1; }
	;;
test)
	icd=$(bash .ci/swiftshader.sh)
	export VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd
	NODE_OPTIONS=--import=$PWD/.ci/dawn.mjs run "Node.js $(node --version) with $dawn" "$PWD/.ci/node_exec.sh"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	GOOS= GOARCH= go build -o "$work/chromexec" ./.ci/chromexec
	run "$(chromium --version 2>/dev/null)" "$work/chromexec"
	echo "--- pages"
	GOOS= GOARCH= bash wasm/npm/build.sh
	(cd wasm/npm && node --expose-gc --test)
	RAYO_REQUIRE=browser go test -tags browser -count=1 -timeout 10m ./wasm/serve ./examples/browser
	;;
*)
	echo "browser.sh: no command is called $1" >&2
	exit 2
	;;
esac
