"""Writes elementwise.json: golden values of the elementwise operations.

    python3 gen_golden.py > elementwise.json

Needs mpmath and numpy. The results come from mpmath at 200 bits and not from
this project's formulas, so that a wrong formula cannot agree with itself.

Layout of the file:

    inputs     the float32 arguments that every unary operation is asked
    pairs      the float32 pairs that every binary operation is asked
    unary      for each operation: params, y (exact results, rounded once to
               float64), and
                 limit   indices of inputs where y is the limit of the function
                         but the usual formula, evaluated in IEEE arithmetic,
                         gives NaN (silu(-Inf) = -Inf * 0)
                 numpy   for operations that NumPy has: what kind of float32
                         NumPy answers at each special input, by index: NaN, Inf, -Inf,
                         0, -0, or n for any other number
    binary     the same over pairs; comparisons answer 1 or 0
    others     operations with required parameters or other operands: params
               and operands of each question, types where they are not f32, and y

Numbers are JSON numbers, except "NaN", "Inf", "-Inf" and "-0".
"""

import json
import math
import struct
import sys

import mpmath as mp
import numpy as np

mp.mp.prec = 200
np.seterr(all="ignore")

F32_TINY = 1.401298464324817e-45  # smallest denormal
F32_MIN = 1.1754943508222875e-38  # smallest normal
F32_MAX = 3.4028234663852886e38

MAGNITUDES = [
    F32_TINY, 1e-40, F32_MIN, 1e-20, 1e-6, 1e-3, 0.1, 0.25, 0.5, 0.625, 0.75, 1.0,
    1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.7, 6.0, 9.0, 10.5, 17.0, 31.25, 87.3, 88.8,
    103.5, 150.0, 1000.5, 8388607.5, 16777216.0, 1e20, F32_MAX,
]
INPUTS = [np.float32(v) for v in [math.nan, math.inf, -math.inf, 0.0, -0.0]]
INPUTS += [np.float32(s * m) for m in MAGNITUDES for s in (1, -1)]

PAIR_VALUES = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, 1 / 3, -8.0, F32_TINY, F32_MAX, -1e20]
PAIRS = [(np.float32(a), np.float32(b)) for a in PAIR_VALUES for b in PAIR_VALUES]

SELU_ALPHA = mp.mpf("1.6732632423543772848170429916717")
SELU_SCALE = mp.mpf("1.0507009873554804934193349852946")


def is_special(v):
    return math.isnan(v) or math.isinf(v) or v == 0


def sigmoid(x):
    return 1 / (1 + mp.exp(-x)) if x >= 0 else mp.exp(x) / (1 + mp.exp(x))


def softplus(x):
    return mp.log1p(mp.exp(-abs(x))) + max(x, 0)


def half_even(x):
    f = mp.floor(x)
    d = x - f
    if d > 0.5 or (d == 0.5 and int(f) % 2):
        f += 1
    return f


def positive(f):
    return lambda x: f(x) if x > 0 else mp.nan


def within(f):
    return lambda x: f(x) if abs(x) <= 1 else mp.nan


# Results of the classification functions for NaN.
OF_NAN = {"is_inf": 0.0, "is_finite": 0.0, "is_nan": 1.0, "sign_bit": 0.0}


# name: (params, function of a finite nonzero mpf, results at Inf, -Inf, 0 and -0,
# NumPy's name or None). ("limit", y) is y with a mark.
SPECIALS = ["Inf", "-Inf", "0", "-0"]
NAN, INF = math.nan, math.inf
UNARY = {
    "relu": ({}, lambda x: max(x, 0), (INF, 0.0, 0.0, 0.0), None),
    "leaky_relu": ({"slope": 0.01}, lambda x: x if x > 0 else mp.mpf(float(np.float32(0.01))) * x, (INF, -INF, 0.0, -0.0), None),
    "elu": ({"alpha": 1}, lambda x: x if x > 0 else mp.expm1(x), (INF, -1.0, 0.0, -0.0), None),
    "selu": ({}, lambda x: SELU_SCALE * (x if x > 0 else SELU_ALPHA * mp.expm1(x)), (INF, float(-SELU_SCALE * SELU_ALPHA), 0.0, -0.0), None),
    "sigmoid": ({}, sigmoid, (1.0, 0.0, 0.5, 0.5), None),
    "tanh": ({}, mp.tanh, (1.0, -1.0, 0.0, -0.0), "tanh"),
    "silu": ({}, lambda x: x * sigmoid(x), (INF, ("limit", -0.0), 0.0, -0.0), None),
    "hard_swish": ({}, lambda x: x * min(max(x + 3, 0), 6) / 6, (INF, ("limit", -0.0), 0.0, -0.0), None),
    "mish": ({}, lambda x: x * mp.tanh(softplus(x)), (INF, ("limit", -0.0), 0.0, -0.0), None),
    "gelu": ({}, lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, (INF, ("limit", -0.0), 0.0, -0.0), None),
    # 0.5 (1 + tanh u) is the sigmoid of 2u, which does not cancel.
    "gelu_tanh": ({}, lambda x: x * sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)), (INF, ("limit", -0.0), 0.0, -0.0), None),
    "softplus": ({}, softplus, (INF, 0.0, math.log(2), math.log(2)), None),
    "abs": ({}, abs, (INF, INF, 0.0, 0.0), "absolute"),
    "neg": ({}, lambda x: -x, (-INF, INF, -0.0, 0.0), "negative"),
    "sign": ({}, mp.sign, (1.0, -1.0, 0.0, 0.0), "sign"),
    "floor": ({}, mp.floor, (INF, -INF, 0.0, -0.0), "floor"),
    "ceil": ({}, mp.ceil, (INF, -INF, 0.0, -0.0), "ceil"),
    "round": ({}, half_even, (INF, -INF, 0.0, -0.0), "rint"),
    "trunc": ({}, lambda x: mp.floor(x) if x > 0 else mp.ceil(x), (INF, -INF, 0.0, -0.0), "trunc"),
    "exp": ({}, mp.exp, (INF, 0.0, 1.0, 1.0), "exp"),
    "exp2": ({}, lambda x: mp.power(2, x), (INF, 0.0, 1.0, 1.0), "exp2"),
    "log": ({}, positive(mp.log), (INF, NAN, -INF, -INF), "log"),
    "log2": ({}, positive(lambda x: mp.log(x, 2)), (INF, NAN, -INF, -INF), "log2"),
    "log1p": ({}, lambda x: mp.log1p(x) if x > -1 else (-mp.inf if x == -1 else mp.nan), (INF, NAN, 0.0, -0.0), "log1p"),
    "sqrt": ({}, positive(mp.sqrt), (INF, NAN, 0.0, -0.0), "sqrt"),
    "rsqrt": ({}, positive(lambda x: 1 / mp.sqrt(x)), (0.0, NAN, INF, -INF), None),
    "recip": ({}, lambda x: 1 / x, (0.0, -0.0, INF, -INF), "reciprocal"),
    "square": ({}, lambda x: x * x, (INF, INF, 0.0, 0.0), "square"),
    "sin": ({}, mp.sin, (NAN, NAN, 0.0, -0.0), "sin"),
    "cos": ({}, mp.cos, (NAN, NAN, 1.0, 1.0), "cos"),
    "celu": ({"alpha": 1}, lambda x: x if x > 0 else mp.expm1(x), (INF, -1.0, 0.0, 0.0), None),
    "softsign": ({}, lambda x: x / (1 + abs(x)), (("limit", 1.0), ("limit", -1.0), 0.0, -0.0), None),
    "erf": ({}, mp.erf, (1.0, -1.0, 0.0, -0.0), None),
    "erfinv": ({}, lambda x: mp.sign(x) * mp.inf if abs(x) == 1 else within(mp.erfinv)(x), (NAN, NAN, 0.0, -0.0), None),
    "tan": ({}, mp.tan, (NAN, NAN, 0.0, -0.0), "tan"),
    "asin": ({}, within(mp.asin), (NAN, NAN, 0.0, -0.0), "arcsin"),
    "acos": ({}, within(mp.acos), (NAN, NAN, math.pi / 2, math.pi / 2), "arccos"),
    "atan": ({}, mp.atan, (math.pi / 2, -math.pi / 2, 0.0, -0.0), "arctan"),
    "sinh": ({}, mp.sinh, (INF, -INF, 0.0, -0.0), "sinh"),
    "cosh": ({}, mp.cosh, (INF, INF, 1.0, 1.0), "cosh"),
    "asinh": ({}, mp.asinh, (INF, -INF, 0.0, -0.0), "arcsinh"),
    "acosh": ({}, lambda x: mp.acosh(x) if x >= 1 else mp.nan, (INF, NAN, NAN, NAN), "arccosh"),
    "atanh": ({}, lambda x: mp.sign(x) * mp.inf if abs(x) == 1 else within(mp.atanh)(x), (NAN, NAN, 0.0, -0.0), "arctanh"),
    "expm1": ({}, mp.expm1, (INF, -1.0, 0.0, -0.0), "expm1"),
    "log10": ({}, positive(lambda x: mp.log(x, 10)), (INF, NAN, -INF, -INF), "log10"),
    "cbrt": ({}, lambda x: mp.sign(x) * mp.cbrt(abs(x)), (INF, -INF, 0.0, -0.0), "cbrt"),
    "is_inf": ({}, lambda x: 0, (1.0, 1.0, 0.0, 0.0), "isinf"),
    "is_finite": ({}, lambda x: 1, (0.0, 0.0, 1.0, 1.0), "isfinite"),
    "is_nan": ({}, lambda x: 0, (0.0, 0.0, 0.0, 0.0), "isnan"),
    "sign_bit": ({}, lambda x: int(x < 0), (0.0, 1.0, 0.0, 1.0), "signbit"),
}

BINARY = {
    "add": (lambda a, b: a + b, np.add),
    "sub": (lambda a, b: a - b, np.subtract),
    "mul": (lambda a, b: a * b, np.multiply),
    "div": (lambda a, b: a / b, np.divide),
    "minimum": (min, np.minimum),
    "maximum": (max, np.maximum),
    "pow": (lambda a, b: mp.power(a, b) if a > 0 or b == mp.floor(b) else mp.nan, np.power),
    "atan2": (mp.atan2, np.arctan2),
    "hypot": (mp.hypot, np.hypot),
    "logaddexp": (lambda a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b))), np.logaddexp),
    "copy_sign": (lambda a, b: abs(a) * mp.sign(b), np.copysign),
    "prelu": (lambda a, b: a * b if a < 0 else a, lambda a, b: a * b if a < 0 else a),
    "fmod": (lambda a, b: mp.sign(a) * mp.fmod(abs(a), abs(b)), np.fmod),
    "remainder": (lambda a, b: a - b * mp.floor(a / b), np.remainder),
    "floor_divide": (lambda a, b: mp.floor(a / b), np.floor_divide),
    "equal": (None, np.equal),
    "not_equal": (None, np.not_equal),
    "less": (None, np.less),
    "less_equal": (None, np.less_equal),
    "greater": (None, np.greater),
    "greater_equal": (None, np.greater_equal),
}


def to_float(v, like=None):
    """Rounds once; keeps the sign of a zero that a rounding operation made of
    a negative argument, which mpmath does not have."""
    f = float(v)
    if f == 0 and like is not None and like < 0 and not math.copysign(1, f) < 0:
        return -0.0
    return f


def encode(v):
    if math.isnan(v):
        return "NaN"
    if math.isinf(v):
        return "Inf" if v > 0 else "-Inf"
    if v == 0 and math.copysign(1, v) < 0:
        return "-0"
    if v == int(v) and abs(v) < 1e15:
        return int(v)
    return v


def kind(v):
    v = float(v)
    return encode(v) if math.isnan(v) or math.isinf(v) or v == 0 and math.copysign(1, v) < 0 else ("0" if v == 0 else "n")


# Results that vanish keep the argument's sign in these.
ODD = {"floor", "ceil", "round", "trunc", "neg", "silu", "mish", "gelu", "gelu_tanh", "hard_swish", "sin", "tanh", "elu", "selu", "leaky_relu", "log1p", "erf", "tan", "asin", "atan", "sinh", "asinh", "atanh", "expm1", "cbrt", "softsign", "erfinv"}


def unary(name):
    params, f, specials, native = UNARY[name]
    y, limit = [], []
    for i, x in enumerate(INPUTS):
        x = float(x)
        if math.isnan(x):
            y.append(OF_NAN.get(name, NAN))
        elif is_special(x):
            r = specials[SPECIALS.index(kind(x))]
            if isinstance(r, tuple):
                limit.append(i)
                r = r[1]
            y.append(r)
        else:
            y.append(to_float(f(mp.mpf(x)), x if name in ODD else None))
    out = {"op": name}
    if params:
        out["params"] = params
    out["y"] = [encode(v) for v in y]
    if limit:
        out["limit"] = limit
    if native:
        z = getattr(np, native)(np.array(INPUTS, dtype=np.float32))
        out["numpy"] = {str(i): kind(z[i]) for i, x in enumerate(INPUTS) if is_special(x)}
    return out


def binary(name):
    f, native = BINARY[name]
    y = []
    for a, b in PAIRS:
        a, b = float(a), float(b)
        # NumPy's float64 follows IEEE 754 and C99 at special values and is
        # exact for comparisons; elsewhere mpmath rounds once.
        v = float(native(np.float64(a), np.float64(b)))
        if f is not None and not is_special(a) and not is_special(b):
            e = f(mp.mpf(a), mp.mpf(b))
            v = NAN if mp.isnan(e) else to_float(e)
        y.append(v)
    return {"op": name, "y": [encode(v) for v in y]}


FEW = [np.float32(v) for v in [math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 0.1, -2.5, 1 / 3, 1e-6, 16777216.0, -1e20]]
FINITE = [v for v in FEW if math.isfinite(v)]
SCALARS = [np.float32(v) for v in [0.0, 1.0, -1.5, 0.1, 1e10]]


def exact(f, ieee, *args):
    """f in mpmath where all arguments are finite, else what IEEE 754 gives."""
    args = [float(v) for v in args]
    if all(math.isfinite(v) for v in args):
        return to_float(f(*map(mp.mpf, args)))
    return float(ieee(*map(np.float64, args)))


def clip(x, lo, hi):
    return np.minimum(np.maximum(x, lo), hi)


def saturate(v, least, most):
    return 0 if math.isnan(v) else least if v <= least else most if v >= most else math.trunc(v)


# name: for each question the parameters, the operands and the result.
OTHERS = {
    "clip": [((lo, hi), (x,), exact(lambda x, lo, hi: min(max(x, lo), hi), clip, x, lo, hi))
             for lo, hi in [(-0.75, 1.25), (0.0, math.inf), (1.0, -1.0), (math.nan, 1.0)] for x in INPUTS],
    "scale": [((s,), (x,), exact(lambda x, s: x * s, np.multiply, x, s)) for s in SCALARS for x in FEW],
    "add_scalar": [((s,), (x,), exact(lambda x, s: x + s, np.add, x, s)) for s in SCALARS for x in FEW],
    "hard_sigmoid": [((a, b), (x,), exact(lambda x, a, b: min(max(a * x + b, 0), 1), lambda x, a, b: clip(a * x + b, 0, 1), x, a, b))
                     for a, b in [(0.25, 0.5), (1.5, -0.75)] for x in INPUTS],
    "shrink": [((l, b), (x,), 0.0 if math.isnan(x) else float(x) if math.isinf(x) else to_float(x + mp.mpf(float(b)) if x < -l else x - mp.mpf(float(b)) if x > l else 0))
               for l, b in [(0.5, 0.25), (1.5, 0.0)] for x in map(float, INPUTS)],
    "threshold": [((e, v), (x,), x if x > e else v) for e, v in [(0.5, 0.25), (-1.0, -7.0)] for x in INPUTS],
    "axpy": [((a,), (x, y), exact(lambda x, y, a: a * x + y, lambda x, y, a: a * x + y, x, y, a)) for a in SCALARS for x in FEW for y in FEW],
    "lerp": [((t,), (x, y), exact(lambda x, y, t: x + t * (y - x), None, x, y, t))
             for t in [np.float32(v) for v in [0.0, 1.0, 0.25, 0.1, -0.5, 2.0]] for x in FINITE for y in FINITE]
            + [((0.5,), (v, 1.0), math.nan) for v in [math.nan, math.inf, -math.inf]],
    "fma": [((), (x, y, z), exact(lambda x, y, z: x * y + z, lambda x, y, z: x * y + z, x, y, z)) for x in FEW for y in FEW for z in FEW[::3]],
    "where": [((), (c, x, y), x if c else y) for c in [0, 1] for x in FEW for y in FEW],
}

I32S = [0, 1, -1, 2, 7, -8, 12345679, -12345678, 65536, 2**31 - 1, -(2**31)]
U32S = [0, 1, 2, 7, 65536, 12345679, 2**31, 2**32 - 1]
COUNTS = {"i32": [0, 1, 5, 31, 32, 33, -1], "u32": [0, 1, 5, 31, 32, 33, 2**32 - 1]}


def wrap(v, t):
    """v in the range of a type of 32 bits."""
    return (v + 2**31) % 2**32 - 2**31 if t == "i32" else v % 2**32 if t == "u32" else v & 1


def toward_zero(a, b):
    q = abs(a) // abs(b) if b else 0
    return q if (a < 0) == (b < 0) else -q


def power(t, a, b):
    """a to the power b in 32 bits, without its fraction where b < 0."""
    if b < 0:
        return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
    return pow(a, b, 2**32)


# operations on integers and truth values: number of operands, types, function of them and the type
WHOLE = {
    "and": (2, ["i32", "u32", "bool"], lambda t, a, b: a & b),
    "or": (2, ["i32", "u32", "bool"], lambda t, a, b: a | b),
    "xor": (2, ["i32", "u32", "bool"], lambda t, a, b: a ^ b),
    "not": (1, ["i32", "u32", "bool"], lambda t, a: ~a),
    "div": (2, ["i32", "u32"], lambda t, a, b: toward_zero(a, b)),
    "floor_divide": (2, ["i32", "u32"], lambda t, a, b: a // b if b else 0),
    "fmod": (2, ["i32", "u32"], lambda t, a, b: a - toward_zero(a, b) * b if b else 0),
    "remainder": (2, ["i32", "u32"], lambda t, a, b: a % b if b else 0),
    "pow": (2, ["i32", "u32"], power),
    "shift_left": (2, ["i32", "u32"], lambda t, a, b: a << b if 0 <= b < 32 else 0),
    "shift_right": (2, ["i32", "u32"], lambda t, a, b: a >> (b if 0 <= b < 32 else 32)),
}


def threefry(k0, k1, i):
    """The exclusive or of both words of Threefry-2x32-20 of the counter (0, i)."""
    m = 2**32 - 1
    ks = [k0, k1, 0x1BD11BDA ^ k0 ^ k1]
    x, y = k0, (i + k1) & m
    for r in range(20):
        x = (x + y) & m
        d = [13, 15, 26, 6, 17, 29, 16, 24][r % 8]
        y = ((y << d | y >> (32 - d)) & m) ^ x
        if r % 4 == 3:
            s = r // 4 + 1
            x, y = (x + ks[s % 3]) & m, (y + ks[(s + 1) % 3] + s) & m
    return x ^ y


def bitcasts():
    """Bits of numbers, as another type of 32 bits."""
    code = {"f32": "f", "i32": "i", "u32": "I"}
    values = {"f32": [0.0, -0.0, 1.0, -1.5, F32_MIN, F32_MAX, 3.25, -2.0**-20, math.inf, -math.inf], "i32": I32S + [0x3f800000], "u32": U32S + [0x3f800000, 0xff800000]}
    for to in code:
        for source in code:
            if source == to:
                continue
            rows = [(encode(v), struct.unpack("<" + code[to], struct.pack("<" + code[source], v))[0]) for v in values[source]]
            yield {"op": "bitcast_" + to, "types": [source], "params": [], "in": [[v] for v, _ in rows], "y": [encode(y) for _, y in rows]}


def whole():
    words = [0, 1, 12345679, 2**32 - 1]
    rows = [(a, b, c) for a in words for b in words for c in words]
    yield {"op": "threefry", "types": ["u32"] * 3, "params": [], "in": rows, "y": [threefry(*r) for r in rows]}
    yield from bitcasts()
    values = {"i32": I32S, "u32": U32S, "bool": [0, 1]}
    for name, (arity, types, f) in WHOLE.items():
        for t in types:
            second = COUNTS[t] if name.startswith("shift") else values[t]
            rows = [(a, b) for a in values[t] for b in second] if arity == 2 else [(a,) for a in values[t]]
            yield {"op": name, "types": [t] * arity, "params": [], "in": rows, "y": [wrap(f(t, *r), t) for r in rows]}


# type of the operand, type of the result, function
CASTS = [
    ("f32", "f32", float), ("f32", "i32", lambda v: saturate(v, -(2**31), 2**31 - 1)), ("f32", "u32", lambda v: saturate(v, 0, 2**32 - 1)),
    ("f32", "bool", lambda v: int(v != 0)), ("i32", "f32", float), ("i32", "u32", lambda v: v % 2**32), ("u32", "i32", lambda v: (v + 2**31) % 2**32 - 2**31),
    ("i32", "bool", lambda v: int(v != 0)), ("bool", "f32", float), ("bool", "i32", int),
]
CAST_INPUTS = {"f32": [float(x) for x in INPUTS], "i32": [0, 1, -1, 127, 65536, 2**31 - 1, -(2**31)], "u32": [0, 1, 127, 2**31, 2**32 - 1], "bool": [0, 1]}


def others():
    for name, questions in OTHERS.items():
        for key in dict.fromkeys(params for params, _, _ in questions):
            rows = [(args, y) for params, args, y in questions if params is key or params == key]
            yield {"op": name, "params": [encode(float(v)) for v in key], "in": [[encode(float(v)) for v in args] for args, _ in rows], "y": [encode(float(y)) for _, y in rows]}
    yield from whole()
    for source, to, f in CASTS:
        xs = CAST_INPUTS[source]
        yield {"op": "cast", "from": source, "to": to, "params": [], "in": [[encode(v)] for v in xs], "y": [encode(f(v)) for v in xs]}


def main():
    w = sys.stdout.write
    w("{\n")
    w('"generator": "python3 gen_golden.py > elementwise.json",\n')
    w('"inputs": %s,\n' % json.dumps([encode(float(x)) for x in INPUTS]))
    w('"pairs": %s,\n' % json.dumps([[encode(float(a)), encode(float(b))] for a, b in PAIRS]))
    w('"unary": [\n' + ",\n".join(json.dumps(unary(n)) for n in UNARY) + "\n],\n")
    w('"binary": [\n' + ",\n".join(json.dumps(binary(n)) for n in BINARY) + "\n],\n")
    w('"others": [\n' + ",\n".join(json.dumps(c) for c in others()) + "\n]\n}\n")


main()
