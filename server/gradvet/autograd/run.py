"""The run plan: the module from its top, then whatever no call reached; then the verdicts."""

import ast

from gradvet.autograd.events import Cut
from gradvet.autograd.expressions_seen import WatchedMachine
from gradvet.autograd.facts import Facts, follow, together
from gradvet.autograd.judging.judge import Judge
from gradvet.autograd.judging.verdicts import conclude
from gradvet.autograd.library import (  # noqa: F401  some only register what they know
    checkpoints,
    collectives,
    copies,
    custom_functions,
    data,
    einops,
    foreach,
    functorch,
    heaps,
    methods,
    norms,
    packed,
    torch_calls,
)
from gradvet.autograd.machine import MODE, Frame, Machine
from gradvet.autograd.memory.domain import GRAD, Tensor
from gradvet.autograd.python import (  # noqa: F401  they register themselves
    expressions,
    iterators,
    python_calls,
    statements,
)
from gradvet.autograd.python.imports import Imports, texts_imported
from gradvet.autograd.reasons import States
from gradvet.autograd.unreached import bounded, unreached
from gradvet.collection import no_collection
from gradvet.syntax.packages import Read
from gradvet.syntax.parse import Module
from gradvet.syntax.parts import Statements, parts
from gradvet.syntax.together import Together

Runs = dict[Statements, Facts]
"""What was found out of parts of a module, by their statements."""


def run(module: Module, *, watch: bool = False, read: Read | None = None, runs: Runs | None = None) -> Facts:
    """Dry-run autograd over a module. Bounds that were reached are told in `limits`.

    A run that is watched also tells what each expression held that was no tensor; it takes longer.
    `read` gives the texts of other modules of the project, which are run when they are imported.
    Parts that are among `runs` are not run again; afterwards it holds those of this module.
    """
    with no_collection():
        divided = (tuple(module.tree.body),) if watch else parts(module)
        if len(divided) > 1 and read is not None and any(True for _ in texts_imported(module, read)):
            divided = (tuple(module.tree.body),)  # what the parts import they share, and may change
        known = {} if runs is None else runs
        for statements in divided:
            if statements in known:
                follow(known[statements])
            else:
                part = module if len(divided) == 1 else module.part(statements)
                known[statements] = _run(part, watch=watch, read=read)
        for statements in known.keys() - set(divided):
            del known[statements]
        return together([known[statements] for statements in divided])


def _run(module: Module, *, watch: bool, read: Read | None) -> Facts:
    m = WatchedMachine(module) if watch else Machine(module)
    judge = m.judge = Judge(m)
    judge.doubles.active = "create_graph" in module.words
    info = m.info(module.tree)
    info.keeps_locals = True
    m.global_scope = m.scope(0, module.tree, 0)
    m.frames.append(Frame(module.tree, info, m.global_scope, 0, m.store.mark()))
    if read is not None:
        m.imports = Imports(module, m.global_scope, read)
    bounded(m, lambda: m.block(module.tree.body))
    m.module_mode = m.mode if not m.cut_short else GRAD
    m.store.set(MODE, m.module_mode)
    m.ends_body()
    unreached(m, module.tree)
    imported = m.imports.others if m.imports is not None else []
    conclude(m, judge, Together(module, imported) if imported else module)
    seen = m.expressions() if isinstance(m, WatchedMachine) else ()
    states = m.states if not imported else _own_states(m, module)
    told = States(
        states, m.vague, m.cells, [Cut(cut.kind, cut.name, cut.node) for cut in m.cuts], judge.leaf_names
    )
    mixed = frozenset(node for node in m.numbers if node in states)
    facts = Facts(m.events, told, tuple(m.limits), seen, imported, mixed, told.way, m.stand_ins)
    vars(
        m
    ).clear()  # the machine and its parts hold one another: without this only the collector could free them
    return facts


def _own_states(m: Machine, module: Module) -> dict[ast.AST, Tensor]:
    """The states of the expressions of the module itself."""
    return {node: state for node, state in m.states.items() if module.holds(m.stand_ins.get(node, node))}
