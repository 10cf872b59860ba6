#!/usr/bin/env python3
"""One process of `scripts/bench runtime`: the same models, data and loop as accelerate_training_bench's, in Python.

  python_training.py local|ddp|accelerate MODEL

It reads and writes what that program does (runtime/bench/training.cpp says what).
"""

import os
import sys
import time

import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

TOKENS, CLASSES, BATCHES = 1000, 10, 100


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 128)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(128, 4, dim_feedforward=256, dropout=0.1), 2, enable_nested_tensor=False
        )
        self.head = nn.Linear(128, CLASSES)

    def forward(self, x):
        return self.head(self.encoder(self.embedding(x.transpose(0, 1))).mean(0))


def perceptron(widths):
    layers = []
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        layers.append(nn.Linear(a, b))
        if i + 2 < len(widths):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def workload(name):
    """The model, its global batch, the shape of a row."""
    if name == "mlp-small":
        return perceptron([64, 128, 128, 64, CLASSES]), 64, [64]
    if name == "mlp-deep":
        return perceptron([64] * 42 + [CLASSES]), 32, [64]
    if name == "cnn":
        model = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 64),
            nn.ReLU(),
            nn.Linear(64, CLASSES),
        )
        return model, 32, [1, 28, 28]
    if name == "mlp-5m":
        return perceptron([1024] * 6 + [CLASSES]), 32, [1024]
    if name == "transformer":
        return Encoder(), 16, [32]
    raise SystemExit('python_training.py: there is no model "%s"' % name)


class Meter:
    def __init__(self, parameters):
        self.parameters = parameters
        print("ready", flush=True)
        self.begin()

    def begin(self):
        self.left = int(sys.stdin.readline() or 0)
        self.wall, self.cpu = time.monotonic_ns(), time.process_time_ns()

    def stepped(self, loss):
        """False after the last step."""
        self.left -= 1
        if self.left > 0:
            return True
        cpu, wall = time.process_time_ns() - self.cpu, time.monotonic_ns() - self.wall
        total = sum(x.detach().sum(dtype=torch.float64).item() for x in self.parameters)
        print("%d %d %.17g %.17g" % (cpu, wall, loss.item(), total), flush=True)
        self.begin()
        return self.left > 0


def train(model, optimizer, loader, backward, set_epoch=lambda epoch: None):
    meter = Meter(list(model.parameters()))
    epoch = 0
    while meter.left > 0:
        set_epoch(epoch)
        epoch += 1
        for data, target in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data), target)
            backward(loss)
            optimizer.step()
            if not meter.stepped(loss):
                return


def main():
    variant, name = sys.argv[1:]
    torch.manual_seed(1)
    model, batch, row = workload(name)
    rows = BATCHES * batch
    shape = [rows] + row
    data = torch.randint(TOKENS, shape) if name == "transformer" else torch.randn(shape)
    data = TensorDataset(data, torch.randint(CLASSES, [rows]))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    if variant == "local":
        train(model, optimizer, DataLoader(data, batch, shuffle=True), lambda loss: loss.backward())
    elif variant == "ddp":
        torch.distributed.init_process_group("gloo")
        sampler = DistributedSampler(data)
        loader = DataLoader(data, batch // torch.distributed.get_world_size(), sampler=sampler)
        model = nn.parallel.DistributedDataParallel(model)
        train(model, optimizer, loader, lambda loss: loss.backward(), sampler.set_epoch)
        torch.distributed.destroy_process_group()
    elif variant == "accelerate":
        import accelerate

        accelerator = accelerate.Accelerator(cpu=True)
        loader = DataLoader(data, batch // int(os.environ["WORLD_SIZE"]), shuffle=True)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        train(model, optimizer, loader, accelerator.backward)
        accelerator.end_training()
    else:
        raise SystemExit('python_training.py: there is no variant "%s"' % variant)


if __name__ == "__main__":
    main()
