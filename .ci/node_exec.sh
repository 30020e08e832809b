#!/bin/bash
# node_exec.sh PROGRAM.wasm ARGUMENTS... runs a js/wasm program under Node.js. Go's launcher refuses
# an environment of more than a few KiB, so the script passes on only the variables that the tests
# read.
keep=()
for v in RAYO_SIMD RAYO_SEED RAYO_DAWN NODE_OPTIONS VK_DRIVER_FILES VK_ICD_FILENAMES; do
	[ -z "${!v-}" ] || keep+=("$v=${!v}")
done
exec env -i PATH="$PATH" HOME="${HOME-/}" TMPDIR="${TMPDIR-/tmp}" RAYO_REQUIRE="${RAYO_REQUIRE-}" "${keep[@]}" \
	"$(go env GOROOT)/lib/wasm/go_js_wasm_exec" "$@"
