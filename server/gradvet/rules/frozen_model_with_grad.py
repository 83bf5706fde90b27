"""A model that is only consulted is run as if it were to be trained."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_flow import ReferenceWithGrad
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(ReferenceWithGrad, family="leak", severity=Severity.WARNING)
def check(event: ReferenceWithGrad) -> Iterator[Finding]:
    """Report where such a model is put into eval mode and not frozen, or a call whose graph is detached at once."""
    node, backward, cut = event.node, event.backward, event.cut
    if backward is not None and not event.nothing_passes:
        notes = [
            Note("used", f"{code(event.related)} takes part in a loss", event.related),
            Note("backward", "each backward adds to the `.grad` of its parameters", backward),
        ]
        message = f"{code(node)} does not freeze it: no optimizer owns its parameters, and each backward fills their `.grad`"
        yield Finding(node, message, (*notes, *called_from(event.calls)), tuple(_freeze(node)))
        return
    words = "it is a model in eval mode, and no optimizer owns its parameters"
    if cut is not None:
        of_eval = _puts_into_eval(event.related)
        words = "it is a model in eval mode" if of_eval else "it is, or belongs to, a model"
    notes = [Note("why", words, event.related)]
    if cut is not None:
        notes.append(Note("cut", "its graph ends here", cut))
        what = "what it gives is detached before anything uses it"
        if not _is_a_cut(cut):
            what = "nothing that is made of what it gives has a gradient"
        message = f"{code(node)} builds a graph that is thrown away: {what}"
    else:
        notes.append(Note("backward", "goes back into it for nothing", backward))
        message = f"{code(node)} keeps its graph, and nothing behind it is trained: a backward goes through it for nothing"
    yield Finding(
        node,
        message,
        (*notes, *called_from(event.calls)),
        (_without_graph(node),),
        Severity.INFO if cut is not None else Severity.WARNING,
    )


def _puts_into_eval(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "eval"


def _is_a_cut(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("detach", "detach_"))


def _freeze(node: ast.AST) -> Iterator[Fix]:
    if isinstance(node, ast.Call):
        yield Fix(
            "Freeze its parameters",
            "gradients still pass through it; its own parameters get none",
            Applicability.UNSAFE,
            lambda module: edits.after(module, node, ".requires_grad_(False)"),
        )


def _without_graph(node: ast.AST) -> Fix:
    def change(module: Module) -> Sequence[Edit]:
        spelled, imports = rewrite.torch_name(module, "torch.no_grad")
        statement = module.statement(node)
        return [*imports, *rewrite.wrap_in_with(module, statement, f"with {spelled}():")]

    return Fix(
        "Run it under no_grad()",
        "the same values; no graph is recorded, and its activations are freed at once",
        Applicability.UNSAFE,
        change,
    )
