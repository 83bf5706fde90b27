"""Instances of `nn` classes beyond those of torch's module database, read from the list beside this file."""

from pathlib import Path

LIST = Path(__file__).with_name("module_recipes.txt")


def _by_class() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            cls = line.rpartition("@")[2].partition("(")[0].removeprefix("nn.")
            found.setdefault(f"torch.nn.{cls}", []).append(line)
    return found


RECIPES = _by_class()
