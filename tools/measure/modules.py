"""The modules section: what calling an instance of an `nn` class does, in training and in eval mode."""

import inspect
import itertools
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import torch
from torch import nn
from torch.testing._internal.common_modules import ModuleInfo, module_db

from tools.measure.copies import Case
from tools.measure.devices import widened
from tools.measure.execute import head
from tools.measure.fixtures import MODULES, fixtures
from tools.measure.fold import Record, answer, fold
from tools.measure.module_recipes import RECIPES
from tools.measure.observe import observe
from tools.measure.seen import Seen
from tools.measure.signature import given

OPTIONS = ("affine", "elementwise_affine")
MOST, DRAWN = 8, 40  # calls that are looked at closely, and calls that are drawn from torch's database


@cache
def known() -> tuple[str, ...]:
    """Every public `nn` class that there is an instance for."""
    return tuple(sorted({_name(info) for info in module_db} & set(public()) | set(RECIPES)))


def public() -> list[str]:
    """Every public `nn` class."""
    found = (n for n in dir(nn) if inspect.isclass(getattr(nn, n)) and issubclass(getattr(nn, n), nn.Module))
    return [f"torch.nn.{n}" for n in sorted(found)]


def measure(name: str) -> tuple[Record | None, list[Seen], list[str]]:
    """The record of a class, the calls behind it, and what went wrong."""
    errors: list[str] = []
    seen: dict[bool, list[Seen]] = {True: [], False: []}
    option, usual = _option(name)
    weights = []
    for training in (True, False):
        for module, case, brief in _cases(name, training=training):
            try:
                seen[training].append(observe(case, brief=brief))
                if getattr(module, option, None) is usual:
                    weights.append(any(True for _ in module.parameters()))
            except Exception as error:
                errors.append(head(error))
        if not seen[training]:
            return None, [], errors
    train, evaluated = (widened(name, fold(seen[training])) for training in (True, False))
    record: Record = {"init": _constructor(name), "train": train}
    if any(weights):
        record["weights"] = answer(weights)
    if option:
        record["option"] = option
    differs = {
        key: evaluated.get(key)
        for key in sorted({*train, *evaluated})
        if evaluated.get(key) != train.get(key)
    }
    if differs:
        record["eval"] = differs  # null for what holds in training only
    return record, seen[True] + seen[False], errors


def _option(name: str) -> tuple[str, Any]:
    """The option of the constructor that says whether there are parameters, and its default."""
    init = inspect.signature(getattr(nn, name.rpartition(".")[2]).__init__).parameters
    return next(((word, init[word].default) for word in OPTIONS if word in init), ("", None))


def _name(info: ModuleInfo) -> str:
    return f"torch.nn.{info.module_cls.__name__}"


def _cases(name: str, *, training: bool) -> Iterator[tuple[nn.Module, Case, bool]]:
    """Instances with their calls, and whether only the outputs are worth a look."""
    cls = getattr(nn, name.rpartition(".")[2])
    for info in cast(list[Any], module_db):
        if info.module_cls is not cls:
            continue
        torch.manual_seed(zlib.crc32(name.encode()))
        made = info.module_inputs_func(
            info, device="cpu", dtype=torch.float64, requires_grad=False, training=training
        )
        for at, example in enumerate(itertools.islice(made, DRAWN)):
            init, forward = example.constructor_input, example.forward_input
            if not all(t.numel() for t in forward.args if isinstance(t, torch.Tensor)):
                continue  # without elements there is little to learn
            form = "inplace" if init.kwargs.get("inplace") is True else ""
            module = cls(*init.args, **init.kwargs).double().train(training)
            args, kwargs = tuple(forward.args), dict(forward.kwargs)
            brief = at >= MOST and not form
            yield _ready(module, args, kwargs), _case(name, module, args, kwargs, form), brief
    for line in RECIPES.get(name, ()):
        torch.manual_seed(zlib.crc32(line.encode()))
        form, _, code = line.rpartition("@")
        constructor, _, inputs = code.partition(" <- ")
        scope = MODULES | {"nn": nn} | fixtures()
        module = _evaluated(constructor, scope).double().train(training)
        args = _evaluated(f"({inputs},)", scope)
        yield _ready(module, args, {}), _case(name, module, args, {}, form), False


def _evaluated(code: str, scope: dict[str, Any]) -> Any:
    return eval(code, scope)  # noqa: S307


def _ready(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> nn.Module:
    """A lazy module takes its shape, and its final class, from the first input."""
    if any(nn.parameter.is_lazy(t) for t in (*module.parameters(), *module.buffers())):
        module(*args, **kwargs)
    return module


def _case(name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], form: str) -> Case:
    params = [p.lstrip("*") for p in inspect.signature(type(module).forward).parameters][1:]
    names = tuple(params + [f"arg{i}" for i in range(len(args))])[: len(args)]

    def call(*inputs: Any, **named: Any) -> Any:
        *plain, copied = inputs
        return copied(*plain, **named)

    return Case(
        name, call, (*args, module), kwargs, (*names, "module"), tuple(params), form, given(name, (), kwargs)
    )


def _constructor(name: str) -> list[str]:
    """The parameters of the constructor; recurrent classes pass theirs on to a base class."""
    hidden = {"self", "device", "dtype", "args", "kwargs", "mode"}
    for cls in getattr(nn, name.rpartition(".")[2]).__mro__:
        named = [p for p in inspect.signature(cls.__init__).parameters if p not in hidden]
        if named or cls is nn.Module:
            return named
    return []
