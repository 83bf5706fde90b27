"""Puts the sections together, and compares a checked-in file with torch."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gradvet.autograd.knowledge.lookup import renamed
from tools.measure import conversions, distributions, functions, modules, opdb
from tools.measure.names import NAMESPACES, public_names
from tools.measure.table import line

Sections = dict[str, dict[str, Any]]


def everything() -> Sections:
    """All sections, with what is known of their making under `meta`."""
    found, samples, failed = functions.section()
    made: Sections = {"functions": found, "modules": {}, "distributions": {}, "conversions": {}}
    for name in modules.known():
        record, seen, errors = modules.measure(name)
        samples += len(seen)
        if record is None:
            failed[name] = errors
        else:
            made["modules"][name] = record
    made["distributions"] = {n: distributions.measure(n) for n in distributions.recipes()}
    made["conversions"] = {e: conversions.measure(e) for e in conversions.expressions()}
    made["meta"] = {
        "torch": torch.__version__.partition("+")[0],
        "made_by": "python -m tools.measure",
        "samples": samples,
        "records": {section: len(records) for section, records in sorted(made.items())},
        "coverage": coverage(made),
        "unmeasured": sorted(failed),
    }
    return made


def coverage(made: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Per area, how many of its public names have a record."""
    known = made["functions"]
    entries = opdb.entries()
    measured = [op for op in entries if any(t in known for t in opdb.targets(op))]
    found = {
        "op_db": f"{len(measured)}/{len(entries)}",
        "op_db without a public name": str(len(opdb.internal())),
    }
    for namespace in NAMESPACES:
        listed = public_names(namespace)
        found[namespace] = f"{sum(n in known for n in listed)}/{len(listed)}"
    for area, section, listed in (
        ("torch.nn", "modules", modules.public()),
        ("torch.distributions", "distributions", distributions.public()),
    ):
        found[area] = f"{sum(n in made[section] for n in listed)}/{len(listed)}"
    return found


def measure(name: str) -> Any:
    """The record of one name of any section, measured now."""
    if name in functions.known():
        return functions.measure(name)[0]
    if name in modules.known():
        return modules.measure(name)[0]
    return distributions.measure(name) if name in distributions.recipes() else conversions.measure(name)


def sample(checked_in: Mapping[str, Mapping[str, Any]], count: int, seed: int) -> list[str]:
    """Some names of the file, the same for the same seed."""
    names = sorted(n for section, records in checked_in.items() if section != "meta" for n in records)
    return random.Random(seed).sample(names, min(count, len(names)))  # noqa: S311


def drift(checked_in: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Where the file and the installed torch disagree."""
    found = []
    records = {n: r for section, rows in checked_in.items() if section != "meta" for n, r in rows.items()}
    for name in names:
        old = records[name]
        if "alias_of" in old:
            old = renamed(records[old["alias_of"]], name)
        new = measure(name)
        if line(old) != line(new):
            found.append(f"{name}\n  in the file: {line(old)}\n  measured:    {line(new)}")
    return found
