"""The kernels that other devices put in place of those measured here, and the nodes that they end in.

There is no such device here. Their kernels can be asked all the same: what autograd records does not
depend on data, and tensors of the device `meta` have none.
"""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import torch

from tools.measure.fold import NEVER, Record

_NORMS = """batch_norm BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d"""
_LAYERS = "gru rnn_tanh rnn_relu lstm GRU RNN LSTM"
_ATTENTION = "t(1, 2, 8, 16), t(1, 2, 8, 16), t(1, 2, 8, 16)"
# A kernel, called with `t(*shape)` for a tensor that requires grad and `b(*shape)` for one that does not,
# and the public names (in any namespace) that call it on some device.
KERNELS: Mapping[str, str] = {
    "native_dropout(t(2, 4), 0.5, True)": "dropout Dropout",
    "cudnn_batch_norm(t(1, 2, 6), t(2), t(2), b(2), b(2), True, 0.1, 1e-5)": _NORMS,
    "miopen_batch_norm(t(1, 2, 6), t(2), t(2), b(2), b(2), True, 0.1, 1e-5)": _NORMS,
    "_cudnn_rnn(t(3, 1, 4), [t(20, 4), t(20, 5)], 2, None, t(1, 1, 5), t(1, 1, 5), 2, 5, 0, 1, False, 0.0, "
    "True, False, [], None)": _LAYERS,
    "miopen_rnn(t(3, 1, 4), [t(20, 4), t(20, 5)], 2, t(1, 1, 5), t(1, 1, 5), 2, 5, 1, False, 0.0, True, "
    "False, [], None)": _LAYERS,
    "_lstm_mps(t(3, 1, 4), [t(1, 1, 5), t(1, 1, 5)], [t(20, 4), t(20, 5)], False, 1, 0.0, False, False, "
    "False)": "lstm LSTM",
    "_thnn_fused_lstm_cell(t(2, 20), t(2, 20), t(2, 5))": "lstm_cell LSTMCell",
    "_thnn_fused_gru_cell(t(2, 15), t(2, 15), t(2, 5))": "gru_cell GRUCell",
    f"_scaled_dot_product_flash_attention({_ATTENTION})": "scaled_dot_product_attention",
    f"_scaled_dot_product_efficient_attention({_ATTENTION}, None, True)": "scaled_dot_product_attention",
    f"_scaled_dot_product_cudnn_attention({_ATTENTION}, None, True)": "scaled_dot_product_attention",
    "cudnn_grid_sampler(t(1, 2, 6, 6), t(1, 4, 4, 2))": "grid_sample grid_sampler",
    "cudnn_affine_grid_generator(t(1, 2, 3), 1, 2, 4, 4)": "affine_grid affine_grid_generator",
    "_cudnn_ctc_loss(t(5, 1, 4), i(1, 2), [5], [2], 0, True, False)": "ctc_loss CTCLoss",
    "miopen_ctc_loss(t(5, 1, 4), i(1, 2), [5], [2], 0, True, False)": "ctc_loss CTCLoss",
}
# Where another device has a kernel that cannot be asked here: `_fused_rms_norm` is taken apart on `meta`.
UNBOUNDED = frozenset({"rms_norm", "RMSNorm"})
# What has no kernel of its own for `meta` gets one that gives so many tensors.
STAND_INS = {
    "_lstm_mps": 6,
    "_thnn_fused_lstm_cell": 3,
    "_thnn_fused_gru_cell": 2,
    "cudnn_grid_sampler": 1,
    "cudnn_affine_grid_generator": 1,
    "_cudnn_ctc_loss": 2,
    "miopen_ctc_loss": 2,
}


def widened(name: str, record: Record) -> Record:
    """A record whose names of `grad_fn` hold on every device; without any where that is not known."""
    base = name.rpartition(".")[2]
    more = {node(kernel) for kernel, names in KERNELS.items() if base in names.split()}
    if not more and base not in UNBOUNDED:
        return record
    return record | {"out": [_wider(out, None if base in UNBOUNDED else more) for out in record["out"]]}


def _wider(out: Record, more: set[str] | None) -> Record:
    """An output with more names of `grad_fn`, or where nobody knows which without any."""
    if out.get("grad") == NEVER or "fn" not in out:
        return out
    return out | {"fn": sorted({*out["fn"], *more})} if more else {k: v for k, v in out.items() if k != "fn"}


@cache
def node(kernel: str) -> str:
    """The node that a kernel ends in."""
    name, _, arguments = kernel.partition("(")
    _stand_in(name)
    scope = {"kernel": getattr(torch.ops.aten, name), "t": _trained, "b": _plain, "i": _whole}
    result: Any = eval(f"kernel({arguments}", scope)  # noqa: S307
    return type((result[0] if isinstance(result, tuple) else result).grad_fn).__name__


def _stand_in(name: str) -> None:
    count = STAND_INS.get(name)
    if count is not None and name not in _libraries:
        _libraries[name] = torch.library.Library("aten", "IMPL", "Meta")  # type: ignore[no-untyped-call]
        _libraries[name].impl(name, partial(_several, count))  # type: ignore[no-untyped-call]


_libraries: dict[str, torch.library.Library] = {}  # what is registered lasts as long as its library


def _several(count: int, *_: Any, **__: Any) -> Any:
    made = tuple(_plain(2, 4) for _ in range(count))
    return made if count > 1 else made[0]


def _trained(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, device="meta", requires_grad=True)


def _plain(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, device="meta")


def _whole(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, device="meta", dtype=torch.int32)
