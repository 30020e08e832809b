"""How NumPy and PyTorch write the operations of the catalogue that the other tables
lack: expressions over the operands x, y and z, with out and t, arrays like x, and ok,
truth values like x. The first form is the one whose result is checked."""

import numpy as np


def operands(op, shapes, domain, mem):
    """The operands as Go makes them; domain is a domain of catalogue.go, or None."""
    arrays = []
    for i, shape in enumerate(shapes):
        n = int(np.prod(shape))
        if op in ("gather", "scatter") and i == 1:
            arrays.append(np.arange(n, dtype=np.int64) * 7919 % shapes[0][0])
            continue
        a = mem.input(n, i + 1)
        if domain:
            if domain["abs"]:
                np.abs(a, out=a)
            a *= np.float32(domain["scale"])
            a += np.float32(domain["offset"])
            if i == 0 and domain["diagonal"]:
                a[:: shape[-1] + 1] += np.float32(domain["diagonal"])
        arrays.append(a.reshape(shape))
    return arrays


def unary(name, form="np.{}(x, out=out)"):
    return [form.format(name)]


NUMPY = {
    "leaky_relu": ["np.maximum(x, np.multiply(x, 0.01, out=t), out=out)"],
    "elu": ["np.where(np.greater(x, 0, out=ok), x, np.expm1(x, out=t))"],
    "selu": ["np.multiply(1.0507009873554805, np.where(np.greater(x, 0, out=ok), x, np.multiply(1.6732632423543772, np.expm1(x, out=t), out=t)), out=out)"],
    "silu": ["np.multiply(x, expit(x, out=t), out=out)"],
    "gelu_tanh": ["np.multiply(np.multiply(x, 0.5, out=out), np.add(1, np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x), out=t), out=t), out=out)"],
    "softplus": ["np.logaddexp(np.float32(0), x, out=out)"],
    "abs": unary("absolute"),
    "neg": unary("negative"),
    "round": unary("rint"),
    "rsqrt": ["np.divide(1, np.sqrt(x, out=t), out=out)"],
    "recip": ["np.divide(1, x, out=out)", "np.reciprocal(x, out=out)"],
    "erf": ["erf(x, out)"],
    "clip": ["np.clip(x, -0.5, 0.5, out=out)", "np.minimum(np.maximum(x, -0.5, out=out), 0.5, out=out)"],
    "scale": ["np.multiply(x, -0.5, out=out)"],
    "add_scalar": ["np.add(x, -0.5, out=out)"],
    "axpy": ["np.add(np.multiply(x, -0.5, out=t), y, out=out)"],
    "lerp": ["np.add(x, np.multiply(np.subtract(y, x, out=t), -0.5, out=t), out=out)"],
    "fma": ["np.add(np.multiply(x, y, out=t), z, out=out)"],
    "where": ["np.where(np.greater(x, 0, out=ok), y, z)"],
    "cast": ["x.astype(np.float16)"],
    "mean": ["np.mean(x)"],
    "var": ["np.var(x)"],
    "min": ["np.min(x)"],
    "max": ["np.max(x)"],
    "argmin": ["np.argmin(x)"],
    "argmax": ["np.argmax(x)"],
    "prod": ["np.multiply.reduce(x)"],
    "any": ["np.any(x)"],
    "all": ["np.all(x)"],
    "count_nonzero": ["np.count_nonzero(x)"],
    "norm_l1": ["np.add.reduce(np.absolute(x, out=t))", "np.linalg.norm(x, 1)"],
    "norm_l2": ["np.sqrt(np.dot(x, x))", "np.linalg.norm(x)"],
    "norm_linf": ["np.max(np.absolute(x, out=t))", "np.linalg.norm(x, np.inf)"],
    "cumsum": ["np.cumsum(x, axis=1, out=out)", "np.add.accumulate(x, axis=1, out=out)"],
    "cumprod": ["np.multiply.accumulate(x, axis=1, out=out)"],
    "cummax": ["np.maximum.accumulate(x, axis=1, out=out)"],
    "cummin": ["np.minimum.accumulate(x, axis=1, out=out)"],
    "log_softmax": ["np.subtract(np.subtract(x, np.max(x, 1, keepdims=True), out=out), np.log(np.sum(np.exp(out, out=t), 1, keepdims=True)), out=out)"],
    "layer_norm": ["(x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * y + z"],
    "rms_norm": ["x / np.sqrt(np.mean(np.square(x, out=t), 1, keepdims=True) + 1e-5) * y"],
    "gather": ["np.take(x, y, axis=0)", "x[y]"],
    "scatter": ["(np.copyto(out, x), np.add.at(out, y, z), out)[2]", "x + np.bincount(y, weights=z, minlength=x.size).astype(np.float32)"],
    "transpose": ["x.T.copy()", "np.ascontiguousarray(x.T)"],
    "reshape": ["x.reshape(-1).copy()"],
    "matvec": ["np.dot(x, y)", "x @ y"],
    "cholesky": ["np.linalg.cholesky(x)"],
    "solve": ["np.linalg.solve(x, y)"],
    "qr": ["np.linalg.qr(x)[0]"],
    "eigh": ["np.linalg.eigh(x)[0]"],
    "svd": ["np.linalg.svd(x, full_matrices=False)[0]"],
    "asin": ["np.arcsin(x, out=out)"],
    "acos": ["np.arccos(x, out=out)"],
    "atan": ["np.arctan(x, out=out)"],
    "asinh": ["np.arcsinh(x, out=out)"],
    "acosh": ["np.arccosh(x, out=out)"],
    "atanh": ["np.arctanh(x, out=out)"],
    "atan2": ["np.arctan2(x, y, out=out)"],
    "copy_sign": ["np.copysign(x, y, out=out)"],
    "and": ["np.bitwise_and(x.view(np.int32), y.view(np.int32))"],
    "or": ["np.bitwise_or(x.view(np.int32), y.view(np.int32))"],
    "xor": ["np.bitwise_xor(x.view(np.int32), y.view(np.int32))"],
    "not": ["np.invert(x.view(np.int32))"],
    "shift_left": ["np.left_shift(x.view(np.int32), 3)"],
    "shift_right": ["np.right_shift(x.view(np.int32), 3)"],
    "permute": ["np.ascontiguousarray(x.transpose(2, 0, 1))"],
    "slice": ["np.ascontiguousarray(x[:, ::2])"],
    "flip": ["np.ascontiguousarray(x[:, ::-1])"],
    "expand": ["np.broadcast_to(x, (1000, 1000)).copy()"],
    "pad": ["np.pad(x, ((0, 0), (4, 4)))"],
    "concat": ["np.concatenate((x, y), 1)"],
}
for same in ["sign", "floor", "ceil", "trunc", "exp2", "log", "log2", "log1p", "sqrt", "square", "sin", "cos"]:
    NUMPY[same] = unary(same)
for same in ["tan", "sinh", "cosh", "expm1", "log10", "cbrt"]:
    NUMPY[same] = unary(same)
for same in ["hypot", "logaddexp", "fmod", "remainder", "floor_divide"]:
    NUMPY[same] = [f"np.{same}(x, y, out=out)"]
for name, as_ in {"is_nan": "isnan", "is_inf": "isinf", "is_finite": "isfinite", "sign_bit": "signbit"}.items():
    NUMPY[name] = [f"np.{as_}(x, out=ok)"]
for name, as_ in {"sub": "subtract", "mul": "multiply", "div": "divide", "minimum": "minimum", "maximum": "maximum", "pow": "power"}.items():
    NUMPY[name] = [f"np.{as_}(x, y, out=out)"]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
for name in COMPARISONS:
    NUMPY[name] = [f"np.{name}(x, y, out=ok)"]

TORCH = {
    "leaky_relu": ["F.leaky_relu(x, 0.01)"],
    "elu": ["F.elu(x)"],
    "selu": ["F.selu(x)"],
    "silu": ["F.silu(x)"],
    "hard_swish": ["F.hardswish(x)"],
    "mish": ["F.mish(x)"],
    "gelu_tanh": ["F.gelu(x, approximate='tanh')"],
    "softplus": ["F.softplus(x)"],
    "recip": ["torch.reciprocal(x, out=out)"],
    "clip": ["torch.clamp(x, -0.5, 0.5, out=out)"],
    "scale": ["torch.mul(x, -0.5, out=out)"],
    "add_scalar": ["torch.add(x, -0.5, out=out)"],
    "axpy": ["torch.add(y, x, alpha=-0.5, out=out)"],
    "lerp": ["torch.lerp(x, y, -0.5, out=out)"],
    "fma": ["torch.addcmul(z, x, y, out=out)"],
    "where": ["torch.where(torch.gt(x, 0, out=ok), y, z)"],
    "cast": ["x.half()"],
    "mean": ["torch.mean(x)"],
    "var": ["torch.var(x, correction=0)"],
    "min": ["torch.min(x)"],
    "max": ["torch.max(x)"],
    "argmin": ["torch.argmin(x)"],
    "argmax": ["torch.argmax(x)"],
    "prod": ["torch.prod(x)"],
    "logsumexp": ["torch.logsumexp(x, 0)"],
    "any": ["torch.any(x)"],
    "all": ["torch.all(x)"],
    "count_nonzero": ["torch.count_nonzero(x)"],
    "norm_l1": ["torch.linalg.vector_norm(x, 1)"],
    "norm_l2": ["torch.linalg.vector_norm(x)"],
    "norm_linf": ["torch.linalg.vector_norm(x, float('inf'))"],
    "cumsum": ["torch.cumsum(x, 1, out=out)"],
    "cumprod": ["torch.cumprod(x, 1, out=out)"],
    "cummax": ["torch.cummax(x, 1)[0]"],
    "cummin": ["torch.cummin(x, 1)[0]"],
    "logcumsumexp": ["torch.logcumsumexp(x, 1, out=out)"],
    "log_softmax": ["torch.log_softmax(x, 1)"],
    "layer_norm": ["F.layer_norm(x, (x.shape[1],), y, z)"],
    "rms_norm": ["F.rms_norm(x, (x.shape[1],), y, eps=1e-5)"],
    "gather": ["torch.index_select(x, 0, y)", "F.embedding(y, x)"],
    "scatter": ["torch.scatter_add(x, 0, y, z)", "torch.index_add(x, 0, y, z)"],
    "transpose": ["x.t().contiguous()"],
    "reshape": ["x.reshape(-1).clone()"],
    "matvec": ["torch.mv(x, y)"],
    "cholesky": ["torch.linalg.cholesky(x)"],
    "solve_triangular": ["torch.linalg.solve_triangular(x, y, upper=False)"],
    "lu": ["torch.linalg.lu_factor(x)[0]"],
    "solve": ["torch.linalg.solve(x, y)"],
    "qr": ["torch.linalg.qr(x)[0]"],
    "eigh": ["torch.linalg.eigh(x)[0]"],
    "svd": ["torch.linalg.svd(x, full_matrices=False)[0]"],
    "topk": ["torch.topk(x, 10, 1)[0]"],
    "sort": ["torch.sort(x, stable=True)[0]"],
    "conv2d": ["F.conv2d(x, y)"],
    "celu": ["F.celu(x)"],
    "hard_sigmoid": ["F.hardsigmoid(x)"],
    "shrink": ["F.hardshrink(x, 0.5)"],
    "threshold": ["F.threshold(x, -0.5, 0.5)"],
    "prelu": ["torch.where(torch.gt(x, 0, out=ok), x, torch.mul(x, y, out=t))"],
    "softsign": ["F.softsign(x)"],
    "atan2": ["torch.atan2(x, y, out=out)"],
    "copy_sign": ["torch.copysign(x, y, out=out)"],
    "and": ["torch.bitwise_and(x.view(torch.int32), y.view(torch.int32))"],
    "or": ["torch.bitwise_or(x.view(torch.int32), y.view(torch.int32))"],
    "xor": ["torch.bitwise_xor(x.view(torch.int32), y.view(torch.int32))"],
    "not": ["torch.bitwise_not(x.view(torch.int32))"],
    "shift_left": ["torch.bitwise_left_shift(x.view(torch.int32), 3)"],
    "shift_right": ["torch.bitwise_right_shift(x.view(torch.int32), 3)"],
    "permute": ["x.permute(2, 0, 1).contiguous()"],
    "slice": ["x[:, ::2].contiguous()"],
    "flip": ["torch.flip(x, (1,))"],
    "expand": ["x.expand(1000, 1000).contiguous()"],
    "pad": ["F.pad(x, (4, 4))"],
    "concat": ["torch.cat((x, y), 1)"],
    "is_nan": ["torch.isnan(x)"],
    "is_inf": ["torch.isinf(x)"],
    "is_finite": ["torch.isfinite(x)"],
    "sign_bit": ["torch.signbit(x)"],
    "attention": ["F.scaled_dot_product_attention(x[None], y[None], z[None])[0]"],
}
for same in ["abs", "neg", "sign", "floor", "ceil", "round", "trunc", "exp2", "log", "log2", "log1p", "sqrt", "rsqrt", "square", "sin", "cos", "erf"]:
    TORCH[same] = [f"torch.{same}(x, out=out)"]
for same in ["tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "log10", "erfinv"]:
    TORCH[same] = [f"torch.{same}(x, out=out)"]
for same in ["hypot", "logaddexp", "fmod", "remainder", "floor_divide"]:
    TORCH[same] = [f"torch.{same}(x, y, out=out)"]
for same in ["sub", "mul", "div", "minimum", "maximum", "pow"]:
    TORCH[same] = [f"torch.{same}(x, y, out=out)"]
for name, as_ in zip(COMPARISONS, ["eq", "ne", "lt", "le", "gt", "ge"]):
    TORCH[name] = [f"torch.{as_}(x, y, out=ok)"]
