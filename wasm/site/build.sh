#!/bin/bash
# build.sh [FOLDER] builds the demo site: static files, which any server can serve. Beside
# what compresses well stands the same compressed, for servers that look for it. The variable
# MODEL names a GGUF file for the chat; model.json says what the site has.
set -euo pipefail
model=${MODEL:+$(realpath "$MODEL")}
cd "$(dirname "$0")"
out=${1:-../../dist/site}
mkdir -p "$out"
cp static/* "$out"
cp "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$out"
for program in page chat; do
	GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$out/$program.wasm" ./$program
	go run ../pack "$out/$program.wasm"
done
rm -f "$out"/model-*.gguf
if [ -n "$model" ]; then
	# The name is new where the contents are, so that browsers may keep the file.
	read -r sum bytes _ < <(cksum "$model")
	cp "$model" "$out/model-$sum.gguf"
	printf '{"file": "model-%s.gguf", "bytes": %s, "name": "%s"}\n' "$sum" "$bytes" "$(basename "$model" | tr -d '"\\')" > "$out/model.json"
else
	echo '{"file": ""}' > "$out/model.json"
fi
for f in "$out"/*.{wasm,js,mjs,css,html}; do gzip -9 -n -k -f "$f"; done
for f in "$out"/*.wasm; do echo "$(basename "$f"): $(stat -c %s "$f") bytes, $(stat -c %s "$f.gz") compressed"; done
