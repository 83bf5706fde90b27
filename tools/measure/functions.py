"""The functions section: which names it speaks of, and how each is measured."""

import inspect
from functools import cache

from tools.measure import opdb, recipes
from tools.measure.copies import Case
from tools.measure.devices import widened
from tools.measure.execute import head
from tools.measure.fold import Record, fold
from tools.measure.names import resolve
from tools.measure.observe import observe
from tools.measure.seen import Seen
from tools.measure.table import aliased


@cache
def known() -> tuple[str, ...]:
    """Every name that there is a call for."""
    return tuple(sorted(set(opdb.index()) | set(recipes.index())))


def measure(name: str) -> tuple[Record | None, list[Seen], list[str]]:
    """The record of a name, what it was folded from, and what went wrong on the way."""
    seen: list[Seen] = []
    errors: list[str] = []
    for case in (*opdb.cases(name), *recipes.cases(name)):
        _add(case, seen, errors)
    met = {(s.case.form, s.ret) for s in seen}
    for case in (*opdb.more_cases(name), *recipes.brief_cases(name)):
        _add(case, seen, errors, brief=True)
        if seen and seen[-1].case is case and (case.form, seen[-1].ret) not in met:
            seen.pop()  # the first of its kind is worth a closer look
            _add(case, seen, errors)
            met |= {(s.case.form, s.ret) for s in seen}
    if not seen:
        return None, [], errors
    record = widened(name, fold(seen))
    static = resolve(name)
    if name.startswith("torch.Tensor.") and (
        isinstance(static, property) or inspect.isgetsetdescriptor(static)
    ):
        record["property"] = True
    return record, seen, errors


def _add(case: Case, seen: list[Seen], errors: list[str], *, brief: bool = False) -> None:
    try:
        seen.append(observe(case, brief=brief))
    except Exception as error:
        errors.append(head(error))


def related() -> dict[str, list[str]]:
    """For each name the others that may share its record: function and method, and torch's own aliases."""
    found: dict[str, list[str]] = {}
    groups = [opdb.targets(op) for op in opdb.entries()]
    by_base: dict[str, list[str]] = {}
    for name in known():
        by_base.setdefault(name.rpartition(".")[2], []).append(name)
    for group in [*groups, *by_base.values()]:
        for name in group:
            same_kind = [o for o in group if o != name and o.endswith("_") == name.endswith("_")]
            found.setdefault(name, []).extend(
                sorted(same_kind, key=lambda o: (o.startswith("torch.Tensor."), o))
            )
    return found


def section() -> tuple[dict[str, Record], int, dict[str, list[str]]]:
    """All records, the number of calls behind them, and the names that could not be measured."""
    found: dict[str, Record] = {}
    failed: dict[str, list[str]] = {}
    samples = 0
    for name in known():
        record, seen, errors = measure(name)
        samples += len(seen)
        if record is None:
            failed[name] = errors
        else:
            found[name] = record
    return aliased(found, related()), samples, failed
