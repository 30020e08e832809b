"""Writes random.json: random numbers of jax.random.

    python3 gen_random.py > random.json

Needs jax, whose default (jax_threefry_partitionable) must be on. Uniforms and
normals are written as the bits of their float32 values.
"""

import json

import jax
import numpy as np

assert jax.config.jax_threefry_partitionable


def words(x):
    return [int(v) for v in np.asarray(x).view(np.uint32).ravel()]


def case(seed, shape):
    key = jax.random.key(seed, impl="threefry2x32")
    data = lambda k: words(jax.random.key_data(k))
    return {
        "seed": seed,
        "shape": list(shape),
        "key": data(key),
        "bits": words(jax.random.bits(key, shape, "uint32")),
        "uniform": words(jax.random.uniform(key, shape, "float32")),
        "normal": words(jax.random.normal(key, shape, "float32")),
        "bernoulli": [int(v) for v in np.asarray(jax.random.bernoulli(key, 0.3, shape)).ravel()],
        "split": data(jax.random.split(key, 3)),
        "fold_in": [data(jax.random.fold_in(key, n)) for n in (0, 1, 12345, 0xFFFFFFFF)],
    }


cases = [case(0, (7,)), case(1, (3, 5)), case(42, (2, 3, 4)), case(0x7FFFFFFF, ()), case(-1, (6,)), case(987654321, (65,))]
print(json.dumps({"jax": jax.__version__, "cases": cases}))
