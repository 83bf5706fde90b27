"""The memory that the language server holds while files are opened and closed, one after another.

    python bench/memory.py [--files 500]

Linux only: what is resident is read from /proc. The goal is no growth beyond the first 50 files, and less than 200 MB.
"""

import argparse
from pathlib import Path

from wire import Client

_FILE = '''\
"""File {n}."""

import torch
import torch.nn.functional as F
from torch import nn


class Model{n}(nn.Module):
    def __init__(self, width={width}):
        super().__init__()
        self.first = nn.Linear(width, 4 * width)
        self.second = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)
        self.last = None

    def forward(self, x, mask=None):
        h = F.gelu(self.first(self.norm(x)))
        if mask is not None:
            h = h * mask
        self.last = h
        return x + self.second(h)


def train{n}(loader, epochs={epochs}):
    model = Model{n}()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = 0.0
    history = []
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss
            history.append(loss.item())
        with torch.no_grad():
            check = model(x).mean()
        print(epoch, total, check.item())
    return model
'''


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--step", type=int, default=50)
    options = parser.parse_args()
    client = Client()
    held: list[float] = [resident(client.process.pid)]
    print(f"{'nothing':>9} open: {held[0]:6.1f} MB")
    for number in range(1, options.files + 1):
        uri = f"file:///w/model_{number}.py"
        text = _FILE.format(n=number, width=64 + number, epochs=number)
        client.open(uri, text)
        client.change(uri, 2, f"{text}\nprint({number})\n")
        client.close(uri)
        if number % options.step == 0:
            held.append(resident(client.process.pid))
            print(f"{number:>9} files: {held[-1]:6.1f} MB")
    client.end()
    print(
        f"growth beyond the first {options.step} files: {held[-1] - held[1]:+.1f} MB; most {max(held):.1f} MB"
    )


def resident(process: int) -> float:
    """The megabytes of a process that are in memory."""
    for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


if __name__ == "__main__":
    main()
