#!/bin/bash
# browser.sh [MODEL.gguf] compares rayo with other libraries in a page of headless Chromium: operations with tfjs,
# onnxruntime-web and plain Go, the start of the smallest program with that of an empty one and, if a model is given, the
# chat with wllama. It needs Node.js, npm and Chromium. It installs the other libraries by npm into the user's cache.
set -euo pipefail
model=${1:+$(realpath "$1")}
cd "$(dirname "$0")"
peers=${XDG_CACHE_HOME:-$HOME/.cache}/rayo-ci/peers-browser
mkdir -p "$peers"
npm install --prefix "$peers" --no-audit --no-fund --ignore-scripts --silent \
	@tensorflow/tfjs-core@4.22.0 @tensorflow/tfjs-backend-cpu@4.22.0 @tensorflow/tfjs-backend-wasm@4.22.0 @tensorflow/tfjs-backend-webgpu@4.22.0 onnxruntime-web@1.30.0 @wllama/wllama@3.13.0
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
MODEL=$model bash ../wasm/site/build.sh "$site" >&2
build() { GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$site/$(basename "$1").wasm" "$1"; }
build ./browser/ops
build ./browser/empty
(cd .. && build ./.ci/pagesize)
node browser/run.mjs "$peers" "$site" ops.mjs
node browser/run.mjs "$peers" "$site" plain.mjs
node browser/run.mjs "$peers" "$site" start.mjs
node browser/run.mjs "$peers" "$site" webgpu.mjs
[ -z "$model" ] || node browser/run.mjs "$peers" "$site" llm.mjs
