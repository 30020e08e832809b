"""Times of PyTorch on a GPU for the operations that rayo bench measures over arrays
that stay there, in microseconds: the median of 30 times ten calls between two events."""

import statistics

import torch

torch.manual_seed(0)
x = torch.randn(1_000_000, device="cuda")
m = x.view(1000, 1000)
ids = torch.randint(0, 1_000_000, (1_000_000,), device="cuda")
table, rows = torch.randn(10000, 256, device="cuda"), torch.randint(0, 10000, (4096,), device="cuda")
a = torch.randn(256, 256, device="cuda") + 256 * torch.eye(256, device="cuda")
spd, b = a @ a.T, torch.randn(256, 16, device="cuda")

CASES = {
    "sum": lambda: x.sum(),
    "prod": lambda: x.prod(),
    "max": lambda: x.max(),
    "argmax": lambda: x.argmax(),
    "any": lambda: x.any(),
    "count_nonzero": lambda: torch.count_nonzero(x),
    "logsumexp": lambda: torch.logsumexp(x, 0),
    "cumsum": lambda: m.cumsum(1),
    "cumprod": lambda: m.cumprod(1),
    "cummax": lambda: m.cummax(1),
    "sort": lambda: torch.sort(x, stable=True),
    "topk": lambda: m.topk(10),
    "gather": lambda: table.index_select(0, rows),
    "scatter": lambda: x.index_add(0, ids, x),
    "permute": lambda: x.view(100, 100, 100).permute(2, 0, 1).contiguous(),
    "flip": lambda: m.flip(1),
    "concat": lambda: torch.cat([m, m], 1),
    "erfinv": lambda: torch.erfinv(m),
    "cast": lambda: x.half(),
    "cholesky": lambda: torch.linalg.cholesky(spd),
    "solve": lambda: torch.linalg.solve(a, b),
}


def microseconds(f):
    for _ in range(5):
        f()
    torch.cuda.synchronize()
    times = []
    for _ in range(30):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(10):
            f()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 100)
    return statistics.median(times)


for name, f in CASES.items():
    print(f"{name:16}{microseconds(f):9.1f}", flush=True)
