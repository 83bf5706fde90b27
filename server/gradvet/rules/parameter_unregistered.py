"""A module uses parameters that its `parameters()` does not list."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_leaf import Unregistered
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit

_WRAPPERS = {
    ("modules", "list"): "ModuleList",
    ("modules", "tuple"): "ModuleList",
    ("modules", "dict"): "ModuleDict",
    ("parameters", "list"): "ParameterList",
    ("parameters", "tuple"): "ParameterList",
    ("parameters", "dict"): "ParameterDict",
    ("tensor", ""): "Parameter",
}


@rule(Unregistered, family="cut", severity=Severity.WARNING)
def check(event: Unregistered) -> Iterator[Finding]:
    """Report what a module holds in a way that it cannot see."""
    lost = "its optimizer never moves them" if event.trained else "`parameters()` does not list them"
    held = f"`self.{event.attribute}`"
    match event.kind:
        case "modules":
            message = f"{held} is a plain {event.container}: `{event.owner}` does not see the modules in it, and {lost}"
        case "parameters":
            message = f"{held} is a plain {event.container}: `{event.owner}` does not see the parameters in it, and {lost}"
        case "tensor":
            lost = lost.replace("them", "it")
            message = f"{held} requires grad and is no Parameter: `{event.owner}` does not see it, and {lost}"
        case "local":
            message = f"{code(event.node)} makes new weights at each forward: nothing trains them and nothing saves them"
        case _:
            when = "" if event.certain else ", where the conversion has something to change"
            message = f"{held} was made of a Parameter and is none{when}: `{event.owner}` does not see it"
    notes = () if event.use is None else (Note("used", code(event.use), event.use),)
    yield Finding(
        event.node,
        message,
        (*notes, *called_from(event.calls)),
        tuple(_fixes(event)),
        Severity.ERROR if event.trained else None,
    )


def _fixes(event: Unregistered) -> Iterator[Fix]:
    value = event.value
    name = _WRAPPERS.get((event.kind, event.container))
    effect = "the parameters are listed, moved, saved and trained with the module"
    if name is not None and value is not None and not isinstance(value, ast.Name):

        def change(module: Module) -> Sequence[Edit]:
            spelled, imports = rewrite.torch_name(module, f"torch.nn.{name}")
            empty = isinstance(value, (ast.List, ast.Tuple)) and not value.elts
            text = "" if empty or (isinstance(value, ast.Dict) and not value.keys) else module.text(value)
            return [*imports, *edits.replace(module, value, f"{spelled}({text})")]

        yield Fix(f"Wrap it in nn.{name}", effect, Applicability.UNSAFE, change)
    match value:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(args=[inner]) as made, attr=method), args=arguments
        ) if event.kind == "converted":

            def convert(module: Module) -> Sequence[Edit]:
                given = ", ".join(module.text(part) for part in [*arguments, *value.keywords])
                atom = isinstance(inner, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
                text = module.text(inner) if atom else f"({module.text(inner)})"
                options = "".join(f", {module.text(keyword)}" for keyword in made.keywords)
                whole = f"{module.text(made.func)}({text}.{method}({given}){options})"
                return edits.replace(module, value, whole)

            yield Fix("Convert before it becomes a Parameter", effect, Applicability.UNSAFE, convert)
