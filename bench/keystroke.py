"""How long `analyze` takes on model files such as people edit, as a multiple of `ast.parse` on the same text.

    python bench/keystroke.py [LINES...]      default: 1400 and 4800

That is what an editor waits for after each key. The files are made here, and look like those of model
libraries: configurations, layers with a forward, whole models that are built of them, and a trainer.
"""

import argparse
import ast
import time
from collections.abc import Callable

from gradvet.analysis import analyze
from gradvet.text import Source

_HEAD = '''\
"""A family of models."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

'''

_FAMILY = '''
@dataclass
class Config{n}:
    """The sizes of a model."""

    width: int = {width}
    heads: int = 8
    depth: int = 6
    dropout: float = 0.1
    eps: float = 1e-5


def rotate{n}(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate half of the last dimension."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Norm{n}(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, hidden):
        dtype = hidden.dtype
        hidden = hidden.to(torch.float32)
        variance = hidden.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden * torch.rsqrt(variance + self.eps)).to(dtype)


class Attention{n}(nn.Module):
    def __init__(self, config: Config{n}):
        super().__init__()
        self.heads = config.heads
        self.size = config.width // config.heads
        self.query = nn.Linear(config.width, config.width, bias=False)
        self.key = nn.Linear(config.width, config.width, bias=False)
        self.value = nn.Linear(config.width, config.width, bias=False)
        self.out = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def split(self, x):
        batch, length, _ = x.shape
        return x.view(batch, length, self.heads, self.size).transpose(1, 2)

    def forward(self, hidden, mask=None, cache=None, rotation=None):
        query, key, value = self.split(self.query(hidden)), self.split(self.key(hidden)), self.split(self.value(hidden))
        if rotation is not None:
            cos, sin = rotation
            query, key = rotate{n}(query, cos, sin), rotate{n}(key, cos, sin)
        if cache is not None:
            key = torch.cat([cache[0], key], dim=2)
            value = torch.cat([cache[1], value], dim=2)
        scores = torch.matmul(query, key.transpose(2, 3)) / math.sqrt(self.size)
        if mask is not None:
            scores = scores + mask
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
        weights = self.dropout(weights)
        context = torch.matmul(weights, value).transpose(1, 2).contiguous()
        context = context.view(*context.shape[:2], -1)
        return self.out(context), (key, value)


class FeedForward{n}(nn.Module):
    def __init__(self, config: Config{n}):
        super().__init__()
        self.gate = nn.Linear(config.width, 4 * config.width)
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)

    def forward(self, hidden):
        return self.down(F.silu(self.gate(hidden)) * self.up(hidden))


class Layer{n}(nn.Module):
    def __init__(self, config: Config{n}):
        super().__init__()
        self.attention = Attention{n}(config)
        self.mlp = FeedForward{n}(config)
        self.before = Norm{n}(config.width, config.eps)
        self.after = Norm{n}(config.width, config.eps)

    def forward(self, hidden, mask=None, cache=None, rotation=None):
        residual = hidden
        hidden, cache = self.attention(self.before(hidden), mask, cache, rotation)
        hidden = residual + hidden
        residual = hidden
        hidden = self.mlp(self.after(hidden))
        return residual + hidden, cache


class Model{n}(nn.Module):
    def __init__(self, config: Config{n}, words: int = 32000):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(words, config.width)
        self.layers = nn.ModuleList([Layer{n}(config) for _ in range(config.depth)])
        self.norm = Norm{n}(config.width)
        self.head = nn.Linear(config.width, words, bias=False)
        self.apply(self.start)

    def start(self, module):
        if isinstance(module, nn.Linear):
            module.weight.data.normal_(mean=0.0, std=0.02)
            if module.bias is not None:
                module.bias.data.zero_()

    def rotation(self, length, device):
        size = self.config.width // self.config.heads
        with torch.no_grad():
            angles = 1.0 / (10000 ** (torch.arange(0, size, 2, device=device).float() / size))
            steps = torch.arange(length, device=device).float()
            table = torch.outer(steps, angles)
            table = torch.cat((table, table), dim=-1)
        return table.cos(), table.sin()

    def forward(self, ids, mask=None, caches=None, labels=None):
        hidden = self.embed(ids)
        rotation = self.rotation(ids.shape[1], ids.device)
        kept = []
        for at, layer in enumerate(self.layers):
            hidden, cache = layer(hidden, mask, None if caches is None else caches[at], rotation)
            kept.append(cache)
        logits = self.head(self.norm(hidden))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1))
        return {{"loss": loss, "logits": logits, "caches": kept}}

    @torch.no_grad()
    def generate(self, ids, steps=20):
        caches = None
        for _ in range(steps):
            out = self.forward(ids[:, -1:] if caches else ids, caches=caches)
            caches = out["caches"]
            ids = torch.cat([ids, out["logits"][:, -1].argmax(-1, keepdim=True)], dim=1)
        return ids


def train{n}(model: Model{n}, loader, epochs=3, clip=1.0):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for batch in loader:
            loss = model(batch["ids"], labels=batch["labels"])["loss"]
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            total += loss.item()
        print(f"{{epoch}}: {{total / len(loader):.3f}}")
'''


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lines", nargs="*", type=int, default=[1400, 4800])
    parser.add_argument("--rounds", type=int, default=5, help="take the best of so many")
    options = parser.parse_args()
    analyze(Source("warm-up.py", "import torch\nx = torch.ones(3) * 2\n"))
    for lines in options.lines:
        text = model_file(lines)
        parsing = best(options.rounds, lambda text=text: ast.parse(text))
        source = Source("model.py", text)
        analysing = best(options.rounds, lambda source=source: analyze(source))
        analysis = analyze(source)
        print(
            f"{text.count(chr(10))} lines: {analysing * 1000:.0f} ms, {analysing / parsing:.1f} times ast.parse "
            f"({parsing * 1000:.1f} ms); {len(analysis.facts.states)} states"
            f"{'; '.join(('', *analysis.facts.limits))}"
        )


def model_file(lines: int) -> str:
    """A file of models of at least so many lines."""
    text, number = _HEAD, 0
    while text.count("\n") < lines:
        text += _FAMILY.format(n=number, width=256 + 64 * number)
        number += 1
    return text


def best(rounds: int, work: Callable[[], object]) -> float:
    """The seconds of processor time of the quickest of several rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
