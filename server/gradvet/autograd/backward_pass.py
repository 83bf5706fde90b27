"""A backward pass: what it frees, which gradients it leaves, and who is told of it."""

import ast
from collections.abc import Callable, Iterable

from gradvet.autograd.events import Backward, Cut
from gradvet.autograd.graph import (
    _is_handed_gradients,
    add_gradient_node,
    gradient_asks,
    gradients_made,
    leading_to,
    leads_to,
    node_key,
    reachable,
    spoiled_key,
    surely_reached,
    surely_visited,
    unknown_key,
)
from gradvet.autograd.held import held_tensors, surely_asks, surely_held
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import ANY_FN, MAYBE, NO, NO_FN, NOTHING, YES, Node, Origin, Tensor
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    Const,
    Ref,
    Tuple,
    Value,
    atoms,
)
from gradvet.autograd.unknowns import added_numbers, is_of_data, opaque_inputs, unknown_behind

AFTER_BACKWARD: list[Callable[..., None]] = []
"""What else happens when a backward passes by: hooks."""


LEARN: list[Callable[[Machine, Value, ast.AST], None]] = []
"""What is learnt of a value from which a backward starts; registered by the part of the library that does it."""


def free(
    m: Machine,
    site: ast.AST,
    root: Tensor,
    *,
    certain: bool,
    keep: bool,
    inputs: list[Tensor] | None = None,
    chosen: bool = False,
    accumulates: bool = False,
) -> dict[int, Node]:
    """Let a backward pass through: the nodes it visits are freed unless they are kept.

    `inputs` are the tensors whose gradients are asked for; all leaves when it is None. A pass that `accumulates`
    gradients in them comes by the nodes that made them as well, which `autograd.grad` does not; that of a view is made
    anew from its base when this was changed, so that nothing that was kept goes with it. Of an op that torch makes of
    several it comes by the last, which need not be the one that kept something. A root that is `chosen`
    is one of several, of which the program has made the one that it needs: where it is there, it is the root.
    """
    found = reachable(m, root.nodes)
    ends, own, last = NOTHING, NOTHING, NOTHING
    if inputs is not None:
        ends = NOTHING.union(*(state.nodes for state in inputs))
        # Of a tensor that was made at one of several places, the way leads to one of them.
        certain = certain and all(len({at & ~1 for at in state.nodes}) <= 1 for state in inputs)
        made = [state for state in inputs if accumulates and state.view == NO]
        own = NOTHING.union(*(state.nodes for state in made))
        way = leading_to(found, inputs)
        last = NOTHING.union(*(state.nodes for state in made if not _surely_keeps(state))) - way.keys()
        found = way | {at: found[at] for at in sorted(own) if at in found}
    needed = found if inputs is None else _until(found, root.nodes, ends)
    sure = [at for at in surely_reached(m, found, root) if at in needed and at not in last] if certain else []
    if m.judge is not None:
        m.judge.walks.passed(site, root, found, sure, keeps=keep)
        m.judge.consumed(found, sure)
        for address, node in needed.items():
            spoiled = m.cells.get(spoiled_key(address))
            if spoiled is not None:
                m.judge.needed_spoiled(spoiled, node)
    if not keep:
        # What made the end of the way is come by only where it also stands for what was made there before.
        visited = set() if _is_one_of_many(m, root) else _not_of_many(m, sure) - (ends - own)
        for address, node in found.items():
            freed = YES if (certain or chosen) and address not in ends - own else node.freed | YES
            gone = YES if address in visited else node.gone | YES
            if freed != node.freed or gone != node.gone:
                m.store.set(node_key(address), node._replace(freed=freed, gone=gone))
    return found


def _surely_keeps(state: Tensor) -> bool:
    """Whether the very node that made a tensor keeps something for backward."""
    return state.grad_fn.isdisjoint({ANY_FN, None, *load().keeping_nothing})


def _until(found: dict[int, Node], roots: Iterable[int], ends: frozenset[int]) -> dict[int, Node]:
    """Of the nodes that lead to some ends, those by which one comes before an end: behind it one may have its name."""
    met: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        at = stack.pop()
        if at in found and at not in met:
            met[at] = found[at]
            stack.extend(() if at in ends else found[at].inputs)
    return met


def passed_by(
    m: Machine, site: ast.AST, visited: Iterable[int], creates: int, root: Tensor | None, *, accumulated: bool
) -> None:
    """Tell that a backward passes by nodes and leaves: before their gradients are there, or `accumulated`.

    `root` is where it surely starts, if that is known.
    """
    for tell in AFTER_BACKWARD:
        tell(m, site, visited, creates, root, accumulated=accumulated)


def _is_one_of_many(m: Machine, root: Tensor) -> bool:
    """Whether a loop comes by tensors that were made before it, of which one state stands for all."""
    return bool(m.loops and root.nodes) and not _not_of_many(m, root.nodes)


def _not_of_many(m: Machine, nodes: Iterable[int]) -> set[int]:
    """Of some nodes, those that are not of many made before the loop: its next iteration comes by others of them."""
    if not m.loops:
        return set(nodes)
    loop = m.loops[-1]
    return {at for at in nodes if not at & 1 or at & ~1 in loop.allocs or at & ~1 in loop.born}


def backward(
    m: Machine,
    site: ast.AST,
    root: Value,
    *,
    retain: Value | None,
    create: Value | None,
    how: str,
    inputs: Value | None = None,
) -> None:
    """A backward pass from `root`; with `inputs` only to these tensors, which alone get a gradient."""
    keeps = _is_true(retain) or (retain in (None, NONE) and _is_true(create))
    certain_keep = retain is None or type(retain) is Const
    inputs = None if inputs == NONE else inputs
    numbers, behind = m.nearest_cut(added_numbers(m, root)), unknown_behind(m, root)
    before, inference = m.tensor(root), gradients_made(m, handed=_is_handed_gradients(site, how))
    constant = before.dead if before is not None and is_of_data(m, root) else NOTHING
    for atom in m.alternatives(root):
        for learn in LEARN:
            learn(m, atom, site)
    states = m.tensors(root)
    joined = m.tensor(root)
    chosen = certain_keep and inputs is None and all(state.requires_grad == YES for _, state in states)
    for _, whole in states:
        if whole.requires_grad == NO:
            if m.judge is not None:
                m.judge.walks.retains.failed()
            continue
        certain = len(states) == 1 and certain_keep  # and it requires grad, or the line would raise
        ends = _ends(m, whole, inputs)
        wanted = _wanted(m, inputs)
        certain = certain and (inputs is None or wanted is not None)
        found = free(
            m, site, whole, certain=certain, keep=keeps, inputs=wanted, chosen=chosen, accumulates=True
        )
        state = whole if inputs is None else whole._replace(leaves=whole.leaves & ends.keys())
        creates = NO if create is None or create == FALSE else YES if _is_true(create) else MAYBE
        surely = len(states) == 1 and state.requires_grad == YES
        start = whole if surely and inputs is None else None
        passed_by(m, site, (*found, *state.leaves), creates, start, accumulated=False)
        for end, comes in ends.items():
            if creates != NO:
                asks = gradient_asks(m, whole, Ref(end)) if creates == comes == YES else MAYBE
                _gradient_with_graph(m, site, state, end, asks)
            else:
                _gradient(m, site, end, certain=surely and comes == YES, inference=inference)
        passed_by(m, site, state.leaves, creates, start, accumulated=True)
        if m.judge is not None:
            if creates == YES and state.leaves:
                m.judge.walks.created[site] = (m.where(), state)
            m.judge.walked(site, state, certain=surely)
            m.judge.reached(state.leaves, state.cuts, site)
            m.judge.reached_leaves |= _behind_unknown(m, found)
            m.judge.ineffective(state.dead | numbers, site)
            if constant:
                m.judge.constant_roots[site] = constant
            m.judge.cut_notes.rooted(state, site, found)
            m.judge.computed_from(site, behind | unknown_behind(m, root), keeps=keeps or not certain_keep)
            m.judge.roots |= state.nodes
        if joined is not None:
            m.emit(backward_event(m, site, joined, how, retains=keeps and certain_keep))
            joined = None
    if joined is not None:
        if m.judge is not None:
            m.judge.leaves.without_graph(joined, site)
        m.emit(backward_event(m, site, joined, how, retains=keeps and certain_keep))


def _wanted(m: Machine, inputs: Value | None) -> list[Tensor] | None:
    """The tensors whose gradients alone are asked for, where it is known which."""
    if inputs is None or not surely_asks(m, inputs):
        return None
    return [asked for _, asked in held_tensors(m, inputs)]


def _behind_unknown(m: Machine, nodes: Iterable[int]) -> frozenset[int]:
    """The leaves to which a gradient may come through calls that could not be followed, on the way of these nodes."""
    cells = [m.cells.get(unknown_key(at)) for at in nodes]
    items = dict.fromkeys(item for unknown in cells if type(unknown) is Tuple for item in unknown.items)
    return NOTHING.union(*(s.leaves for s in opaque_inputs(m, *items) if s.requires_grad & YES))


def backward_event(
    m: Machine,
    site: ast.AST,
    root: Tensor,
    how: str,
    *,
    retains: bool = False,
) -> Backward:
    """The event of a backward from a root in this state."""
    source = None
    if isinstance(site, ast.Call):
        if (
            isinstance(site.func, ast.Attribute)
            and site.func.attr == "backward"
            and (not site.args or site.func.value in m.states)
        ):
            source = site.func.value
        elif site.args:
            source = site.args[0]
    # What stops a gradient for good comes last on its way; a target's no_grad is seldom what is wrong.
    last = [c for c in m.last_cuts(root.cuts) if m.cuts[c].kind != "forced"]
    ordered = sorted(last, key=lambda number: (m.cuts[number].kind == "no_grad", number))
    cuts = tuple(Cut(m.cuts[c].kind, m.cuts[c].name, m.cuts[c].node) for c in ordered)
    return Backward(site, m.where(), root, m.mode, how, retains, source, cuts)


def _ends(m: Machine, root: Tensor, inputs: Value | None) -> dict[int, int]:
    """The addresses of the tensors that a backward gives a gradient, and whether it surely comes there.

    A leaf that requires grad no more gets none.
    """
    if inputs is None:
        sure = surely_visited(m, root, reachable(m, root.nodes))
        comes = {address: _asks_now(m, address) | (0 if address in sure else NO) for address in root.leaves}
    else:
        asked = held_tensors(m, inputs)
        comes = {ref.address: leads_to(m, root, state, ref.address) for ref, state in asked}
        held = surely_held(m, inputs) if surely_asks(m, inputs) else NOTHING
        comes = {address: truth if address in held else truth | NO for address, truth in comes.items()}
    return {address: truth for address, truth in comes.items() if truth & YES}


def _asks_now(m: Machine, leaf: int) -> int:
    """Whether a leaf requires grad at this moment."""
    state = m.cells.get(leaf)
    return state.requires_grad if type(state) is Tensor else MAYBE


def _gradient(m: Machine, site: ast.AST, leaf: int, *, certain: bool, inference: int) -> None:
    """What a backward reaches has a gradient from now on: a tensor without a graph."""
    key = (leaf, "grad")
    before = m.cells.get(key, NONE)
    there = [atom for atom in atoms(before) if atom != NONE]  # to what is there already it is added
    surely = certain and not leaf & 1
    if m.judge is not None:
        m.judge.kept_gradients.changes([atom.address for atom in there if type(atom) is Ref], site)
    if surely and len(there) == len(atoms(before)):
        return
    ref = m.place_part(leaf, "gradient", Tensor(view=MAYBE, origin=Origin(site, ".grad")))
    places, state = frozenset({ref.address}) | m.given_back, m.cells[ref.address]
    inference |= state.inference if there or leaf & 1 else 0
    if not places <= state.storage or inference != state.inference:
        m.store.set(ref.address, state._replace(storage=places, inference=inference))
    m.grads.add(ref.address)
    m.store.set(key, m.store.union((*(there if surely else atoms(before)), ref)))


def _gradient_with_graph(m: Machine, site: ast.AST, root: Tensor, leaf: int, asks: int) -> None:
    """`create_graph=True`: the gradient that a leaf gets has a graph of its own, if it depends on what asks for one."""
    ref = m.place_part(leaf, "gradient with a graph", Tensor(storage=frozenset({leaf})))
    before = [state for _, state in m.tensors(m.cells.get((leaf, "grad"), NONE))]
    if asks & YES:
        add_gradient_node(m, ref.address, site, [root], Ref(leaf), before)
    if m.judge is not None:
        m.judge.kept_gradients.left([ref.address])  # it is not added to in place
    m.store.set((leaf, "grad"), ref)
    m.grads.add(ref.address)
    state = Tensor(
        requires_grad=asks,
        is_leaf={YES: NO, NO: YES}.get(asks, MAYBE),
        grad_fn={YES: frozenset({"*"}), NO: NO_FN}.get(asks, NO_FN | {"*"}),
        storage=frozenset({ref.address}) | m.given_back,
        nodes=frozenset({ref.address}) if asks & YES else NOTHING,
        leaves=root.leaves.union(*(state.leaves for state in before)) if asks & YES else NOTHING,
        view=MAYBE,
        origin=Origin(site, "backward(create_graph=True)"),
    )
    m.store.set(ref.address, state)


def _is_true(value: Value | None) -> bool:
    return type(value) is Const and bool(value.value)
