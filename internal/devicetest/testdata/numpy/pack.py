"""Packs NumPy's tables of elementwise functions into tables.txt.bz2:

    pip download --no-deps numpy==2.4.6
    python3 pack.py numpy-2.4.6-*.whl

A line is the name of a function, an operand and the result, the bits of
float32 in hexadecimal. Rows of other types are left out.
"""

import bz2
import sys
import zipfile

PREFIX = "numpy/_core/tests/data/umath-validation-set-"


def main(wheel):
    lines = []
    with zipfile.ZipFile(wheel) as z:
        for file in sorted(z.namelist()):
            if not file.startswith(PREFIX) or not file.endswith(".csv"):
                continue
            for row in z.read(file).decode().splitlines():
                if row.startswith("np.float32,"):
                    _, x, y, _ = row.split(",")
                    lines.append("%s %08x %08x\n" % (file[len(PREFIX) : -len(".csv")], int(x, 16), int(y, 16)))
        licence = [n for n in z.namelist() if n.endswith("dist-info/licenses/LICENSE.txt")]
        text = z.read(licence[0]).decode()
    with open("LICENSE.numpy", "w") as f:
        f.write(text[: text.index("\n----\n")])  # what follows is of other libraries in the wheel
    with open("tables.txt.bz2", "wb") as f:
        f.write(bz2.compress("".join(lines).encode()))
    print(len(lines), "rows")


main(sys.argv[1])
