"""Cuts that lie in the forward of a module that is trained: told there, once, and not where they show."""

import ast

from gradvet.autograd.events import Backward, CutPath, Event
from gradvet.autograd.events_exit import ScalarConverted
from gradvet.autograd.events_mode import BackwardUnrecorded, ForwardUnrecorded, UnrecordedView
from gradvet.autograd.judging.above import function_of
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO
from gradvet.syntax.parents import Parents


def unrecorded_forwards(m: Machine, parents: Parents) -> None:
    """Put one event in the place of those that only show that a forward was not recorded."""
    modules = {info.node for info in m.classes.values() if info.is_module}
    for at, event in enumerate(m.events):
        m.events[at] = _nearer(event, modules, parents)
    told = [event.node for event in m.events if isinstance(event, (CutPath, ForwardUnrecorded))]
    m.events[:] = [
        event for event in m.events if not (_told_by_cut(event, told, parents) or _is_idle(m, event))
    ]
    numbers = {event.node for event in m.events if isinstance(event, CutPath) and event.kind == "item"}
    m.events[:] = [
        event for event in m.events if not (isinstance(event, ScalarConverted) and event.node in numbers)
    ]


def _is_idle(m: Machine, event: Event) -> bool:
    """Whether no backward asks for a gradient of what was made of a view that was not recorded."""
    return isinstance(event, UnrecordedView) and not m.bare_views.get(event.node)


def _told_by_cut(event: Event, told: list[ast.AST], parents: Parents) -> bool:
    """Whether the block in which a view was made is told already as what cuts a gradient."""
    return (
        isinstance(event, UnrecordedView)
        and event.made is not None
        and any(_covers(mode, event.made, parents) for mode in told)
    )


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
            if all(cut.kind == "no_grad" and _covers(cut.node, event.node, parents) for cut in cuts):
                return BackwardUnrecorded(event.node, calls, cuts[0].node, event.source)
    return event


def _forward(
    node: ast.AST, calls: tuple[ast.AST, ...], modules: set[ast.ClassDef], parents: Parents
) -> tuple[ast.AST, str] | None:
    """The forward that a place lies in, or that was under way when it was reached, and its class."""
    for place in (node, *reversed(calls)):
        function = function_of(place, parents)  # the one that it decorates, too
        owner = parents.get(function) if function is not None else None
        if function is None or not isinstance(owner, ast.ClassDef) or owner not in modules:
            continue
        if getattr(function, "name", "") == "forward":
            return function, owner.name
    return None


def _covers(mode: ast.AST, node: ast.AST, parents: Parents) -> bool:
    """Whether a `with`, or a decorator, stands around a place in the same function."""
    item = parents.get(mode)
    block = parents.get(item) if isinstance(item, ast.withitem) else item
    while node in parents:
        node = parents[node]
        if node is block:
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
    return False
