"""`gradvet explain` and `gradvet rules`: what the rules are."""

import sys

from gradvet.project import did_you_mean
from gradvet.rules import Rule, all_rules
from gradvet.views import readable


def explain(name: str) -> int:
    """Print a rule's page, or list the rules of a family."""
    families = {rule.family for rule in all_rules().values()}
    if name in families:
        return list_rules(name)
    rule = all_rules().get(name)
    if rule is None:
        hint = did_you_mean(name, [*all_rules(), *sorted(families)])
        print(
            f"gradvet: there is no rule or family `{name}`{hint}\n`gradvet rules` lists them all",
            file=sys.stderr,
        )
        return 2
    print(readable(rule.page), end="")
    return 0


def list_rules(family: str | None = None) -> int:
    """Print each rule, of a family or of all, with its family and the first sentence of its page."""
    rules = [rule for rule in all_rules().values() if family in (None, rule.family)]
    names = max((len(rule.name) for rule in rules), default=0)
    families = max((len(rule.family) for rule in rules), default=0)
    for rule in rules:
        print(f"{rule.name:{names}}  {rule.family:{families}}  {first_sentence(rule)}")
    return 0


def first_sentence(rule: Rule) -> str:
    """What a rule finds, in its page's own words."""
    paragraphs = readable(rule.page).split("\n\n")
    text = next((" ".join(part.split()) for part in paragraphs if part and not part.startswith("#")), "")
    head, stop, _ = text.partition(". ")
    return head + stop.strip()
