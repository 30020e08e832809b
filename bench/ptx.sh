#!/bin/bash
# ptx.sh compares the speed of generating PTX with trueno-gpu, a generator in Rust from
# crates.io. It needs cargo, and about 20 MB in the folder out. Both programs run on one
# core.
set -euo pipefail
cd "$(dirname "$0")"
command -v cargo >/dev/null || { echo "ptx.sh needs cargo (https://rustup.rs)" >&2; exit 1; }
cargo build --quiet --release --locked --manifest-path peers/generation/Cargo.toml --target-dir out/generation-peer
${GO-go} build -o out/generation ./generation
pin=()
command -v taskset >/dev/null && pin=(taskset -c 0)
"${pin[@]}" ./out/generation "$@" out/generation-peer/release/generation
