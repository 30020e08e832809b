#!/bin/bash
# build.sh [FOLDER] builds the demo site: static files, which any server can serve. Beside
# what compresses well stands the same compressed, for servers that look for it.
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-../../dist/site}
mkdir -p "$out"
cp static/* "$out"
cp "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$out"
GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$out/page.wasm" ./page
for f in "$out"/*.{wasm,js,mjs,css,html}; do gzip -9 -n -k -f "$f"; done
echo "$(stat -c %s "$out/page.wasm") bytes of WebAssembly, $(stat -c %s "$out/page.wasm.gz") compressed, in $(basename "$out")"
