"""A registry of models, settings in a dict with attributes, an enumeration, an average of weights."""

import collections
import functools
import inspect
import logging
import math
import weakref
from contextlib import ExitStack, nullcontext
from enum import Enum
from typing import Any, Callable, Protocol

import torch
import torch.nn.functional as F
from torch import nn, optim

log = logging.getLogger("train")
MODELS: dict[str, Callable[..., nn.Module]] = {}


def register(name):
    def deco(cls):
        MODELS[name] = cls
        return cls

    return deco


class Mode(Enum):
    TRAIN = "train"
    EVAL = "eval"


class Scheduler(Protocol):
    def step(self) -> None: ...


class AttrDict(dict):
    def __getattr__(self, key):
        try:
            return self[key]
        except KeyError:
            raise AttributeError(key)

    def __setattr__(self, key, value):
        self[key] = value


@register("siamese")
class Siamese(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.trunk = nn.Sequential(nn.Linear(cfg.dim, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.out))
        self.scale = nn.Parameter(torch.tensor(10.0))

    def embed(self, x):
        return F.normalize(self.trunk(x), dim=-1)

    def forward(self, a, b):
        ea, eb = self.embed(a), self.embed(b)
        return (ea * eb).sum(-1) * self.scale

    def frozen(self):
        for p in self.trunk[0].parameters():
            p.requires_grad_(False)
        return self


@register("mlp")
class Mlp(Siamese):
    def embed(self, x):
        return self.trunk(x)


class ModelEMA:
    def __init__(self, model, decay=0.99, updates=0):
        import copy

        self.ema = copy.deepcopy(model).eval()
        self.updates = updates
        self.decay = lambda x: decay * (1 - math.exp(-x / 2000))
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            self.updates += 1
            d = self.decay(self.updates)
            msd = model.state_dict()
            for k, v in self.ema.state_dict().items():
                if v.dtype.is_floating_point:
                    v *= d
                    v += (1.0 - d) * msd[k].detach()


class Meter:
    def __init__(self):
        self.data = collections.defaultdict(list)

    def add(self, **kw):
        for k, v in kw.items():
            if torch.is_tensor(v):
                v = v.detach().item()
            self.data[k].append(v)

    def mean(self):
        return {k: sum(v) / len(v) for k, v in self.data.items()}


def build(cfg):
    cls = MODELS[cfg.name]
    return cls(cfg)


def retry(n):
    def deco(fn):
        @functools.wraps(fn)
        def inner(*a, **k):
            for i in range(n):
                try:
                    return fn(*a, **k)
                except RuntimeError as err:
                    log.warning("retry %s", err)
            return None

        return inner

    return deco


@retry(2)
def step(model, batch, opt, mode=Mode.TRAIN):
    a, b, y = batch
    ctx = nullcontext() if mode is Mode.TRAIN else torch.no_grad()
    with ctx:
        logits = model(a, b)
        loss = F.binary_cross_entropy_with_logits(logits, y)
    if mode is Mode.TRAIN:
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss, logits


def data(n, cfg):
    for _ in range(n):
        a = torch.randn(4, cfg.dim)
        yield a, a + 0.1 * torch.randn_like(a), torch.ones(4)


def main():
    cfg = AttrDict(name="siamese", dim=6, hidden=8, out=4, lr=0.05, steps=3)
    model = build(cfg).frozen()
    params = [p for p in model.parameters() if p.requires_grad]
    opt = optim.SGD(params, lr=cfg.lr, momentum=0.9, nesterov=True)
    sched = optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=cfg.steps)
    ema = ModelEMA(model)
    meter = Meter()
    for i, batch in enumerate(data(cfg.steps, cfg)):
        loss, logits = step(model, batch, opt)
        sched.step()
        ema.update(model)
        meter.add(loss=loss, acc=(logits > 0).float().mean(), lr=opt.param_groups[0]["lr"])
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        a, b, y = next(data(1, cfg))
        ref = ema.ema(a, b)
        prob = ref.sigmoid()
    other = build(AttrDict(cfg, name="mlp"))
    missing = other.load_state_dict(model.state_dict(), strict=False)
    val, out = step(other, (a, b, y), opt, mode=Mode.EVAL)
    print(meter.mean(), prob.mean().item(), val.item(), out.requires_grad, inspect.isclass(Siamese))


if __name__ == "__main__":
    main()
