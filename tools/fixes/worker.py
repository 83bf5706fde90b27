"""The far side: runs programs under torch and writes down each backward and each step of an optimizer."""

import contextlib
import io
import json
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

_LOG: list[str] = []


def main() -> None:
    """Run what stands in the input, an answer a line."""
    out, sys.stdout = sys.stdout, sys.stderr
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    _watch()
    for name, path, text in json.load(sys.stdin):
        error = _run(path, text)
        print(json.dumps([name, list(_LOG), error]), file=out, flush=True)


def _run(path: str, text: str) -> str:
    _LOG.clear()
    folder = os.path.dirname(os.path.abspath(path))
    before = list(sys.path), set(sys.modules)
    sys.path.insert(0, folder)
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    namespace = {"__name__": "__main__", "__file__": path}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, path, "exec", dont_inherit=True), namespace)  # noqa: S102  to run it is the point
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        sys.path[:] = before[0]
        for module in set(sys.modules) - before[1]:
            if getattr(sys.modules[module], "__file__", None) and folder in str(sys.modules[module].__file__):
                del sys.modules[module]
    return ""


def _watch() -> None:
    """Write down what every backward starts from, and what every step is made with."""
    backward = torch.Tensor.backward

    def watched_backward(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        _LOG.append(f"backward of {_sum(self)}")
        return backward(self, *args, **kwargs)  # type: ignore[no-untyped-call]

    torch.Tensor.backward = watched_backward  # type: ignore[method-assign]
    register_optimizer_step_pre_hook(_told("gradients", lambda p: p.grad))
    register_optimizer_step_post_hook(_told("parameters", lambda p: p))


def _told(words: str, part: Callable[[torch.Tensor], torch.Tensor | None]) -> Callable[..., None]:
    def tell(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        owned = [p for group in optimizer.param_groups for p in group["params"]]
        _LOG.append(f"{words} {_sums(part(p) for p in owned)}")

    return tell


def _sums(tensors: Iterable[torch.Tensor | None]) -> str:
    return " ".join("none" if tensor is None else _sum(tensor) for tensor in tensors)


def _sum(tensor: torch.Tensor) -> str:
    """Digits that two tensors have in common only when they are equal, as good as surely."""
    flat = tensor.detach().double().flatten()
    weights = torch.arange(1, flat.numel() + 1, dtype=torch.float64).sqrt()
    return f"{(flat * weights).sum().item():.9e}"


if __name__ == "__main__":
    main()
