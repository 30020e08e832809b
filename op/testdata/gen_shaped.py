"""Writes shaped.json: golden values of reductions, row operations and shaped
operations.

    python3 gen_shaped.py > shaped.json

Needs numpy, scipy and torch. Everything is computed in float64 from float32
inputs by those libraries, not by this project's formulas.

Each case has the operation's name, float parameters (F), integer parameters
(I, in the order of the Attrs), the operands (shape and data; null if absent)
and the results. Numbers are JSON numbers, except "NaN", "Inf", "-Inf".
"""

import json
import math

import numpy as np
import scipy.linalg
import scipy.special
import torch
import torch.nn.functional as F

rng = np.random.default_rng(20)
cases = []


def number(v):
    v = float(v)
    if math.isnan(v):
        return "NaN"
    if math.isinf(v):
        return "Inf" if v > 0 else "-Inf"
    return v


def array(a):
    if a is None:
        return None
    a = np.asarray(a)
    return {"shape": list(a.shape), "data": [number(v) for v in a.reshape(-1)]}


def case(op, ins, outs, i=(), f=(), types=None):
    cases.append({"op": op, "f": [float(np.float32(v)) for v in f], "i": [int(v) for v in i],
                  "in": [array(a) for a in ins], "out": [array(np.asarray(o, dtype=np.float64)) for o in outs]})


def rand(*shape):
    return rng.standard_normal(shape).astype(np.float32).astype(np.float64)


def t(a):
    return torch.from_numpy(np.ascontiguousarray(a))


SPECIAL_ROWS = [
    [1.0, math.nan, 3.0, math.nan],
    [math.inf, 1.0, -2.0, math.inf],
    [-math.inf, 5.0, 5.0, 2.0],
    [-math.inf] * 4,
    [math.inf, -math.inf, 0.0, 1.0],
    [0.0, -0.0, 0.0, -0.0],
    [2.0, 2.0, 2.0, 2.0],
]


def reductions():
    with np.errstate(all="ignore"):
        for x in [rand(1), rand(7), rand(3, 5), rand(2, 3, 4), rand(65) + 1000, np.array(SPECIAL_ROWS)]:
            y = rand(*x.shape)
            for rows in (0, 1):
                ax = -1 if rows else None
                case("sum", [x], [np.sum(x, axis=ax)], (rows,))
                case("mean", [x], [np.mean(x, axis=ax)], (rows,))
                case("dot", [x, y], [np.sum(x * y, axis=ax)], (rows,))
                for ddof in (0, 1):
                    case("var", [x], [np.var(x, axis=ax, ddof=ddof)], (rows, ddof))
                case("min", [x], [np.min(x, axis=ax)], (rows,))
                case("max", [x], [np.max(x, axis=ax)], (rows,))
                case("argmin", [x], [np.argmin(x, axis=ax)], (rows,))
                case("argmax", [x], [np.argmax(x, axis=ax)], (rows,))
                flat = x if rows else x.reshape(-1)
                case("norm_l1", [x], [np.linalg.norm(flat, 1, axis=-1)], (rows,))
                case("norm_l2", [x], [np.linalg.norm(flat, 2, axis=-1)], (rows,))
                case("norm_linf", [x], [np.linalg.norm(flat, np.inf, axis=-1)], (rows,))
        empty = np.zeros((3, 0))
        for op, f in [("sum", np.sum), ("mean", np.mean), ("var", np.var)]:
            case(op, [empty], [f(empty)], (0,))
            case(op, [empty], [f(empty, axis=-1)], (1,))


def rows():
    for x in [rand(1), rand(9), rand(4, 6), rand(2, 2, 5) * 40, np.array(SPECIAL_ROWS), np.zeros((2, 0))]:
        n = x.shape[-1]
        case("softmax", [x], [F.softmax(t(x), -1)])
        case("log_softmax", [x], [F.log_softmax(t(x), -1)])
        case("cumsum", [x], [np.cumsum(x, axis=-1)])
        if n == 0:
            continue
        finite = x[np.all(np.isfinite(x), axis=-1)] if x.ndim == 2 else x
        g, b = rand(n), rand(n)
        for eps in (1e-5, 0.25):
            e = float(np.float32(eps))
            case("layer_norm", [finite], [F.layer_norm(t(finite), (n,), None, None, e)], f=(eps,))
            case("layer_norm", [finite, g, b], [F.layer_norm(t(finite), (n,), t(g), t(b), e)], f=(eps,))
            case("layer_norm", [finite, None, b], [F.layer_norm(t(finite), (n,), None, t(b), e)], f=(eps,))
            case("rms_norm", [finite], [F.rms_norm(t(finite), (n,), None, e)], f=(eps,))
            case("rms_norm", [finite, g], [F.rms_norm(t(finite), (n,), t(g), e)], f=(eps,))


def products():
    for m, k, n in [(1, 1, 1), (2, 3, 4), (5, 1, 3), (3, 7, 1), (2, 0, 3), (0, 3, 2)]:
        a, b, bias = rand(m, k), rand(k, n), rand(n)
        for ta in (0, 1):
            for tb in (0, 1):
                ops = [a.T if ta else a, b.T if tb else b]
                case("matmul", ops, [a @ b], (ta, tb))
                case("matmul", ops + [bias], [a @ b + bias], (ta, tb))
        a, b, c = rand(2, 3, m, k), rand(2, 3, k, n), rand(k, n)
        case("matmul", [a, b], [a @ b])
        case("matmul", [a, c], [a @ c])
        case("matmul", [np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)], [a @ b], (1, 1))
        x = rand(k)
        case("matvec", [a[0, 0], x], [a[0, 0] @ x])
        case("matvec", [a[0, 0].T, x], [a[0, 0] @ x], (1,))


def convolutions():
    for n, c, h, w, o, kh, kw, s, p, d, g in [
        (1, 1, 3, 3, 1, 3, 3, (1, 1), (0, 0), (1, 1), 1),
        (2, 3, 5, 4, 2, 3, 2, (1, 1), (1, 1), (1, 1), 1),
        (1, 4, 6, 7, 6, 3, 3, (2, 1), (1, 2), (1, 1), 2),
        (1, 2, 7, 7, 2, 2, 3, (2, 3), (0, 1), (3, 2), 1),
        (1, 3, 4, 4, 3, 1, 1, (1, 1), (0, 0), (1, 1), 3),
    ]:
        x, wt, b = rand(n, c, h, w), rand(o, c // g, kh, kw), rand(o)
        for bias in (None, b):
            y = F.conv2d(t(x), t(wt), None if bias is None else t(bias), s, p, d, g)
            case("conv2d", [x, wt] + ([] if bias is None else [bias]), [y], (*s, *p, *d, g))
    # The parameters of the zero Attrs.
    case("conv2d", [x, wt[:, :1]], [F.conv2d(t(x), t(wt), None, 1, 0, 1, 3)], (0, 0, 0, 0, 0, 0, 3))


def attentions():
    for lead, h, hkv, tq, tk, d in [((), 1, 1, 1, 1, 2), ((), 4, 2, 3, 5, 4), ((2,), 6, 2, 4, 4, 3), ((), 2, 2, 5, 3, 2)]:
        q, k, v = rand(*lead, h, tq, d), rand(*lead, hkv, tk, d), rand(*lead, hkv, tk, d)
        for causal in (0, 1):
            for scale in (0, 0.7):
                s = float(np.float32(scale)) or float(np.float32(1 / math.sqrt(d)))
                # The last query is at the position of the last key.
                mask = torch.ones(tq, tk, dtype=torch.bool)
                if causal:
                    mask = mask.tril(tk - tq)
                g = h // hkv
                y = F.scaled_dot_product_attention(
                    t(q), t(np.repeat(k, g, axis=-3)), t(np.repeat(v, g, axis=-3)), attn_mask=mask, scale=s)
                y = np.array(y)
                y[..., ~np.array(mask).any(axis=1), :] = 0
                case("attention", [q, k, v], [y], (causal,), (scale,))


def rope():
    for rows, h, d in [(1, 1, 2), (5, 2, 8), (3, 1, 6)]:
        x = rand(rows, h, d)
        for start, theta, inter in [(0, 0, 0), (7, 500000, 1), (100, 0, 1), (-3, 100, 0)]:
            for positions in (None, rng.integers(0, 50, rows)):
                pos = np.arange(rows) + start if positions is None else positions
                angle = pos[:, None] * (theta or 10000.0) ** (-np.arange(0, d, 2) / d)
                c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
                z = x[..., 0::2] + 1j * x[..., 1::2] if inter else x[..., : d // 2] + 1j * x[..., d // 2:]
                z = z * (c + 1j * s)
                y = np.empty_like(x)
                if inter:
                    y[..., 0::2], y[..., 1::2] = z.real, z.imag
                else:
                    y[..., : d // 2], y[..., d // 2:] = z.real, z.imag
                case("rope", [x] + ([] if positions is None else [positions]), [y], (start, inter), (theta,))


def choices():
    table = rand(5, 3)
    for ids in [np.array(2), np.array([4, 0, 0]), np.array([[1, 2], [3, 4]]), np.array([], dtype=int)]:
        case("gather", [table, ids], [table[ids]])
    y = np.full((3, 3), np.nan)
    y[1] = table[4]
    case("gather", [table, np.array([-6, 4, 5])], [y])
    for x in [rand(6), rand(3, 4), np.array(SPECIAL_ROWS), np.array([1.0, 3, 2, 3, 1, 3])]:
        n = x.shape[-1]
        for k in {0, 1, 2, n}:
            # NumPy's sort is ascending with NaN at the end; a stable sort of
            # the reversed row, reversed again, keeps the lower index first.
            order = n - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
            order = order[..., :k]
            case("topk", [x], [np.take_along_axis(x, order, axis=-1), order], (k,))


def sorts():
    ties = np.round(rand(3, 40) * 2)
    for x in [rand(6), rand(3, 4), np.array(SPECIAL_ROWS), ties, np.zeros((2, 0)), np.zeros((0, 2)), rand(300)]:
        order = np.argsort(x, axis=-1, kind="stable")
        case("sort", [x], [np.take_along_axis(x, order, axis=-1), order], (0,))
        # PyTorch's descending order has NaN first and is stable.
        case("sort", [x], [v.numpy() for v in torch.sort(t(x), dim=-1, descending=True, stable=True)], (1,))


def layouts():
    x = rand(2, 3, 4)
    case("transpose", [x], [np.swapaxes(x, -1, -2)])
    case("transpose", [x[0]], [x[0].T])
    case("transpose", [np.zeros((0, 3))], [np.zeros((3, 0))])
    case("reshape", [x], [x.reshape(6, 4)], (7, 5))
    case("reshape", [x], [x.reshape(4, -1, 2)], (5, -1, 3))
    case("reshape", [x[0, 0, :1]], [x[0, 0, 0]], ())
    case("reshape", [np.zeros((0, 3))], [np.zeros((2, 0, 5))], (3, 1, 6))


def quantised_products():
    """The weights are numbers that 8-bit blocks hold; a reference gets them
    as numbers."""
    for m, k, n in [(1, 32, 1), (3, 64, 5), (2, 0, 3), (0, 32, 2)]:
        a, bias = rand(m, k), rand(n)
        w = rng.integers(-127, 128, (n, k)) * 0.0078125
        case("matmul_q", [a, w], [a @ w.T])
        case("matmul_q", [a, w, bias], [F.linear(t(a), t(w), t(bias)).numpy()])
    a, w = rand(2, 3, 32), rng.integers(-127, 128, (4, 32)) * 0.5
    case("matmul_q", [a, w], [a @ w.T])


END = 2**63 - 1


def listed(*axes):
    """Axes as the parameters list them: 0 ends the list."""
    return [a + 1 if a >= 0 else a for a in axes]


def views():
    x = rand(2, 3, 4)
    case("permute", [x], [np.transpose(x, (2, 0, 1))], listed(2, 0, 1))
    case("permute", [x], [np.transpose(x, (1, 2, 0))], listed(-2, 2, 0))
    case("permute", [np.zeros((0, 3))], [np.zeros((3, 0))], listed(1, 0))
    y = rand(7, 3)
    for start, stop, step in [(1, 5, 1), (-3, END, 1), (0, END, 2), (-1, END, -1), (5, 0, -2), (4, 2, 1), (100, -100, -3), (2, -1, 3)]:
        part = slice(start, None if stop == END else stop, step)
        case("slice", [y], [y[part]], (0, start, stop, step))
        case("slice", [y.T], [y.T[:, part]], (-1, start, stop, step))
    case("flip", [x], [np.flip(x)])
    case("flip", [x], [np.flip(x, (0, 2))], listed(0, -1))
    for offset, i, j in [(0, 0, 1), (1, -1, 0), (-2, 2, 1), (9, 0, 2)]:
        case("diagonal", [x], [np.diagonal(x, offset, i, j)], (offset, i, j))
    for axis, size, step, dilation in [(0, 2, 1, 1), (-1, 2, 2, 1), (2, 2, 1, 3), (1, 3, 1, 1)]:
        y = np.lib.stride_tricks.sliding_window_view(x, (size - 1) * dilation + 1, axis)[..., ::dilation]
        case("sliding_window", [x], [y[(slice(None),) * (axis % 3) + (slice(None, None, step),)]], (axis, size, step, dilation))
    for a, s in [(rand(3, 1), (2, 3, 4)), (rand(1, 4), (3, 4)), (rand(2), (2,))]:
        case("expand", [a], [np.broadcast_to(a, s)], [d + 1 for d in s])
    a = rand(2, 1, 3)
    case("expand", [a], [np.broadcast_to(a, (2, 5, 3))], (-1, 6, -1))
    case("pad", [x], [np.pad(x, ((0, 0), (2, 1), (0, 0)), constant_values=1.5)], (1, 2, 1), (1.5,))
    case("pad", [x], [np.pad(x, ((0, 0), (0, 0), (0, 3)))], (-1, 0, 3), (0,))
    a, b = rand(2, 5, 4), rand(2, 0, 4)
    case("concat", [x, a, b, x], [np.concatenate((x, a, b, x), axis=1)], (1,))
    a = rand(2, 3, 1)
    case("concat", [x, a], [np.concatenate((x, a), axis=-1)], (-1,))
    case("concat", [x], [x], (0,))


def places():
    x = rand(2, 6, 3)
    for at, start in [(0, 0), (2, 2), (-4, 0), (50, 4)]:
        case("slice_at", [x, np.array([at])], [x[:, start:start + 2]], (1, 2))
    v = rand(2, 3, 3)
    for at in (0, 2, -1, 5, 9, -7):
        y = x.copy()
        for r in range(3):
            if 0 <= at + r < 6:
                y[:, at + r] = v[:, r]
        case("update", [x, np.array([at]), v], [y], (-2,))


def counts():
    for start, n in [(0, 5), (7, 1), (2**32 - 2, 4), (3, 0)]:
        case("iota", [np.array([start])], [(start + np.arange(n)) % 2**32], (n,))


def folds():
    """Reductions and scans by folds of package op, from numbers of their own."""
    own = np.random.default_rng(21)
    with np.errstate(all="ignore"):
        for x in [own.standard_normal(s).astype(np.float32).astype(np.float64) for s in [(1,), (7,), (3, 5), (2, 3, 4)]] + [np.array(SPECIAL_ROWS)]:
            for rows in (0, 1):
                ax = -1 if rows else None
                case("prod", [x], [np.prod(x, axis=ax)], (rows,))
                case("logsumexp", [x], [scipy.special.logsumexp(x, axis=ax)], (rows,))
                case("any", [x > 0.5], [np.any(x > 0.5, axis=ax)], (rows,))
                case("any", [x], [np.any(x, axis=ax)], (rows,))
                case("all", [x], [np.all(x, axis=ax)], (rows,))
                case("count_nonzero", [x], [np.count_nonzero(x, axis=ax)], (rows,))
            case("cumprod", [x], [np.cumprod(x, axis=-1)])
            case("cummax", [x], [np.maximum.accumulate(x, axis=-1)])
            case("cummin", [x], [np.minimum.accumulate(x, axis=-1)])
            case("logcumsumexp", [x], [np.logaddexp.accumulate(x, axis=-1)])


def indices():
    rng = np.random.default_rng(21)

    def some(*shape):
        return rng.standard_normal(shape).astype(np.float32).astype(np.float64)

    table = some(4, 5, 3)
    for axis in (0, 1, 2, -2):
        ids = rng.integers(-3, 3, (2, 3))
        case("gather", [table, ids], [np.take(table, ids, axis=axis)], (axis,))
    for axis, n in ((0, 7), (1, 4), (2, 9)):
        ids = rng.integers(-3, 3, n)
        front = np.moveaxis(table, axis, 0)
        v = np.moveaxis(some(n, *front.shape[1:]), 0, axis)
        rows = np.moveaxis(v, axis, 0)
        for way, f in enumerate((None, np.add, np.multiply, np.minimum, np.maximum)):
            y = front.copy()
            if f is None:
                y[ids] = rows
            else:
                f.at(y, ids, rows)
            case("scatter", [table, ids, v], [np.moveaxis(y, 0, axis)], (axis, way))
    x, v = some(4), some(5)
    y = x.copy()
    y[3] = v[1]
    case("scatter", [x, np.array([4, -1, -5, 2**31 - 1, -2**31]), v], [y], (0, 0))


def experts():
    def some(*shape):
        n = math.prod(shape)
        return ((np.arange(n) * 37 + 11) % 17 - 8).reshape(shape) * 0.25

    w = some(3, 4, 5)
    for lead, each in (((), ()), ((2,), ()), ((2,), (3,)), ((2, 3), (2,))):
        x = some(*lead, 5)
        ids = (np.arange(math.prod(lead + each)) * 5 + 1).reshape(lead + each) % 6 - 3
        rows = np.broadcast_to(x[..., None, :] if each else x, lead + each + (5,))
        case("matmul_experts", [x, w, ids], [np.einsum("...k,...nk->...n", rows, w[ids])])
    case("matmul_experts", [x[0], w, np.array([3, 2, -4])], [np.stack([np.full(4, np.nan), w[2] @ x[0, 1], np.full(4, np.nan)])])


for make in (reductions, rows, products, convolutions, attentions, rope, choices, layouts, quantised_products, views, places, counts, sorts, folds, indices, experts):
    make()
print('{"generator": "python3 gen_shaped.py > shaped.json",\n"cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}")
