#!/usr/bin/env python3
"""python_equality_test.py RUN_RANKS PROGRAM: the runtime trains what Python trains.

The same weights and data, from formulas; SGD with momentum, two epochs, both precisions.
  - Batches that divide: Python's DistributedDataParallel on the same rows of each rank; losses of each rank, parameters and
    running statistics.
  - Batches that don't, down to one row for two ranks: plain Python in one process on whole batches (DDP would average ranks
    of different sizes equally, which is another training).

How far results may be apart: both sides do the same operations on the same rows, but sums over ranks, and over rows where
one side has the whole batch, may be taken in another order. A sum of n numbers is off by at most n units of roundoff u; that
is n = 8 rows here. It enters the parameters at each of T = 6 steps, and momentum 0.9 repeats it 1/(1 - 0.9) = 10 times:
8 * 6 * 10 u, about 512 u of the largest number. An error in weights (a rank's rows counted wrong, by even one row of eight)
is 1e-2.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn

EPOCHS, CLASSES = 2, 4
UNITS = 512
TYPES = {"float32": torch.float32, "float64": torch.float64}
EVEN = {  # ranks: cases
    2: ["%s:%s:24:8" % (m, t) for m in ("perceptron", "convolution", "encoder") for t in TYPES],
    3: ["%s:%s:18:6" % (m, t) for m in ("perceptron", "convolution") for t in TYPES],
}
# Last batches of 7 rows and of 1.
UNEVEN = {
    2: ["%s:%s:%d:8" % (m, t, rows) for m in ("perceptron", "encoder") for t in TYPES for rows in (23, 17)],
    3: ["perceptron:%s:%d:8" % (t, rows) for t in TYPES for rows in (23, 17)],
}


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(6, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.head(self.layer(self.input(x).transpose(0, 1)).mean(0))


def wave(numbers, step, start):
    return torch.sin(torch.arange(numbers, dtype=torch.float64) * step + start)


class Case:
    def __init__(self, name):
        model, dtype, rows, batch = name.split(":")
        self.name, self.dtype, self.batch, rows = name, TYPES[dtype], int(batch), int(rows)
        if model == "perceptron":
            self.model = nn.Sequential(
                nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, CLASSES)
            )
            row = [6]
        elif model == "convolution":
            self.model = nn.Sequential(
                nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 4 * 4, CLASSES)
            )
            row = [1, 6, 6]
        else:
            self.model = nn.Sequential(Encoder())
            row = [5, 6]
        self.model.to(self.dtype)
        with torch.no_grad():
            for key, parameter in self.model.named_parameters():
                start = float(sum(key.encode()))
                parameter.copy_(wave(parameter.numel(), 0.7, start).reshape(parameter.shape) * 0.3)
        numbers = rows * int(numpy.prod(row))
        self.data = wave(numbers, 0.31, 0).reshape([rows] + row).to(self.dtype)
        self.target = torch.arange(rows) % CLASSES

    def state(self):
        state = {"parameter " + k: v.detach().clone() for k, v in self.model.named_parameters()}
        state.update({"buffer " + k: v.clone() for k, v in self.model.named_buffers()})
        return state

    def train(self, rank=0, ranks=1):
        """With other ranks by DDP, on contiguous slices of batches; losses and weights."""
        model = nn.parallel.DistributedDataParallel(self.model) if ranks > 1 else self.model
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        losses = []
        for _ in range(EPOCHS):
            for data, target in zip(self.data.split(self.batch), self.target.split(self.batch)):
                mine = len(data) // ranks
                data, target = (x[rank * mine : (rank + 1) * mine] for x in (data, target))
                optimizer.zero_grad()
                loss = F.cross_entropy(model(data), target)
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        return dict(self.state(), losses=torch.stack(losses))


def train_ddp(folder, cases):
    torch.distributed.init_process_group("gloo")
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    for name in cases:
        torch.save(Case(name).train(rank, ranks), os.path.join(folder, "%s.rank%d.pt" % (name, rank)))
    torch.distributed.destroy_process_group()


def read_safetensors(path):
    types = {"F64": "<f8", "F32": "<f4", "I64": "<i8"}
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    header.pop("__metadata__", None)
    return {
        name: torch.from_numpy(
            numpy.frombuffer(data[slice(*of["data_offsets"])], types[of["dtype"]]).reshape(of["shape"]).copy()
        )
        for name, of in header.items()
    }


class Comparison:
    def __init__(self):
        self.failures = 0

    def check(self, holds, text):
        if not holds:
            self.failures += 1
            print("FAIL:", text)

    def distance(self, got, want):
        """Of the largest number, which is at least 1."""
        return ((got.double() - want.double()).abs().max() / max(1.0, want.double().abs().max().item())).item()

    def case(self, name, ours, theirs, losses):
        """`ours`: of each rank; `theirs`: the rank's or the one process's; `losses`: which of ours are compared."""
        tolerance = UNITS * torch.finfo(TYPES[name.split(":")[1]]).eps / 2
        worst = 0.0
        for rank, got in enumerate(ours):
            want = theirs[min(rank, len(theirs) - 1)]
            weights = {k for k in want if k.startswith(("parameter", "buffer"))}
            # Statistics are the main process's; DDP sends them before a forward pass, and the last are each rank's own.
            weights = {k for k in weights if rank == 0 or k.startswith("parameter")}
            self.check(
                {k for k in got if k.startswith("parameter")} == {k for k in want if k.startswith("parameter")},
                "%s: other parameters: %s, %s" % (name, sorted(got), sorted(want)),
            )
            for key in sorted(weights & set(got)) + ["losses"]:
                a, b = got[losses if key == "losses" else key], want[key]
                # In C++, Module::to(type) converts counters as well.
                alike = a.shape == b.shape and (a.dtype == b.dtype or key.endswith("num_batches_tracked"))
                self.check(alike, "%s rank %d: %s is of another shape or type" % (name, rank, key))
                d = self.distance(a, b)
                self.check(d <= tolerance, "%s rank %d: %s is off by %.3g" % (name, rank, key, d))
                worst = max(worst, d)
            for key in (k for k in got if k.startswith("parameter")):
                self.check(torch.equal(got[key], ours[0][key]), "%s: %s isn't the same on all ranks" % (name, key))
        start = Case(name).state()
        moved = max(self.distance(start[k], theirs[0][k]) for k in start if k.startswith("parameter"))
        self.check(moved > 1000 * tolerance, "%s: nothing was trained" % name)
        print("%-26s %d ranks: off by %.2g, of %.2g allowed" % (name, len(ours), worst, tolerance))


def main():
    if sys.argv[1] == "--ddp":
        train_ddp(sys.argv[2], sys.argv[3:])
        return 0
    run_ranks, program = sys.argv[1:]
    comparison = Comparison()
    for ranks in EVEN:
        with tempfile.TemporaryDirectory() as folder:
            run = [run_ranks, str(ranks)]
            subprocess.run(run + [program, folder] + EVEN[ranks] + UNEVEN[ranks], check=True)
            subprocess.run(run + [sys.executable, os.path.abspath(__file__), "--ddp", folder] + EVEN[ranks], check=True)
            for name in EVEN[ranks] + UNEVEN[ranks]:
                path = os.path.join(folder, name + ".rank%d.")
                ours = [read_safetensors(path % r + "safetensors") for r in range(ranks)]
                if name in EVEN[ranks]:
                    comparison.case(name, ours, [torch.load(path % r + "pt") for r in range(ranks)], "losses")
                else:
                    comparison.case(name, ours, [Case(name).train()], "means")
    return 1 if comparison.failures else 0


if __name__ == "__main__":
    sys.exit(main())
