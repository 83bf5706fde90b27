"""Analyses made by hand, so that views and the server can be tested apart from the engine and the rules."""

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gradvet.analysis import Analysis, Diagnostic, RelatedPlace
from gradvet.autograd.facts import ExpressionState, Facts
from gradvet.finding import Applicability, Fix, Severity, Tag
from gradvet.syntax.parse import Module, parse
from gradvet.text import Edit, Source, Span

PAGE = """\
# lost-graph

What `lost` holds is lost.

```python
x = lost(y)  # warning: [lost-graph] "lost"
reveal_grad(x)  # revealed: requires_grad=YES is_leaf=NO grad_fn=MulBackward0
```

## Silent on purpose

```python
found(y)
```
"""


@dataclass(frozen=True)
class FakeRule:
    """A rule with its page in hand."""

    name: str = "lost-graph"
    family: str = "leak"
    severity: Severity = Severity.WARNING
    page: str = PAGE
    tag: Tag | None = None


def spans(text: str, part: str) -> list[Span]:
    """Where a part stands in a text."""
    places = []
    start = text.find(part)
    while start >= 0:
        places.append(Span(start, start + len(part)))
        start = text.find(part, start + len(part))
    return places


def replacing(
    span: Span, text: str, title: str = "Put it right", *, safe: bool = True, effect: str = ""
) -> Fix:
    """A fix that replaces one span."""
    return Fix(
        title,
        effect,
        Applicability.SAFE if safe else Applicability.UNSAFE,
        lambda _module: [Edit(span, text)],
    )


def diagnostic(
    span: Span, fixes: Iterable[Fix] = (), notes: Iterable[RelatedPlace] = (), rule: FakeRule | None = None
) -> Diagnostic:
    """A diagnostic of a fake rule."""
    rule = rule or FakeRule()
    return Diagnostic(
        rule=rule,  # type: ignore[arg-type]  # it has all that is read of a rule
        severity=rule.severity,
        span=span,
        message="`lost` loses the graph",
        notes=tuple(notes),
        fixes=tuple(fixes),
    )


def analysis(
    text: str,
    found: Sequence[Diagnostic] = (),
    states: Callable[[Module], dict[ast.AST, ExpressionState]] = lambda _module: {},
) -> Analysis:
    """An analysis that found just this."""
    parsed = parse(Source("train.py", text))
    return Analysis(
        module=parsed, diagnostics=tuple(found), problems=parsed.problems, facts=Facts([], states(parsed))
    )


def analyze_lost(source: Source) -> Analysis:
    """Find every `lost(`; the safe fix is `found(`, and a variable holds what its name says."""
    found = [
        diagnostic(span, [replacing(span, "found(")], [RelatedPlace("why", "it is lost", span)])
        for span in spans(source.text, "lost(")
    ]

    def states(parsed: Module) -> dict[ast.AST, ExpressionState]:
        names = [node for node in ast.walk(parsed.tree) if isinstance(node, ast.Name)]
        return {
            node: ExpressionState("requires_grad=YES", ((f"it is called {node.id}", node),)) for node in names
        }

    return analysis(source.text, found, states)
