"""Reads and writes the data file: sorted keys, one record a line, so that a diff can be read."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradvet.autograd.knowledge.lookup import renamed

TARGET = (
    Path(__file__).parents[2] / "server" / "gradvet" / "autograd" / "knowledge" / "data" / "torch_ops.json"
)


def line(value: Any) -> str:
    """One record, compact and with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def dump(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """The whole file."""
    blocks = []
    for section in sorted(sections):
        rows = [f"{json.dumps(key)}:{line(record)}" for key, record in sorted(sections[section].items())]
        blocks.append(f"{json.dumps(section)}:{{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def load(path: Path = TARGET) -> dict[str, dict[str, Any]]:
    """The file as it is checked in."""
    loaded: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def aliased(functions: Mapping[str, Any], related: Mapping[str, list[str]]) -> dict[str, Any]:
    """Say once what related names share: a later name becomes `{"alias_of": earlier}`.

    `related` lists for a name the others that may say the same. A method's `self` stands for the
    first parameter of the function.
    """
    found: dict[str, Any] = {}
    for name in sorted(functions, key=lambda n: (n.startswith("torch.Tensor."), n.count("."), n)):
        mine = line(functions[name])
        twin = next(
            (
                o
                for o in related.get(name, [])
                if o in found and "alias_of" not in found[o] and line(renamed(found[o], name)) == mine
            ),
            None,
        )
        found[name] = {"alias_of": twin} if twin else functions[name]
    return found
