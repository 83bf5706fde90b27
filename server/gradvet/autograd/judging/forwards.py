"""Cuts that lie in the forward of a module that is trained: told there, once, and not where they show."""

import ast

from gradvet.autograd.events import Backward, CutPath, Event
from gradvet.autograd.events_mode import ForwardUnrecorded
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO

Parents = dict[ast.AST, ast.AST]


def unrecorded_forwards(m: Machine, parents: Parents) -> None:
    """Put one event in the place of those that only show that a forward was not recorded."""
    modules = {info.node for info in m.classes.values() if info.is_module}
    for at, event in enumerate(m.events):
        m.events[at] = _nearer(event, modules, parents)


def _nearer(event: Event, modules: set[ast.ClassDef], parents: Parents) -> Event:
    match event:
        case CutPath(kind="no_grad", term=False, node=node, calls=calls):
            found = _forward(node, calls, modules, parents)
            if found is not None:
                return ForwardUnrecorded(node, calls, *found, event.leaves, event.loss, event.all_cut)
        case Backward(root=root, cuts=cuts, calls=calls) if root.requires_grad == NO and cuts:
            places = [_forward(cut.node, (), modules, parents) for cut in cuts if cut.kind == "no_grad"]
            if len(places) == len(cuts) and places[0] is not None and None not in places:
                return ForwardUnrecorded(cuts[0].node, calls, *places[0], (), event.node, raises=True)
    return event


def _forward(
    node: ast.AST, calls: tuple[ast.AST, ...], modules: set[ast.ClassDef], parents: Parents
) -> tuple[ast.AST, str] | None:
    """The forward that a place lies in, or that was under way when it was reached, and its class."""
    for place in (node, *reversed(calls)):
        function = _function(place, parents)
        owner = parents.get(function) if function is not None else None
        if function is None or not isinstance(owner, ast.ClassDef) or owner not in modules:
            continue
        if getattr(function, "name", "") == "forward":
            return function, owner.name
    return None


def _function(node: ast.AST, parents: Parents) -> ast.AST | None:
    """The function that a place lies in, or that it decorates."""
    while node in parents:
        node = parents[node]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node
    return None
