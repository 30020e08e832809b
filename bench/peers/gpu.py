"""Serves the times that PyTorch takes on a GPU.

A request is one JSON object a line on standard input:

    {"do": "torch.softmax(x[0], 1)", "type": "float32", "shapes": [[4096, 4096]]}

and its answer one on standard output: {"us": 51.2}, the median of the device's own
clock over many runs, or {"error": "..."}. Operands are random numbers. matmul of
float32 keeps all bits, as PyTorch does unless told otherwise; the type tf32 is
float32 with PyTorch told so.
"""

import json
import sys

import torch
import torch.nn.functional as F


def measure(request):
    tf32 = request["type"] == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    kind = torch.float32 if tf32 else getattr(torch, request["type"])
    x = [torch.randn(s, device="cuda", dtype=kind) for s in request["shapes"]]
    call = eval("lambda x: " + request["do"], {"torch": torch, "F": F})
    with torch.inference_mode():
        for _ in range(3):
            call(x)
        torch.cuda.synchronize()
        taken = []
        spent = 0.0
        while len(taken) < 10 or (len(taken) < 100 and spent < 100):
            start, end = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            call(x)
            end.record()
            end.synchronize()
            taken.append(start.elapsed_time(end))
            spent += taken[-1]
    return {"us": sorted(taken)[len(taken) // 2] * 1e3}


print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda}), flush=True)
for line in sys.stdin:
    try:
        answer = measure(json.loads(line))
    except Exception as e:  # the one who asks prints it
        answer = {"error": str(e)[:300]}
    torch.cuda.empty_cache()
    print(json.dumps(answer), flush=True)
