#!/bin/bash
# page_size.sh says how large the smallest program of rayo is as js/wasm, compressed, as built and after wasm/pack, and
# fails where it exceeds its limit, because every page loads these bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
# check WHAT BYTES: page.wasm has at most so many bytes.
check() {
	local bytes
	bytes=$(gzip -9 -c "$dir/page.wasm" | wc -c)
	echo "$1: $(stat -c %s "$dir/page.wasm") bytes, $bytes compressed, at most $2"
	[ "$bytes" -le "$2" ] || { echo "FAIL: the page has grown beyond $2 bytes; -ldflags=-dumpdep says what brings what" >&2; status=1; }
}
# size TAGS BYTES PACKED: with these tags at most so many bytes, and so many after wasm/pack.
size() {
	GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -tags "$1" -trimpath -ldflags='-s -w' -o "$dir/page.wasm" ./.ci/pagesize
	check "tags '$1'" "$2"
	GOOS= GOARCH= go run ./wasm/pack "$dir/page.wasm"
	check "tags '$1', packed" "$3"
}
size '' 1402000 1299000
size nowebgpu 862000 800000
exit $status
