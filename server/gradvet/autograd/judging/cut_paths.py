"""Which cuts on the way to a loss are faults: those that leave parameters, or a term of the loss, without gradient."""

import ast

from gradvet.autograd.events import Backward, CutPath, NoBackward
from gradvet.autograd.events_leaf import TensorCopied
from gradvet.autograd.judging.judge import Judge
from gradvet.autograd.library.layers import members
from gradvet.autograd.machine import KINDS_OF_CUTS, CutInfo, Machine
from gradvet.autograd.memory.domain import NO, YES, Tensor
from gradvet.autograd.memory.values import Instance, Layer, Ref
from gradvet.syntax.parents import Parents

OTHER_SIDE = "other side"
"""The form of a cut on one side of a difference, where the step after the loss has nothing behind the other side."""
DATA = "what the function is given, or a loader gives, carries no graph"


def cut_paths(m: Machine, judge: Judge, parents: Parents) -> None:
    """Emit the cuts that are faults, each once."""
    told = _hacks(m, judge, parents)
    told |= _constant_losses(m, judge, parents, told)
    told |= _lost_leaves(m, judge, parents, told)
    _dead_terms(m, judge, parents, told)
    _side_ways(m, judge, parents, told)
    _wrong_sides(m, judge, parents, told)
    for node, loss in judge.cut_notes.raising.items():
        m.emit(NoBackward(node, m.calls_of.get(node, ()), loss))
    _copies(m, judge, {m.cuts[number].node for number in told})


def _copies(m: Machine, judge: Judge, told: set[ast.AST]) -> None:
    """Copies by a constructor that no loss is made of; the others are told already."""
    for event in m.events:
        if isinstance(event, Backward) and event.root.requires_grad == NO:
            told |= {m.cuts[number].node for number in event.root.cuts}
    in_losses = {m.cuts[number].node for cuts in judge.cuts_of.values() for number in cuts}
    for node, (calls, state) in judge.cut_notes.copied.items():
        if node in told or not node.args:
            continue
        method = isinstance(node.func, ast.Attribute) and node.func.attr == "new_tensor"
        like = node.func.value if method else None  # type: ignore[attr-defined]
        how = "new_tensor" if method else "tensor"
        m.emit(TensorCopied(node, calls, state, node.args[0], how, like, node in in_losses))


def _hacks(m: Machine, judge: Judge, parents: Parents) -> set[int]:
    """Backwards from computed values that were made leaves: they reach nothing that trains."""
    told = set[int]()
    owned = {leaf & ~1 for _, optimizer, _ in judge.optimizers for leaf in optimizer.owns}
    for number, (loss, reached) in judge.cut_notes.roots.items():
        info = m.cuts[number]
        if reached & (judge.cut_notes.wanted | owned) or not (info.leaves or loss in judge.cut_notes.alone):
            continue  # the new leaf is what is wanted: an attack, a latent code, the gradient of a part
        told |= {number, *info.upstream}
        _tell(
            m, judge, parents, number, loss, {leaf for leaf in info.leaves if _trains(m, leaf)}, all_cut=True
        )
    return told


def _constant_losses(m: Machine, judge: Judge, parents: Parents, before: set[int]) -> set[int]:
    """Losses that are computed of data, and of results that were all cut: there is nothing to run backward through."""
    told = set[int]()
    for loss, dead in judge.constant_roots.items():
        for number in dead - before:
            if (
                m.cuts[number].kind in KINDS_OF_CUTS
                and judge.cut_notes.unknown_behind(number, m.cuts[number].nodes)
                and number not in told
            ):
                told |= {number, *m.cuts[number].upstream}
                subject = cut_subject(m.cuts[number].node, parents)
                while subject is not None and subject in m.states:  # what torch made of something unknown
                    subject = cut_subject(subject, parents)
                called = subject.func if isinstance(subject, ast.Call) else subject
                names = () if called is None else (f"`{ast.unparse(called)}`",)
                _tell(m, judge, parents, number, loss, set(), all_cut=True, known=(names, (DATA,)))
    return told


def _lost_leaves(m: Machine, judge: Judge, parents: Parents, before: set[int]) -> set[int]:
    """Leaves that an optimizer owns, that no backward reached, and that a cut on the way to a loss hides."""
    done = set[int]()
    for ref, optimizer, owner in judge.optimizers:
        owns = {leaf for leaf in optimizer.owns if judge.losses_of.get(leaf)}
        # What `autograd.grad` gives of a leaf is not put into its `.grad`.
        empty = judge.protocol.steps_with_nothing(ref)
        reached = {at for at in judge.reached_leaves if not empty or at & ~1 in judge.protocol.fills}
        missed = {leaf for leaf in owns if leaf not in reached and _trains(m, leaf)}
        all_cut = bool(owns) and owns <= missed
        told: set[int] = set()
        losses = {loss: None for leaf in missed for loss in judge.losses_of[leaf]}
        if empty:
            losses = {loss: None for loss in losses if judge.protocol.is_backward(loss)}
        pairs = [(number, loss) for loss in losses for number in judge.cuts_of.get(loss, ())]
        for number, loss in sorted(pairs, key=lambda pair: m.rank_of_cut(pair[0])):
            info = m.cuts[number]
            hidden = missed & info.leaves
            if number in before:
                told |= hidden
            if (
                not hidden
                or number in done
                or number in before
                or info.kind not in KINDS_OF_CUTS
                or hidden <= told
            ):
                continue
            chosen = bool(info.leaves - optimizer.owns)  # the optimizer was given some of what is hidden here
            # Nobody builds an optimizer of nothing but what is frozen.
            idle = all_cut and all(leaf in missed for leaf in optimizer.owns if _trains(m, leaf))
            if (
                info.kind == "no_grad"
                and not (chosen or idle)
                and _freezes(m, judge, info.node, hidden, parents)
            ):
                continue
            told |= hidden
            done |= {number, *(info.upstream if info.kind == "forced" else ())}
            _tell(m, judge, parents, number, loss, hidden, owner=owner, all_cut=all_cut)
    return done


def _dead_terms(m: Machine, judge: Judge, parents: Parents, told: set[int]) -> None:
    """Terms of a loss that these cuts make constants, though what is behind them is trained."""
    trained = frozenset[int]().union(*(optimizer.owns for _, optimizer, _ in judge.optimizers))
    trained |= {leaf for leaf in judge.reached_leaves if _is_parameter(m, leaf)}
    for number, loss in judge.dead.items():
        info = m.cuts[number]
        unknown = judge.cut_notes.unknown_losses.get(loss, set())
        shared = judge.cut_notes.behind.get(number, set()) & unknown
        here = {at for a in unknown if type(part := m.cells.get(a)) is Layer for _, at in part.parameters}
        if number in told or info.kind not in KINDS_OF_CUTS or not (info.leaves & (trained | here) or shared):
            continue
        if info.kind in ("detach", "data") and info.nodes and all(at & 1 for at in info.nodes):
            continue  # what an earlier iteration has computed is no term of this one's loss
        if not judge.cut_notes.weighted.get(number, set()).isdisjoint(judge.cut_notes.trained):
            continue  # its weight is what the term trains
        told |= {number, *(info.upstream if info.kind == "forced" else ())}
        _tell(m, judge, parents, number, loss, info.leaves & (trained | here), term=True)


def _side_ways(m: Machine, judge: Judge, parents: Parents, told: set[int]) -> None:
    """Ways to a loss that nobody means to cut, though a gradient comes to the same leaves by others."""
    notes = judge.cut_notes
    for loss, cuts in judge.cuts_of.items():
        reached = {leaf & ~1 for leaf in notes.leaves_of[loss]}
        for number in sorted(cuts - told):
            info = m.cuts[number]
            hidden = {leaf for leaf in info.leaves if _trains(m, leaf)}
            if info.kind == "sample":
                # What is scored by its probability is drawn on purpose; what a module goes on with is not.
                meant = number in notes.scored or number not in notes.fed or info.form != "rsample"
                hidden = set() if meant else {leaf for leaf in hidden if leaf & ~1 in reached}
            elif info.kind == "item" and info.form == "parameter":
                # `math.exp(log_var)` drops the gradient by the way; `.item()` and `float()` say that it is meant.
                hidden = {leaf for leaf in hidden if leaf & ~1 in reached}
            elif info.kind not in ("checkpoint", "collective", "cancelled"):
                continue
            if hidden:
                told.add(number)
                _tell(m, judge, parents, number, loss, hidden)


def _wrong_sides(m: Machine, judge: Judge, parents: Parents, told: set[int]) -> None:
    """Differences that a step could learn from, had not the side been detached that leads to what it steps on."""
    if not judge.flow.all_known:
        return
    used: dict[int, set[ast.AST]] = {}
    for step in judge.protocol.steps:
        for leaf, gradient in zip(step.leaves, step.gradients, strict=False):
            sites = {judge.protocol.sites[number].node for number in gradient.backwards}
            used.setdefault(leaf & ~1, set()).update(sites)
    for (number, loss), live in judge.targets.halves.items():
        hidden = {
            leaf for leaf in m.cuts[number].leaves if loss in used.get(leaf & ~1, ()) and _trains(m, leaf)
        }
        if number in told or not hidden or any(loss in used.get(leaf & ~1, ()) for leaf in live):
            continue
        told.add(number)
        m.cuts[number].form = OTHER_SIDE
        _tell(m, judge, parents, number, loss, hidden)


def _tell(
    m: Machine,
    judge: Judge,
    parents: Parents,
    number: int,
    loss: ast.AST,
    hidden: set[int],
    *,
    owner: ast.AST | None = None,
    all_cut: bool = False,
    term: bool = False,
    known: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
) -> None:
    """Emit one cut with the leaves that it hides from a loss; their names, and what is assumed, may be `known`."""
    info = m.cuts[number]
    names, assumes = _names(m, judge, hidden) if known is None else known
    m.emit(
        CutPath(
            info.node,
            info.calls,
            info.kind,
            info.name,
            () if term else names,
            loss,
            owner,
            all_cut,
            cut_subject(info.node, parents),
            term,
            _result(info.node, parents) if term else "",
            _causes(m, info),
            info.form,
            assumes,
        )
    )


def _names(m: Machine, judge: Judge, leaves: set[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What leaves are called, and what is assumed of them."""
    names = {judge.leaf_names.get(leaf) or _leaf_name(m, leaf) for leaf in leaves}
    states = [m.cells.get(leaf) for leaf in leaves]
    assumed = [state.assumes for state in states if type(state) is Tensor]
    sure = not assumed or any(not words for words in assumed)
    return tuple(sorted(names)), () if sure else tuple(sorted(frozenset[str]().union(*assumed)))


def _causes(m: Machine, info: CutInfo) -> tuple[ast.AST, ...]:
    """Where the graph had been lost before a value was made a leaf."""
    if info.kind != "forced":
        return ()
    return tuple(
        m.cuts[number].node for number in sorted(info.upstream) if m.cuts[number].node is not info.node
    )


def _result(node: ast.AST, parents: Parents) -> str:
    """The name that is given to what was cut, also when it was weighted or taken out of a tuple before."""
    while not isinstance(node, ast.stmt) and node in parents:
        above = parents[node]
        if isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Add, ast.Sub)):
            return ""
        if isinstance(above, (ast.Call, ast.keyword)) and getattr(above, "func", None) is not node:
            return ""
        node = above
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return f"`{node.targets[0].id}`"
    return ""


def _freezes(m: Machine, judge: Judge, node: ast.AST, hidden: set[int], parents: Parents) -> bool:
    """Whether a `with torch.no_grad()` covers whole submodules as they were made: a way to freeze them."""
    if not isinstance(parents.get(node), ast.withitem):
        return False
    if {leaf & ~1 for leaf in hidden} <= judge.freezes.asked:
        return False  # they were made to train in so many words
    covered: set[int] = set()
    called = judge.under.get(node, set())
    for address, content in m.cells.items():
        if type(address) is not int or type(content) not in (Instance, Layer) or address & ~1 not in called:
            continue
        found = members(m, Ref(address))
        leaves = {ref.address for _, ref in found.parameters}
        if not leaves.isdisjoint(hidden) and _was_thinned(judge, m.site_of(address), leaves - hidden):
            return False  # what was left when the rest was frozen is to train
        if not leaves or not leaves <= hidden:
            continue
        if any(ref.address & ~1 in judge.changed and members(m, ref).parameters for _, ref in found.modules):
            return False
        covered |= leaves
    return hidden <= covered


def _was_thinned(judge: Judge, made: ast.AST | None, others: set[int]) -> bool:
    """Whether some parameters of a module were frozen by their flag after the module was made, and not by itself."""
    flags = [judge.freezes.frozen.get(leaf & ~1) for leaf in others if not _trains(judge.machine, leaf)]
    return made is not None and any(flag is not None and made not in flag.calls for flag in flags)


def cut_subject(node: ast.AST, parents: Parents) -> ast.AST | None:
    """What is cut: a method's receiver, a function's argument, or the first statement that runs without grad mode."""
    item = parents.get(node)
    block = parents.get(item) if isinstance(item, ast.withitem) else item
    if isinstance(block, (ast.With, ast.AsyncWith)) or (
        isinstance(block, ast.FunctionDef) and node in block.decorator_list
    ):
        return block.body[0]
    match node:
        case ast.Call(func=ast.Attribute(value=receiver), args=[]):
            return receiver
        case ast.Call(args=[first, *_]):
            return first
        case ast.Attribute(value=receiver):
            return receiver
        case ast.Compare(left=left) | ast.BinOp(left=left):
            return left
    return None


def _trains(m: Machine, leaf: int) -> bool:
    state = m.cells.get(leaf)
    return type(state) is Tensor and state.requires_grad == YES


def _is_parameter(m: Machine, leaf: int) -> bool:
    state = m.cells.get(leaf)
    return type(state) is Tensor and bool(state.parameter & YES)


def _leaf_name(m: Machine, leaf: int) -> str:
    state = m.cells.get(leaf)
    return state.origin.text if type(state) is Tensor and state.origin is not None else "a parameter"
