#!/bin/bash
# peers.sh creates a Python environment with the systems of the comparison, from PyPI,
# in the folder $PEERS (default bench/out/venv). It does not change an environment that
# already works. The environment takes about 7 GB, because PyPI's PyTorch for Linux
# depends on the CUDA libraries even if it runs on the CPU.
set -euo pipefail
cd "$(dirname "$0")"
venv=${PEERS:-$PWD/out/venv}

works() { [ -x "$venv/bin/python" ] && "$venv/bin/python" peers/peers.py versions 2>/dev/null; }

if ! works; then
	python=$(command -v python3) || { echo "peers.sh needs python3 (Debian packages python3 and python3-venv)" >&2; exit 1; }
	"$python" -m venv "$venv"
	"$venv/bin/pip" install --quiet --upgrade pip
	"$venv/bin/pip" install --quiet --upgrade numpy scipy mkl torch
	works || { "$venv/bin/python" peers/peers.py versions; exit 1; }
fi
