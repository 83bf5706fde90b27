"""Holds the records against many more calls than they were folded from, by way of the server's own loader."""

import itertools
import random
import zlib
from collections.abc import Iterator, Sequence

import torch

from gradvet.autograd.knowledge.lookup import Knowledge, Op, Output
from tools.measure import opdb
from tools.measure.copies import Case, carries, fresh, parameter, returned
from tools.measure.execute import attempt, limited, run
from tools.measure.kinds import kind
from tools.measure.observe import output
from tools.measure.seen import Out

CALLS = 60
PLAIN = ("int", "bool", "complex")


def contradictions(knowledge: Knowledge, names: Sequence[str]) -> tuple[int, list[str]]:
    """How many calls were made, and where a record excludes what a call did."""
    calls, found = 0, []
    for name in names:
        op = knowledge.function(name)
        for case in _cases(name) if op is not None else ():
            problems = _problems(op, case) if op is not None else None
            calls += problems is not None
            found += [f"{name}({', '.join(case.given)}): {problem}" for problem in problems or ()]
    return calls, sorted(set(found))


def names(count: int, seed: int) -> list[str]:
    """Some names of the operator database, the same for the same seed."""
    listed = sorted(opdb.index())
    return random.Random(seed).sample(listed, min(count, len(listed)))  # noqa: S311


def _cases(name: str) -> Iterator[Case]:
    for op in opdb.real_entries(name):
        dtype = opdb.dtype_of(op)
        if dtype is None:
            continue
        opdb.set_seed(zlib.crc32(f"wide {name}".encode()))
        for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), CALLS):
            made = opdb.case_of(name, op, sample)
            if made is not None and all(tensor.numel() for _, tensor in fresh(made).tensors):
                yield made  # without elements there is nothing to learn


def _problems(op: Op, case: Case) -> list[str] | None:
    chosen = op.form(case.given)
    grads = {
        path
        for path, tensor in fresh(case).tensors
        if carries(tensor) and tensor.layout is torch.strided and parameter(path) not in op.raises_on_grad
    }
    with limited():
        done = attempt(lambda: run(case, grads))
    if isinstance(done, Exception):
        return None
    ret, _ = returned(done.result)
    if ret != chosen.ret:
        return [f"gives a {ret}, not a {chosen.ret}"]
    found = []
    known = {out.at: out for out in chosen.out}
    for path, tensor in done.outs:
        expected = chosen.out[0] if chosen.out and chosen.out[0].many else known.get(path)
        if expected is None:
            found.append(f"output {path} is not in the record")
        else:
            found += _differences(expected, output(done, tensor), tensor, tracked=bool(grads))
    return found


def _differences(expected: Output, seen: Out, tensor: torch.Tensor, *, tracked: bool) -> Iterator[str]:
    if tracked and _excludes(expected.grad, seen.grad):
        yield f"grad is {expected.grad} in the record"
    if tensor.numel():
        for fact in ("share", "same", "view", "inner"):
            if _excludes(getattr(expected, fact), getattr(seen, fact)):
                yield f"{fact} is {getattr(expected, fact)} in the record"
    if seen.fn and expected.fn and seen.fn not in expected.fn:
        yield f"{seen.fn} is not in the record"
    if expected.dtype in PLAIN and kind(tensor) != expected.dtype:
        yield f"is {kind(tensor)}, not {expected.dtype}"


def _excludes(answer: str, happened: bool) -> bool:  # noqa: FBT001
    return answer == ("never" if happened else "always")
