"""Serves timings of one peer: numpy, torch or mkl.

    peers.py numpy       reads requests, one JSON object a line, from standard
                         input and answers each with one line
    peers.py versions    prints the version of every peer

A request names a cell and how long to measure it:

    {"op": "tanh", "n": 1000, "threads": 1, "samples": 5, "ms": 1}
    {"op": "matmul", "m": 8, "k": 4096, "n": 4096, ...}
    {"op": "cumsum", "n": 1000000, "shapes": [[1000, 1000]], ...}

The answer has the samples, nanoseconds a call, each the mean over enough calls to
last ms milliseconds, and some elements of the result, which the driver checks:

    {"ns": [812.3, ...], "form": "np.tanh(x, out)", "check": [...]}

Results go to out= wherever a form can take it, and inference mode spares PyTorch
its bookkeeping. A peer may have several ways to write an operation. All are timed when a cell is
first asked for and the fastest one is kept. Inputs and outputs are allocated
once a cell, on 64-byte boundaries, from 2 MiB up on huge pages; the same for all.
"""

import ctypes
import gc
import glob
import itertools
import json
import mmap
import os
import sys
import time

import numpy as np

import catalogue

HUGE = 2 << 20
ROW = 1000  # elements in a row of softmax


class Memory:
    """Hands out float32 arrays the way device.Alloc does."""

    def __init__(self):
        self.count = 0

    def alloc(self, n):
        size = 4 * n
        m = mmap.mmap(-1, size + HUGE + 65536)
        base = ctypes.addressof(ctypes.c_char.from_buffer(m))
        if size >= HUGE and hasattr(m, "madvise"):
            start = -base % mmap.PAGESIZE
            m.madvise(mmap.MADV_HUGEPAGE, start, (len(m) - start) // mmap.PAGESIZE * mmap.PAGESIZE)
        # Arrays that start at the same place in their pages collide in the cache.
        start = -base % HUGE + 320 * (self.count % 64)
        self.count += 1
        a = np.frombuffer(m, dtype=np.float32, count=n, offset=start)
        a[:] = 0  # touches every page
        return a

    def input(self, n, seed):
        a = self.alloc(n)
        i = np.arange(n, dtype=np.uint64) + np.uint64(seed * 1000003)
        a[:] = (i * np.uint64(2654435761) % np.uint64(1 << 32)).astype(np.float64) / 2**32 * 8 - 4
        return a


def loop(statement, names):
    """A function that runs the statement as often as its first argument yields,
    with all that it names in local variables."""
    source = f"def run(it, {', '.join(names)}):\n for _ in it: {statement}\n"
    scope = {}
    exec(source, scope)
    return lambda calls: scope["run"](itertools.repeat(None, calls), **names)


def clock(run, calls):
    t = time.perf_counter_ns()
    run(calls)
    return (time.perf_counter_ns() - t) / calls


def calls_for(run, ms):
    """How many calls last that long, after a warm-up of about 5 ms."""
    calls, spent = 1, 0.0
    while True:
        ns = clock(run, calls)
        spent += ns * calls
        if spent >= 5e6 and (calls > 1 or spent >= 1e7 or ns > 1e6):
            return max(1, int(ms * 1e6 / ns + 0.5))
        if ns * calls < 1e6:
            calls *= 2


class NumPy:
    def __init__(self):
        import scipy.special

        self.erf = scipy.special.erf
        self.expit = scipy.special.expit
        [lib] = glob.glob(os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs", "libscipy_openblas64_*.so"))
        self.blas = ctypes.CDLL(lib)
        self.gemm = self.blas.scipy_cblas_sgemm64_
        self.gemv = self.blas.scipy_cblas_sgemv64_
        self.int = ctypes.c_int64

    def threads(self, n):
        self.blas.scipy_openblas_set_num_threads64_(n)

    def forms(self, op, n, mem):
        # NumPy takes an array without dimensions faster than a scalar.
        scalar = lambda v: np.array(v, dtype=np.float32)
        names = {"np": np, "x": mem.input(n, 1), "zero": scalar(0), "one": scalar(1), "half": scalar(0.5), "root": scalar(0.5**0.5)}
        out = names["out"] = mem.alloc(n)
        if op in ("add", "dot"):
            names["y"] = mem.input(n, 2)
        if op == "gelu":
            names["t"] = mem.alloc(n)
        names |= {"erf": self.erf, "expit": self.expit}
        if op == "softmax":
            rows, row = (n // ROW, ROW) if n >= ROW else (1, n)
            names["x"] = names["x"].reshape(rows, row)
            names["out"] = names["out"].reshape(rows, row)
            names["r"] = mem.alloc(rows).reshape(rows, 1)
            names["maximum"], names["plus"] = np.maximum.reduce, np.add.reduce
        forms = {
            "relu": ["np.maximum(x, zero, out=out)", "np.maximum(x, 0, out=out)"],
            "tanh": ["np.tanh(x, out)"],
            "exp": ["np.exp(x, out)"],
            "sigmoid": [
                "np.negative(x, out); np.exp(out, out); np.add(out, one, out); np.divide(one, out, out)",
                "expit(x, out)",
            ],
            "gelu": ["np.multiply(x, root, t); erf(t, t); np.add(t, one, t); np.multiply(x, half, out); np.multiply(out, t, out)"],
            "add": ["np.add(x, y, out)"],
            "dot": ["np.dot(x, y)"],
            "sum": ["np.add.reduce(x)"],
            "softmax": [
                "maximum(x, axis=1, out=r, keepdims=True); np.subtract(x, r, out); np.exp(out, out); plus(out, axis=1, out=r, keepdims=True); np.divide(out, r, out)"
            ],
        }[op]
        return forms, names, out

    def others(self, op, arrays, mem):
        """Forms of an operation of the catalogue over its operands."""
        names = {"np": np, "erf": self.erf, "expit": self.expit, "ok": np.zeros(arrays[0].shape, bool)}
        for name in ("out", "t"):
            names[name] = mem.alloc(arrays[0].size).reshape(arrays[0].shape)
        return catalogue.NUMPY[op], names | dict(zip("xyz", arrays))

    def arrays(self, operands):
        """The names of an axisCase; out is None until the type of the result is known."""
        return {"np": np, "out": None} | dict(zip("xyz", operands))

    def like(self, result, mem):
        """An array for results of this shape and type."""
        words = -(-result.nbytes // 4)
        return mem.alloc(words).view(result.dtype)[: result.size].reshape(result.shape)


class Torch:
    def __init__(self):
        import torch

        self.torch = torch
        torch.inference_mode(True).__enter__()

    def threads(self, n):
        self.torch.set_num_threads(n)

    def forms(self, op, n, mem):
        torch = self.torch
        names = {"torch": torch, "F": torch.nn.functional, "aten": torch.ops.aten, "x": torch.from_numpy(mem.input(n, 1))}
        out = mem.alloc(n)
        names["out"] = torch.from_numpy(out)
        if op in ("add", "dot"):
            names["y"] = torch.from_numpy(mem.input(n, 2))
        if op == "softmax":
            shape = (n // ROW, ROW) if n >= ROW else (1, n)
            names["x"] = names["x"].reshape(shape)
            names["out"] = names["out"].reshape(shape)
        names["relu_out"], names["gelu_out"] = torch.ops.aten.relu.out, torch.ops.aten.gelu.out
        forms = {
            "relu": ["torch.clamp_min(x, 0, out=out)", "relu_out(x, out=out)", "torch.relu(x)"],
            "tanh": ["torch.tanh(x, out=out)"],
            "exp": ["torch.exp(x, out=out)"],
            "sigmoid": ["torch.sigmoid(x, out=out)"],
            "gelu": ["gelu_out(x, out=out)", "F.gelu(x)"],
            "add": ["torch.add(x, y, out=out)"],
            "dot": ["torch.dot(x, y)"],
            "sum": ["torch.sum(x)"],
            "softmax": ["torch.softmax(x, 1, out=out)", "torch.softmax(x, 1)"],
        }[op]
        return forms, names, out

    def others(self, op, arrays, mem):
        """Forms of an operation of the catalogue over its operands."""
        torch = self.torch
        names = {"torch": torch, "F": torch.nn.functional, "ok": torch.zeros(arrays[0].shape, dtype=torch.bool)}
        names["out"] = torch.from_numpy(mem.alloc(arrays[0].size).reshape(arrays[0].shape))
        return catalogue.TORCH[op], names | {k: torch.from_numpy(a) for k, a in zip("xyz", arrays)}

    def arrays(self, operands):
        """The names of an axisCase; out is None until the type of the result is known."""
        return {"torch": self.torch, "out": None} | {k: self.torch.from_numpy(a) for k, a in zip("xyz", operands)}

    def like(self, result, mem):
        """A tensor for results of this shape and type, or a tuple of tensors."""
        if isinstance(result, tuple):
            return tuple(self.like(r, mem) for r in result)
        words = -(-result.numel() * result.element_size() // 4)
        return self.torch.from_numpy(mem.alloc(words)).view(result.dtype)[: result.numel()].reshape(result.shape)


class MKL:
    def __init__(self):
        [lib] = glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*"))[:1]
        self.blas = ctypes.CDLL(lib)
        self.gemm = self.blas.cblas_sgemm
        self.gemv = self.blas.cblas_sgemv
        self.int = ctypes.c_int32

    def threads(self, n):
        self.blas.MKL_Set_Num_Threads(n)


def matmul(peer, m, k, n, mem):
    """Forms of C[m,n] = A[m,k] · B[k,n], row-major. The time of the same call on
    an empty product, which is what ctypes costs, is to be subtracted."""
    a, b, c = mem.input(m * k, 1), mem.input(k * n, 2), mem.alloc(m * n)
    i, f = peer.int, ctypes.c_float
    p = lambda x: ctypes.c_void_p(x.ctypes.data)
    row, plain, trans = ctypes.c_int(101), ctypes.c_int(111), ctypes.c_int(112)

    def gemm(m):
        return (row, plain, plain, i(m), i(n), i(k), f(1), p(a), i(k), p(b), i(n), f(0), p(c), i(n))

    forms = [("cblas_sgemm", peer.gemm, gemm(m))]
    if m == 1:
        forms.append(("cblas_sgemv", peer.gemv, (row, trans, i(k), i(n), f(1), p(b), i(n), p(a), i(1), f(0), p(c), i(1))))
    runs = [(name, loop("f(*a)", {"f": fn, "a": args}), (a, b, c)) for name, fn, args in forms]
    empty = loop("f(*a)", {"f": peer.gemm, "a": gemm(0)})
    empty(100)
    return runs, min(clock(empty, 1000) for _ in range(5)), c


def operand(o, seed, mem):
    """An operand of axes.go as an array."""
    n = int(np.prod(o["shape"]))
    if o["type"] == "f32":
        a = mem.input(n, seed).reshape(o["shape"])
        if o["diagonal"]:
            if o["symmetric"]:
                a += np.swapaxes(a, -1, -2).copy()
            i = np.arange(o["shape"][-1])
            a[..., i, i] += np.float32(o["diagonal"])
        return a
    h = (np.arange(n, dtype=np.uint64) + np.uint64(seed * 1000003)) * np.uint64(2654435761) % np.uint64(1 << 32)
    if o["type"] == "id":
        return (h % np.uint64(o["below"])).astype(np.int64).reshape(o["shape"])
    a = mem.alloc(n).view(np.int32)
    a[:] = h.astype(np.uint32).view(np.int32)
    return a.reshape(o["shape"])


class Server:
    def __init__(self, peer):
        self.peer, self.cell = peer, None

    def prepare(self, q):
        """Allocates the cell's arrays and picks the fastest form."""
        self.run = self.names = None
        gc.collect()
        mem = Memory()
        self.peer.threads(q["threads"])
        if q["op"] == "matmul":
            runs, self.empty, out = matmul(self.peer, q["m"], q["k"], q["n"], mem)
        else:
            shapes = q.get("shapes") or q.get("operands")
            if q.get("operands"):
                forms, names = q["forms"], self.peer.arrays([operand(o, i + 1, mem) for i, o in enumerate(q["operands"])])
                names["out"] = self.peer.like(eval(forms[0], dict(names)), mem)
            elif shapes:
                forms, names = self.peer.others(q["op"], catalogue.operands(q["op"], shapes, q.get("domain"), mem), mem)
            else:
                forms, names, out = self.peer.forms(q["op"], q["n"], mem)
            runs, self.empty = [], 0.0
            for f in forms:
                run = loop(f, names)
                try:
                    run(1)
                except (TypeError, NotImplementedError, RuntimeError, AttributeError):
                    continue  # this version does not have this form
                runs.append((f, run, names))
            if shapes:
                out = eval(forms[0], dict(names))
                out = out[0] if isinstance(out, tuple) else out
                out = np.array(out.numpy() if hasattr(out, "numpy") else out)  # other forms may write there
            elif q["op"] in ("dot", "sum"):
                out = np.array([float(eval(forms[0], dict(names)))])
        timed = []
        for i, (form, run, keep) in enumerate(runs):
            calls = calls_for(run, 2)
            timed.append((min(clock(run, calls) for _ in range(3)), i))
        self.form, self.run, self.names = runs[min(timed)[1]]
        runs[0][1](1)  # the first form writes its result to out
        flat = out.reshape(-1)
        self.check = [float(flat[j]) for j in (0, len(flat) // 2, len(flat) - 1)]
        self.cell = {k: q.get(k) for k in ("op", "m", "k", "n", "threads")}

    def answer(self, q):
        if self.cell != {k: q.get(k) for k in ("op", "m", "k", "n", "threads")}:
            self.prepare(q)
        calls = calls_for(self.run, q["ms"])
        ns = [max(0.0, clock(self.run, calls) - self.empty) for _ in range(q["samples"])]
        return {"ns": ns, "calls": calls, "form": self.form, "check": self.check}


def main():
    gc.disable()
    which = sys.argv[1]
    if which == "versions":
        print("\n".join(f"{k}: {v}" for k, v in report().items()))
        return
    server = Server({"numpy": NumPy, "torch": Torch, "mkl": MKL}[which]())
    for line in sys.stdin:
        try:
            reply = server.answer(json.loads(line))
        except Exception as e:  # a peer that cannot do a cell leaves it empty
            reply = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(reply), flush=True)


def report():
    """The version of each peer and the instructions that it uses here."""
    import importlib.metadata

    import scipy
    import torch

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    core = NumPy().blas.scipy_openblas_get_corename64_
    core.restype = ctypes.c_char_p
    mkl = "not installed"
    if glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*")):
        text = ctypes.create_string_buffer(200)
        MKL().blas.MKL_Get_Version_String(text, 200)
        mkl = f"{importlib.metadata.version('mkl')}, {text.value.decode().strip()}"
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    return {
        "Python": sys.version.split()[0],
        "NumPy": f"{np.__version__}, {(simd.get('found') or simd['baseline'])[-1]}",
        "SciPy": scipy.__version__,
        "OpenBLAS": f"{blas['version']} of NumPy, {core().decode()} kernels",
        "MKL": mkl,
        "PyTorch": f"{torch.__version__}, {torch.backends.cpu.get_cpu_capability()}",
    }


main()
