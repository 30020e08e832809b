#!/usr/bin/env python3
"""Compiles kernels.cu with NVRTC to kernels_70.ptx.gz and so on.

Needs the wheels nvidia-cuda-nvrtc-cu12 and nvidia-cuda-runtime-cu12 of PyPI, unpacked in one
directory, which is the argument:

    python3 -m pip download --no-deps nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79
    for w in *.whl; do unzip -q -o $w -d wheels; done
    python3 gen.py wheels

No GPU is needed. The PTX is NVRTC's output, from this source; the debugging version is without the
section .debug_info.
"""

import ctypes
import gzip
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
WHEELS = pathlib.Path(sys.argv[1]).resolve() / "nvidia"

# The sources to compile: the file's name, and the options.
OUTPUTS = {
    "kernels_70": ["--gpu-architecture=compute_70"],
    "kernels_80": ["--gpu-architecture=compute_80"],
    "kernels_90": ["--gpu-architecture=compute_90"],
    "kernels_80_debug": ["--gpu-architecture=compute_80", "--device-debug"],
    "kernels_90_lines": ["--gpu-architecture=compute_90", "--generate-line-info", "--relocatable-device-code=true", "--use_fast_math"],
}


def library():
    lib = WHEELS / "cuda_nvrtc" / "lib"
    ctypes.CDLL(str(next(lib.glob("libnvrtc-builtins.so.*"))), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(lib / "libnvrtc.so.12"))


def text(size, get, program):
    n = ctypes.c_size_t()
    size(program, ctypes.byref(n))
    buf = ctypes.create_string_buffer(n.value)
    get(program, buf)
    return buf.value


def compile(rtc, source, options):
    program = ctypes.c_void_p()
    if rtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None):
        sys.exit("nvrtcCreateProgram failed")
    options = [*options, f"--include-path={WHEELS / 'cuda_runtime' / 'include'}", "--device-int128", "--std=c++17"]
    argv = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    bad = rtc.nvrtcCompileProgram(program, len(options), argv)
    log = text(rtc.nvrtcGetProgramLogSize, rtc.nvrtcGetProgramLog, program).decode()
    if bad:
        sys.exit(log)
    print(log, end="")
    return text(rtc.nvrtcGetPTXSize, rtc.nvrtcGetPTX, program)


rtc = library()
source = (HERE / "kernels.cu").read_bytes()
for name, options in OUTPUTS.items():
    ptx = compile(rtc, source, options)
    # Remove paths of the machine.
    ptx = re.sub(rb'(\.file\s+\d+ ")[^"]*/', rb"\1", ptx)
    ptx = re.sub(rb"\t\.section\t\.debug_info\n\t\{.*?\n\t\}\n", b"", ptx, flags=re.S)
    with gzip.GzipFile(HERE / (name + ".ptx.gz"), "wb", mtime=0) as f:
        f.write(ptx)
    print(name, len(ptx))
