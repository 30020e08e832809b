#!/usr/bin/env python3
"""Compiles two kernels with Triton to NAME_TYPE.sm_NN.ptx.gz beside this file.

Needs the wheel triton==3.9.0 of PyPI, and no GPU:

    python3 -m venv venv && venv/bin/pip install triton==3.9.0
    venv/bin/python kernels.py

The PTX is Triton's output, from this source, without its debugging sections.
"""

import gzip
import pathlib
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = pathlib.Path(__file__).parent


@triton.jit
def softmax(y, x, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=float("-inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * cols + at, e / tl.sum(e, axis=0), mask=at < cols)


@triton.jit
def matmul(c, a, b, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        kk = k * BK + rk
        x = tl.load(a + rm[:, None] * K + kk[None, :], mask=(rm[:, None] < M) & (kk[None, :] < K), other=0.0)
        y = tl.load(b + kk[:, None] * N + rn[None, :], mask=(kk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def write(name, kernel, signature, constants, arch):
    source = ASTSource(fn=kernel, signature={**signature, **{k: "constexpr" for k in constants}}, constexprs=constants)
    # The assembler of CUDA 12.9 accepts up to PTX 8.7.
    k = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": 4, "num_stages": 3, "ptx_version": 87})
    ptx = k.asm["ptx"]
    ptx = re.sub(r"\t\.section\t\.debug_\w+\n?\t\{.*?\}\n", "", ptx, flags=re.S)
    ptx = re.sub(r"\t\.(file|loc)\t.*\n", "", ptx)
    with gzip.GzipFile(HERE / f"{name}.sm_{arch}.ptx.gz", "wb", mtime=0) as f:
        f.write(ptx.encode())
    print(f"{name}.sm_{arch}: {len(ptx)} bytes, {k.metadata.shared} bytes of shared memory")


for arch in 80, 90:
    write("softmax", softmax, {"y": "*fp32", "x": "*fp32", "cols": "i32"}, {"BLOCK": 1024}, arch)
    for t in "fp16", "fp32":
        signature = {"c": "*fp32", "a": "*" + t, "b": "*" + t, "M": "i32", "N": "i32", "K": "i32"}
        write("matmul_" + t, matmul, signature, {"BM": 64, "BN": 64, "BK": 32}, arch)
