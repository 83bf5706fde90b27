"""Write `docs/rules.md` from the rules and their pages: `python -m tools.catalogue`; with `--check`, only compare."""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
CATALOGUE = ROOT / "docs" / "rules.md"
sys.path.insert(0, str(ROOT / "server"))

from gradvet.cli.explain import first_sentence  # noqa: E402  the server of this very clone
from gradvet.rules import Rule, all_rules  # noqa: E402

FAMILIES = {
    "leak": "a graph is kept alive",
    "cut": "a gradient that should flow is stopped",
    "flow": "a gradient flows where it must not",
    "alias": "storage is shared behind autograd's back",
    "exit": "leaving autograd",
    "backward": "the training step's protocol",
    "mode": "grad mode",
    "requires-grad": "the flag",
    "function": "custom autograd Functions",
    "intent": "what the code says of its gradients",
    "suppression": "comments that hide findings",
}
_DIFF = re.compile(r"^```diff (.+) \((safe|unsafe)\)$", re.MULTILINE)

_HEAD = """\
# The rules

Written by `python -m tools.catalogue` from the rules and their pages.
Every page is documentation, test and proof at once: its programs run under the analyser and under real torch.

A fix that is **safe** leaves every value and every wanted gradient as it was; an unsafe one changes something and says what.
"""


def catalogue() -> str:
    """The text of the file as it should be."""
    return "\n".join([_HEAD, *_families()])


def _families() -> Iterator[str]:
    rules = all_rules().values()
    unknown = {rule.family for rule in rules} - set(FAMILIES)
    if unknown:
        raise ValueError(
            f"say in tools/catalogue.py what these families are about: {', '.join(sorted(unknown))}"
        )
    for family, about in FAMILIES.items():
        members = [rule for rule in rules if rule.family == family]
        if members:
            yield f"## {family}: {about}\n\n| rule | severity | fault | fixes |\n| --- | --- | --- | --- |"
            yield from map(_row, members)
            yield ""


def _row(rule: Rule) -> str:
    page = f"../server/gradvet/rules/{rule.name.replace('-', '_')}.md"
    kinds = {"safe": "**safe**", "unsafe": "unsafe"}
    fixes = dict.fromkeys(f"{title} ({kinds[kind]})" for title, kind in _DIFF.findall(rule.page))
    fault = first_sentence(rule).replace("|", r"\|")
    return f"| [{rule.name}]({page}) | {rule.severity.value} | {fault} | {'; '.join(fixes) or 'none'} |"


def main(arguments: list[str] | None = None) -> int:
    """Write the file anew or compare it; 1 when it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    text = catalogue()
    old = CATALOGUE.read_text(encoding="utf-8") if CATALOGUE.exists() else ""
    if options.check and text != old:
        print("docs/rules.md is out of date; run: python -m tools.catalogue", file=sys.stderr)
        return 1
    if text != old:
        CATALOGUE.parent.mkdir(exist_ok=True)
        CATALOGUE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
