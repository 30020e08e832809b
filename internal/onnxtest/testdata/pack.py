"""Packs ONNX's node tests into node.tar.bz2:

    pip download --no-deps onnx==1.22.0
    python3 pack.py onnx-1.22.0-*.whl

Later wheels hold no node tests as files. What is taken: cases of one node,
whose operands and results are of types that rayo has or takes at the border,
without the operators of OTHER and without the largest cases.
"""

import bz2
import io
import sys
import tarfile
import zipfile

PREFIX = "onnx/backend/test/data/node/"
LARGEST = 100_000  # bytes of a case

# ONNX's numbers of element types: f32 u8 i8 i32 i64 bool f16 u32 bf16.
TYPES = {1, 2, 3, 6, 7, 9, 10, 12, 16}

# Operators that compute no array from arrays, or that are not arithmetic:
# control flow, sequences, texts, pictures, shapes, training steps, random
# numbers of no stated generator, and what only models of 2017 have.
OTHER = set(
    """Bernoulli Constant DeformConv If ImageDecoder Loop MelWeightMatrix OptionalGetElement OptionalHasElement
    Scan SequenceInsert SequenceMap Shape Size SplitToSequence TfIdfVectorizer Upsample""".split()
)


def varint(b, i):
    value = shift = 0
    while True:
        value |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return value, i


def fields(b):
    """The fields of a message in protobuf's wire format: number, value."""
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        if key & 7 == 0:
            value, i = varint(b, i)
        else:
            n = {1: 8, 5: 4}.get(key & 7)
            if n is None:
                n, i = varint(b, i)
            value, i = b[i : i + n], i + n
        yield key >> 3, value


def only(b, number):
    return [v for n, v in fields(b) if n == number]


def node(model):
    """The operator of a model of one node, or None."""
    nodes = only(only(model, 7)[0], 1)
    if len(nodes) != 1 or any(only(nodes[0], 7)):  # of a domain of its own
        return None
    return only(nodes[0], 4)[0].decode()


def tensors(model):
    """Whether all operands and results of a model are tensors."""
    graph = only(model, 7)[0]
    return all(only(only(v, 2)[0], 1) for v in only(graph, 11) + only(graph, 12))


def fits(case):
    op = node(case["model.onnx"])
    if op is None or op in OTHER or sum(map(len, case.values())) > LARGEST:
        return False
    return tensors(case["model.onnx"]) and all(set(only(v, 2)) <= TYPES for n, v in case.items() if n.endswith(".pb"))


def main(wheel):
    cases = {}
    with zipfile.ZipFile(wheel) as z:
        for name in sorted(z.namelist()):
            if name.startswith(PREFIX) and not name.endswith("/"):
                case, _, file = name[len(PREFIX) :].partition("/")
                assert "test_data_set_1" not in file, name
                cases.setdefault(case, {})[file.removeprefix("test_data_set_0/")] = z.read(name)
        licence = [n for n in z.namelist() if n.endswith("licenses/LICENSE")]
        with open("LICENSE.onnx", "wb") as f:
            f.write(z.read(licence[0]))
    cases = {n: c for n, c in cases.items() if fits(c)}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(cases, key=lambda n: (node(cases[n]["model.onnx"]), n)):
            for file, data in sorted(cases[name].items()):
                info = tarfile.TarInfo(name.removeprefix("test_") + "/" + file)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    with open("node.tar.bz2", "wb") as f:
        f.write(bz2.compress(raw.getvalue()))
    print(len(cases), "cases,", len(raw.getvalue()), "bytes")


main(sys.argv[1])
