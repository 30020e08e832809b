#!/bin/bash
# build.sh builds what the package needs beside its texts: rayo.wasm, and wasm_exec.js of the same Go.
set -euo pipefail
cd "$(dirname "$0")"
GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o rayo.wasm ../gpu
go run ../pack rayo.wasm
cp "$(go env GOROOT)/lib/wasm/wasm_exec.js" .
