"""The example tensors that recipes name, made from one seed."""

import copy
import io
import operator
import pickle
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional
import torch.utils.checkpoint
import torch.utils.dlpack

MODULES: dict[str, Any] = {
    "torch": torch,
    "F": torch.nn.functional,
    "np": np,
    "io": io,
    "operator": operator,
    "copy": copy,
    "pickle": pickle,
}
NORMAL = {
    # matrices, vectors and a scalar
    "x": (3, 4), "y": (3, 4), "z": (3, 4), "y2": (2, 4), "w": (6, 4), "m": (4, 4), "m2": (4, 4),
    "pairs": (3, 2), "v": (4,), "vb": (4,), "v2": (2,), "v2b": (2,), "v3": (3,), "v3b": (3,), "v5": (5,),
    "s0": (), "row": (1, 4),
    # batches of matrices, and enough rows for the roundabout ways of large inputs
    "b3": (2, 3, 4), "b4": (2, 2, 3, 4), "bm": (2, 4, 4), "rows": (30, 4), "rows2": (40, 4),
    # images and volumes
    "s1": (1, 2, 6), "img": (1, 2, 6, 6), "ch4": (1, 4, 4, 4), "vol": (1, 2, 4, 4, 4), "theta": (1, 2, 3),
    "unfolded": (1, 8, 9), "bl": (5, 4, 4), "wconv": (3, 2, 3, 3), "tbc": (6, 2, 3), "wtbc": (2, 3, 5),
    # sequences and the weights of recurrent cells
    "seq": (3, 1, 4), "h0": (1, 1, 5), "c0": (1, 1, 5), "h5": (3, 5), "c5": (3, 5), "wih5": (5, 4),
    "whh5": (5, 5), "wih15": (15, 4), "whh15": (15, 5), "wih20": (20, 4), "whh20": (20, 5),
}  # fmt: skip
CHANCES = {
    "p": (3, 4), "pos": (3, 4), "pos2": (3, 4), "vp": (4,), "v2p": (2,), "v3p": (3,), "one1": (1,),
    "grid": (1, 4, 4, 2),
}  # fmt: skip
WHOLE: dict[str, Any] = {
    "i0": [0], "i2": [0, 1], "ids1": [0, 1, 2], "ids": [[0, 1], [2, 3]], "offsets": [0, 2], "it0": 1,
    "it1": [1, 2, 3], "it1b": [3, 2, 1], "len1": [3], "len2": [2], "len22": [2, 2], "len5": [5],
    "target": [[1, 2]], "classes": [0, 1, 3], "truth": True,
    "ij": [[0, 1, 2], [0, 1, 2]], "crow": [0, 1, 2, 3], "col": [0, 1, 2],
    "signs3": [1.0, -1.0, 1.0],
}  # fmt: skip


@cache
def fixtures() -> dict[str, Any]:
    """Fixture names and values. A leaf that requires grad stays one; the others are copied as needed."""
    chance = torch.Generator().manual_seed(0)
    made = {n: torch.randn(shape, dtype=torch.float64, generator=chance) for n, shape in NORMAL.items()}
    for name, shape in CHANCES.items():  # between 0.1 and 0.9
        made[name] = torch.rand(shape, dtype=torch.float64, generator=chance) * 0.8 + 0.1
    made |= {name: torch.tensor(values) for name, values in WHOLE.items()}
    eye = torch.eye(3, 4, dtype=torch.float64)
    x, m = made["x"], made["m"]
    return made | {
        "spd": m @ m.T + 4 * torch.eye(4, dtype=torch.float64),
        "sorted4": torch.sort(made["v"]).values,
        "xt": made["m"][:, :3].clone().t(),
        "xf": x.float(),
        "v3f": made["v3p"].float(),
        "xc": torch.complex(x, made["y"]),
        "logp": torch.log_softmax(made["tbc"].reshape(6, 1, 6)[:5, :, :4], -1),
        "mask": made["z"] > 0,
        "mask2": made["y"] > 0,
        "idx34": torch.zeros(3, 4, dtype=torch.int64),
        "zp3": torch.zeros(3, dtype=torch.int32),
        "counts": torch.full((3, 4), 5.0, dtype=torch.float64),
        "signs": torch.ones(3, 4),
        "signs64": torch.ones(3, 4, dtype=torch.float64),
        "sparse": torch.sparse_coo_tensor(torch.tensor([[0, 0, 2], [1, 1, 3]]), made["v3"].clone(), (3, 4)),
        "coalesced": eye.to_sparse().coalesce(),
        "quantized": torch.quantize_per_tensor(torch.ones(3, 4), 0.1, 0, torch.quint8),
        "leaf": x.clone().requires_grad_(),
        "trained": _trained(made["v3"].clone()),
    }


def _trained(values: torch.Tensor) -> torch.Tensor:
    """A leaf that has a gradient already."""
    leaf = values.requires_grad_()
    leaf.grad = torch.ones_like(values)
    return leaf
