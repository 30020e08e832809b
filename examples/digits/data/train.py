"""Trains the classifier of this example and writes test.bin and weights.bin.

    python3 train.py

Needs numpy, scikit-learn (for the images) and torch. See README.md for the
layout of both files.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits

TRAIN = 1400  # the images stand in the order in which people wrote them

digits = load_digits()
x = torch.tensor(digits.data / 16, dtype=torch.float32)
y = torch.tensor(digits.target)
x, y, tx, ty = x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:]

torch.manual_seed(1)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))


def augment(batch):
    """Moves, turns and scales each image a little, as another hand would."""
    n = len(batch)
    angle = (torch.rand(n) - 0.5) * 0.5
    scale = 1 + (torch.rand(n) - 0.5) * 0.3
    shift = (torch.rand(n, 2) - 0.5) * 0.35
    c, s = torch.cos(angle) * scale, torch.sin(angle) * scale
    theta = torch.stack([torch.stack([c, -s, shift[:, 0]], 1), torch.stack([s, c, shift[:, 1]], 1)], 1)
    grid = torch.nn.functional.affine_grid(theta, (n, 1, 8, 8), align_corners=False)
    return torch.nn.functional.grid_sample(batch.view(n, 1, 8, 8), grid, align_corners=False).view(n, 64)


EPOCHS = 300
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS)
for epoch in range(EPOCHS):
    for batch in torch.randperm(TRAIN).split(64):
        loss = torch.nn.functional.cross_entropy(net(augment(x[batch])), y[batch])
        opt.zero_grad()
        loss.backward()
        opt.step()
    schedule.step()

with torch.no_grad():
    right = int((net(tx).argmax(1) == ty).sum())
    print(f"{right} of {len(ty)} right ({right / len(ty):.1%})")
    margin = net(tx).topk(2).values
    print(f"smallest distance between the two largest logits: {(margin[:, 0] - margin[:, 1]).min():.2g}")

with open("weights.bin", "wb") as f:
    for layer in (net[0], net[2]):
        # torch keeps (out, in); a row-major product X · W wants (in, out).
        f.write(layer.weight.detach().numpy().T.astype("<f4").tobytes())
        f.write(layer.bias.detach().numpy().astype("<f4").tobytes())

records = np.concatenate([digits.data[TRAIN:], digits.target[TRAIN:, None]], axis=1)
records.astype(np.uint8).tofile("test.bin")
