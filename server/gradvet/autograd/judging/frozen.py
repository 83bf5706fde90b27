"""Models that are only consulted: put into eval mode, owned by no optimizer, and run as if they were to be trained."""

import ast

from gradvet.autograd.events_flow import ReferenceWithGrad, TargetInGraph
from gradvet.autograd.judging.judge import Judge, ModuleCall
from gradvet.autograd.library.layers import members
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import GRAD, YES, Tensor
from gradvet.autograd.memory.values import FALSE, Ref


def reference_models(m: Machine, judge: Judge) -> None:
    """Emit the reference models whose parameters get gradients that nobody uses, or whose graph is detached at once."""
    flow = judge.flow
    known = flow.all_known and all(content.all_known for _, content, _ in judge.optimizers)
    if m.cut_short or not known or not flow.stepped:
        return
    touched = flow.owned | flow.read | flow.followers.keys()
    for _, cells, *_ in judge.protocol.clears:
        touched |= {cell & ~1 for cell in cells}
    frozen: set[int] = set()
    told: set[ast.AST] = set()
    found = []
    for call in (*judge.modules, *judge.inner):
        leaves = _training_leaves(m, call) if call.training == FALSE and call.mode == GRAD else set()
        evidence = _put_into_eval(m, judge, call) if leaves and leaves.isdisjoint(touched) else None
        if evidence is not None:
            nodes = {node & ~1 for node in call.nodes}
            runs = [run for run in flow.backwards if not nodes.isdisjoint(run.seen)]
            passes = not {leaf & ~1 for leaf in call.tensor.leaves} <= leaves
            found.append((call, evidence, runs, passes))
    for call, evidence, runs, passes in found:
        trains = [run for run in runs if any(leaf & ~1 in flow.stepped for leaf in run.leaves)]
        if trains and passes and call.module.address & ~1 not in frozen:
            frozen.add(call.module.address & ~1)
            if evidence not in told:
                told.add(evidence)
                where = m.calls_of.get(evidence, ())
                m.emit(
                    ReferenceWithGrad(evidence, where, call.site, trains[-1].site, None, nothing_passes=False)
                )
    inner = {id(call) for call in judge.inner}
    for call, evidence, runs, passes in found:
        if id(call) in inner or passes or call.site in told or call.module.address & ~1 in frozen:
            continue
        cut = None if runs or _escapes(judge, call) else _detached(m, {node & ~1 for node in call.nodes})
        if runs or cut is not None:
            told.add(call.site)
            used = runs[-1].site if runs else None
            m.emit(ReferenceWithGrad(call.site, call.calls, evidence, used, cut, nothing_passes=True))
    # A target that comes from such a model is told once, with the model.
    m.events[:] = [e for e in m.events if not (type(e) is TargetInGraph and e.node in told and not e.owned)]


def _training_leaves(m: Machine, call: ModuleCall) -> set[int]:
    """The parameters of a module that require grad."""
    found = set()
    for _, ref in members(m, call.module).parameters:
        state = m.cells.get(ref.address)
        if type(state) is Tensor and state.requires_grad == YES and not state.assumes:
            found.add(ref.address & ~1)
    return found


def _put_into_eval(m: Machine, judge: Judge, call: ModuleCall) -> ast.AST | None:
    """Where the module, or one that holds it, was put into eval mode."""
    for address, sites in judge.eval_sites.items():
        inside = {ref.address & ~1 for _, ref in members(m, Ref(address)).modules}
        if address == call.module.address & ~1 or call.module.address & ~1 in inside:
            return next(reversed(sites))
    return None


def _escapes(judge: Judge, call: ModuleCall) -> bool:
    return any(at in judge.escaped_nodes or at | 1 in judge.escaped_nodes for at in call.nodes)


def _detached(m: Machine, nodes: set[int]) -> ast.AST | None:
    """The `detach()` that takes what these nodes gave."""
    for info in m.cuts:
        if info.kind == "detach" and not nodes.isdisjoint(at & ~1 for at in info.nodes):
            return info.node
    return None
