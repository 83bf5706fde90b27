"""Methods that were put into containers: whether anybody calls what comes out."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events_call import NotCalled
from gradvet.autograd.events_flag import NonScalarBackward
from gradvet.autograd.judging.counts import MANY, SURELY_MANY, count_of
from gradvet.autograd.judging.named_only import named_only
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import Tensor
from gradvet.syntax.parse import Module


@dataclass(slots=True)
class CallNotes:
    """The methods that were kept as values, by the place where they were named."""

    machine: Machine
    waiting: dict[ast.AST, NotCalled] = field(default_factory=dict)
    called: set[ast.AST] = field(default_factory=set)
    alone: set[ast.AST] = field(default_factory=set)

    def stands_alone(self, named: ast.AST) -> None:
        """An attribute stood as a statement, and the run knows whether that is a method that was not called."""
        self.alone.add(named)

    def kept(self, event: NotCalled) -> None:
        """A method went into a container."""
        self.waiting.setdefault(event.node, event)

    def was_called(self, named: ast.AST) -> None:
        """A method was called elsewhere than where it was named."""
        self.called.add(named)

    def backward_from(self, site: ast.AST, root: Tensor) -> None:
        """`backward()` of a root: without a gradient it has to be of one element."""
        m = self.machine
        source = _root_without_gradient(m, site)
        if source is None:
            return
        count, made = count_of(m, root)
        if count in (MANY, SURELY_MANY):
            m.emit(NonScalarBackward(site, m.where(), source, made, count == SURELY_MANY, bool(root.assumes)))

    def conclude(self, module: Module) -> None:
        """Tell those that nobody called."""
        for node, event in self.waiting.items():
            if node not in self.called:
                self.machine.emit(event)
        for event in named_only(module, self.alone):
            self.machine.emit(event)


def _root_without_gradient(m: Machine, site: ast.AST) -> ast.expr | None:
    """What a call of `backward()` starts from when it is given no gradient to start with.

    That is the tensor that it is a method of, or what an accelerator is given.
    """
    match site:
        case ast.Call(ast.Attribute(root, "backward"), [], keywords):
            return None if any(k.arg in ("gradient", None) for k in keywords) else root
        case ast.Call(ast.Attribute(ast.Name(), "backward"), [root], []) | ast.Call(
            ast.Attribute(ast.Attribute(), "backward"), [root], []
        ):
            on_tensor = isinstance(site.func, ast.Attribute) and site.func.value in m.states
            return None if on_tensor or isinstance(root, (ast.List, ast.Tuple)) else root
    return None
