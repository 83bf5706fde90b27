"""The rules: one module and one page each. Adding the two files is all there is to adding a rule."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from gradvet.finding import Finding, Severity, Tag


@dataclass(frozen=True, slots=True)
class Rule:
    """A named fault: which event it looks at, how bad it is, and the check itself."""

    name: str
    family: str
    severity: Severity
    on: tuple[type, ...]
    check: Callable[[Any], Iterable[Finding]]
    tag: Tag | None = None

    @property
    def page(self) -> str:
        """The rule's page in Markdown."""
        return (pkgutil.get_data(__name__, f"{self.name.replace('-', '_')}.md") or b"").decode()


def rule(
    *on: type, family: str, severity: Severity, tag: Tag | None = None
) -> Callable[[Callable[[Any], Iterator[Finding]]], Rule]:
    """Make a check into a rule that sees each event of the given kinds; the module's name is the rule's."""

    def decorate(check: Callable[[Any], Iterator[Finding]]) -> Rule:
        name = check.__module__.rpartition(".")[2].replace("_", "-")
        return Rule(name, family, severity, on, check, tag)

    return decorate


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule by name, sorted."""
    rules: dict[str, Rule] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        found = [value for value in vars(module).values() if isinstance(value, Rule)]
        rules |= {rule.name: rule for rule in found}
    return dict(sorted(rules.items()))
