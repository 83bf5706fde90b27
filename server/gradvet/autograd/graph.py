"""The graph: making nodes, walking them, and what a backward does to them."""

import ast
from collections.abc import Callable, Iterable

from gradvet.autograd.events import Backward, Cut
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import INFERENCE, MAYBE, NO, NO_FN, NOTHING, YES, Node, Origin, Tensor
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    Const,
    Dict,
    Distribution,
    Instance,
    Layer,
    Number,
    Opaque,
    Ref,
    Sequence,
    Tuple,
    Union,
    Value,
    atoms,
)

MOST_NODES = 4000
MOST_DEEP = 6
UNKNOWN = "?"
"""The name of the node that made something of which only its backward is known."""
MOST_ALTERNATIVES = 6
MOST_BEHIND = 24

AFTER_BACKWARD: list[Callable[..., None]] = []
"""What else happens when a backward passes by: hooks."""


def node_key(address: int) -> tuple[int, str]:
    """The cell in which a graph node lies."""
    return (address, "#node")


def version_key(storage: int) -> tuple[int, str]:
    """The cell that counts the in-place changes of a storage."""
    return (storage, "#version")


def spoiled_key(address: int) -> tuple[int, str]:
    """The cell that holds the edits (a bit set) of what a node has saved, made behind the version counter or not."""
    return (address, "#spoiled")


def changed_key(address: int) -> tuple[int, str]:
    """The cell that holds the changes (a bit set) of what a node has saved that the version counter tells of."""
    return (address, "#changed")


def unknown_key(address: int) -> tuple[int, str]:
    """The cell that holds the arguments of an op of which nothing was known."""
    return (address, "#unknown")


LEARN: list[Callable[[Machine, Value, ast.AST], None]] = []
"""What is learnt of a value from which a backward starts; registered by the part of the library that does it."""


def add_node(
    m: Machine,
    address: int,
    name: str,
    site: ast.AST,
    inputs: Iterable[Tensor],
    saved: frozenset[int] = NOTHING,
    keeps: int = MAYBE,
    before: frozenset[int] = NOTHING,
    *,
    all_known: bool = True,
    higher: int = MAYBE,
) -> None:
    """Make the node of an op. `before` are nodes that it follows besides those of its inputs.

    `all_known` is False when something unknown among its arguments may be an input too.
    """
    nodes, leaves, surely = before, NOTHING, NOTHING
    asking = [state for state in inputs if state.requires_grad & YES]
    for state in asking:
        surely |= sure_leaf(state)
        nodes = nodes | state.nodes if state.nodes else nodes
        if state.is_leaf & YES:
            leaves = leaves | state.leaves
    m.calls_of[site] = m.where()
    m.made_nodes += 1
    key = node_key(address)
    node = Node(
        name,
        site,
        nodes,
        leaves,
        saved,
        NO,
        keeps,
        _sure(m, asking, all_known=all_known),
        sure_leaves=surely,
        higher=higher,
    )
    if m.judge is not None:
        m.judge.walks.made(address, node)
    if m.loops:
        m.loops[-1].allocs.add(address)
    old = m.cells.get(key)
    if old is not None and address in nodes:  # made again on top of itself
        again = node.sure - {address} | old.sure if address in node.sure else node.sure
        node = m.store.union((old, node._replace(sure=again)))
    m.store.set(key, node)
    for part in (spoiled_key(address), changed_key(address)):
        if part in m.cells:
            m.store.set(part, None)


def _sure(m: Machine, asking: list[Tensor], *, all_known: bool) -> frozenset[int]:
    """The nodes that a backward through a node surely visits.

    Those of inputs that require grad; and when only one input may, it does, or there were no node.
    """
    only = all_known and len(asking) == 1
    return NOTHING.union(*(sure_nodes(m, s) for s in asking if only or s.requires_grad == YES))


def sure_nodes(m: Machine, state: Tensor) -> frozenset[int]:
    """Of the nodes that may have made a tensor, those that a backward from it visits whichever it was.

    None when the tensor may be a leaf.
    """
    computed = state.is_leaf == NO or (state.requires_grad == MAYBE and state.parameter == NO)
    if not computed:
        return NOTHING
    if len(state.nodes) <= 1:
        return state.nodes
    if len(state.nodes) > MOST_ALTERNATIVES:
        return NOTHING
    common = NOTHING
    for number, address in enumerate(state.nodes):
        behind = _surely_behind(m, address)
        common = behind if number == 0 else common & behind
    return common & state.nodes or common


def _surely_behind(m: Machine, address: int) -> frozenset[int]:
    """A node and the nearest of those that a backward through it must visit."""
    found = {address: None}
    queue = [address]
    for at in queue:
        node = m.cells.get(node_key(at))
        if type(node) is Node and len(found) < MOST_BEHIND:
            new = [inner for inner in node.sure if inner not in found]
            found.update(dict.fromkeys(new))
            queue += new
    return frozenset(found)


def sure_leaf(state: Tensor) -> frozenset[int]:
    """The leaf that a tensor surely is, if its gradient is asked for."""
    surely = state.requires_grad == state.is_leaf == YES and len(state.leaves) == 1
    return state.leaves if surely else NOTHING


def leads_to(m: Machine, root: Tensor, target: Tensor, address: int) -> int:
    """Whether a gradient of `root` comes to `target`, which lies at an address."""
    found = reachable(m, root.nodes)
    own = frozenset({address}) if target.is_leaf & YES else NOTHING
    met = frozenset(found).union(root.leaves if root.is_leaf & YES else NOTHING)
    met = met.union(*(node.leaves for node in found.values()))
    if not met & (target.nodes | own):
        return NO
    way = target.nodes if target.is_leaf == NO and len(target.nodes) == 1 else own
    sure = surely_visited(m, root, found)
    return YES if any(at in sure and not at & 1 for at in way) else MAYBE


def reachable(m: Machine, roots: frozenset[int]) -> dict[int, Node]:
    """All nodes that a backward from here would visit."""
    found: dict[int, Node] = {}
    stack = list(roots)
    while stack and len(found) < MOST_NODES:
        address = stack.pop()
        if address in found:
            continue
        node = m.cells.get(node_key(address))
        if type(node) is Node:
            found[address] = node
            stack.extend(node.inputs)
    return found


def gradient_asks(m: Machine, root: Tensor, target: Value) -> int:
    """Whether a gradient of `root` has a graph of its own: an op on its way keeps a tensor that requires grad."""
    asked, address = m.tensor(target), m.only(target)
    if asked is None or not address:
        return MAYBE
    way = leading_to(reachable(m, root.nodes), [asked])
    if all(node.higher == NO for node in way.values()):
        return NO
    if gives_zero(m, way):
        return MAYBE
    ends = asked.nodes if asked.is_leaf == NO else frozenset({address})
    return YES if any(node.higher == YES for node in surely_between(m, root, ends).values()) else MAYBE


def gives_zero(m: Machine, way: Iterable[int]) -> bool:
    """Whether a gradient may be made anew as a zero on its way, which depends on nothing that came before."""
    return not m.zeroing.isdisjoint(at & ~1 for at in way)


def surely_between(m: Machine, root: Tensor, ends: frozenset[int]) -> dict[int, Node]:
    """The nodes by which one surely comes from a root to an end, the end not among them."""
    found, start = reachable(m, root.nodes), sure_nodes(m, root)
    after: dict[int, list[int]] = {}
    stack, seen = list(start), set(start)
    while stack:
        at = stack.pop()
        node = found.get(at)
        for to in node.sure | node.sure_leaves if node is not None and at not in ends else ():
            after.setdefault(to, []).append(at)
            if to not in seen:
                seen.add(to)
                stack.append(to)
    back, met = list(ends & seen), set(ends & seen)
    while back:
        for at in after.get(back.pop(), ()):
            if at not in met:
                met.add(at)
                back.append(at)
    return {at: found[at] for at in met - ends if at in found}


def surely_reached(m: Machine, found: dict[int, Node], root: Tensor) -> list[int]:
    """Of the nodes that a backward from here may visit, those that it must, nearest first."""
    reached: dict[int, None] = dict.fromkeys(sorted(sure_nodes(m, root) & found.keys()))
    queue = list(reached)
    for address in queue:
        new = [at for at in sorted(found[address].sure) if at in found and at not in reached]
        reached.update(dict.fromkeys(new))
        queue.extend(new)
    return queue


def surely_visited(m: Machine, root: Tensor, found: dict[int, Node]) -> frozenset[int]:
    """Of the nodes and leaves that a backward from here may come by, those that it must."""
    reached = surely_reached(m, found, root)
    return sure_leaf(root).union(reached, *(found[at].sure_leaves for at in reached))


def leading_to(found: dict[int, Node], inputs: list[Tensor]) -> dict[int, Node]:
    """Of some nodes, those that a gradient for these inputs runs through: `autograd.grad` visits no others."""
    nodes = NOTHING.union(*(state.nodes for state in inputs))
    leaves = NOTHING.union(*(state.leaves for state in inputs if state.is_leaf & YES))
    users: dict[int, list[int]] = {}
    for address, node in found.items():
        for at in node.inputs:
            users.setdefault(at, []).append(address)
    wanted: dict[int, None] = {}
    # What was made again on top of itself leads to what it was before, and not to what it is.
    queue = [at for at, node in found.items() if node.leaves & leaves or node.inputs & (nodes - {at & ~1})]
    while queue:
        address = queue.pop()
        if address not in wanted:
            wanted[address] = None
            queue += users.get(address, ())
    return {address: node for address, node in found.items() if address in wanted}


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
    anew from its base when this was changed, so that nothing that was kept goes with it. A root that is `chosen`
    is one of several, of which the program has made the one that it needs: where it is there, it is the root.
    """
    found = reachable(m, root.nodes)
    ends, own = NOTHING, NOTHING
    if inputs is not None:
        ends = NOTHING.union(*(state.nodes for state in inputs))
        # Of a tensor that was made at one of several places, the way leads to one of them.
        certain = certain and all(len({at & ~1 for at in state.nodes}) <= 1 for state in inputs)
        made = (state.nodes for state in inputs if accumulates and state.view == NO)
        own = NOTHING.union(*made)
        found = leading_to(found, inputs) | {at: found[at] for at in sorted(own) if at in found}
    sure = surely_reached(m, found, root) if certain else []
    if m.judge is not None:
        m.judge.walks.passed(site, root, found, sure, keeps=keep)
        m.judge.consumed(found, sure)
        for address, node in found.items():
            spoiled = m.cells.get(spoiled_key(address))
            if spoiled is not None:
                m.judge.needed_spoiled(spoiled, node)
    if not keep:
        # What made the end of the way is come by only where it also stands for what was made there before.
        visited = set() if _is_one_of_many(m, root) else set(sure) - (ends - own)
        for address, node in found.items():
            freed = YES if (certain or chosen) and address not in ends - own else node.freed | YES
            gone = YES if address in visited else node.gone | YES
            if freed != node.freed or gone != node.gone:
                m.store.set(node_key(address), node._replace(freed=freed, gone=gone))
    return found


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
    born = m.loops[-1].allocs if m.loops else NOTHING
    return bool(m.loops and root.nodes) and all(at & 1 and at & ~1 not in born for at in root.nodes)


def held_tensors(m: Machine, value: Value, depth: int = 0) -> list[tuple[Ref, Tensor]]:
    """The tensors in a value: itself, or the elements of containers, or what an unknown call was given."""
    found: list[tuple[Ref, Tensor]] = []
    _hold(m, value, depth, {}, found)
    return found


_HOLDING = frozenset({Sequence, Dict, Distribution, Instance})


def _hold(
    m: Machine, value: Value, depth: int, entered: dict[int, int], found: list[tuple[Ref, Tensor]]
) -> None:
    """Add the tensors in a value; containers that were entered before, no deeper than now, are not entered again."""
    if depth > MOST_DEEP:
        return
    for atom in atoms(value):
        if type(atom) is Tuple:
            for item in atom.items:
                _hold(m, item, depth + 1, entered, found)
            continue
        for ref in (atom,) if type(atom) is Ref else getattr(atom, "refs", ()):
            content = m.cells.get(ref.address)
            if type(content) is Tensor:
                found.append((ref, content))
            elif type(content) in _HOLDING and entered.get(ref.address, MOST_DEEP + 1) > depth:
                entered[ref.address] = depth
                inner = depth + 2 if type(content) is Instance else depth + 1
                for item in _parts(m, ref, depth):
                    _hold(m, item, inner, entered, found)


def surely_asks(m: Machine, value: Value, depth: int = 0) -> bool:
    """Whether a tensor that requires grad is in a value whichever of its alternatives is the one.

    Alternatives that hold no tensor do not count.
    """
    state = m.tensor(value)
    if state is not None or depth > MOST_DEEP:
        return state is not None and state.requires_grad == YES
    if type(value) is Union:
        held = [atom for atom in value.atoms if held_tensors(m, atom, depth)]
        return bool(held) and all(surely_asks(m, atom, depth + 1) for atom in held)
    if type(value) is Tuple:
        return any(surely_asks(m, item, depth + 1) for item in value.items)
    refs = (value,) if type(value) is Ref else getattr(value, "refs", ())
    return bool(refs) and all(
        any(surely_asks(m, item, depth + 1) for item in _parts(m, ref, depth)) for ref in refs
    )


def _parts(m: Machine, ref: Ref, depth: int) -> list[Value]:
    """What a container holds; or an object that is no module, inside something else."""
    match m.cells.get(ref.address):
        case Sequence(items=items, rest=rest):
            parts = [*(items or ()), rest]
        case Dict(items=pairs, rest=rest):
            parts = [*(v for _, v in pairs), rest]
        case Distribution(inputs=inputs):
            parts = [value for _, value in inputs]
        case Instance(owner=owner) if not m.classes[owner].is_module and depth:
            parts = [m.cells.get((ref.address, name)) for name in m.attributes.get(ref.address & ~1, ())]
        case _:
            return []
    return [part for part in parts if part is not None and type(part) is not Const]


def opaque_inputs(m: Machine, *values: Value) -> list[Tensor]:
    """The tensors that went into calls which could not be followed, on the way to these values."""
    found: list[tuple[Ref, Tensor]] = []
    entered: dict[int, int] = {}
    gone_into: set[int] = set()
    level = list(values)
    for _ in range(MOST_DEEP):
        inner: list[Value] = []
        for atom in (atom for one in level for atom in atoms(one)):
            address = getattr(atom, "address", -1)
            content = m.cells.get(address)
            if type(content) is Opaque and address not in gone_into:
                gone_into.add(address)
                inner += content.inputs
        if not inner:
            break
        level = list(dict.fromkeys(inner))
        for item in level:
            _hold(m, item, 0, entered, found)
    return list({ref.address: state for ref, state in found}.values())


MOST_TERMS = 6


def added_numbers(m: Machine, value: Value, depth: int = 0) -> frozenset[int]:
    """The cuts of numbers that were added to something unknown, also where they were weighted before."""
    cuts = NOTHING
    for atom in atoms(value):
        content = m.cells.get(getattr(atom, "address", -1))
        if type(atom) is Number:
            cuts |= atom.cuts
        elif type(content) is Opaque and depth < MOST_TERMS:
            match content.origin.node if content.origin is not None else None:
                case ast.BinOp(op=ast.Add() | ast.Sub()):
                    parts = content.inputs
                case ast.BinOp(op=ast.Mult() | ast.Div()) if all(
                    is_weight(m, part) for part in content.inputs
                ):
                    parts = content.inputs
                case _:
                    parts = ()
            for part in parts:
                cuts |= added_numbers(m, part, depth + 1)
    return cuts


_DATA = ("argument ", "a batch")
"""How the reasons begin of what a function, or a loop in it, is given."""


def is_data(m: Machine, value: Value) -> bool:
    """Whether something unknown was given and not computed: arguments and what lies in them carry no graph."""
    contents = [m.cells.get(getattr(atom, "address", -1)) for atom in atoms(value)]
    return all(type(content) is Opaque and content.reason.startswith(_DATA) for content in contents)


def is_of_data(m: Machine, value: Value, depth: int = 0) -> bool:
    """Whether a tensor was computed of what was given and of constants alone: it requires grad only if data does."""
    state, address = m.tensor(value), m.only(value)
    node, unknown = m.cells.get(node_key(address)), m.cells.get(unknown_key(address))
    if state is None or state.requires_grad != MAYBE or state.leaves or type(node) is not Node:
        return False
    return (
        depth <= MOST_TERMS
        and address in state.nodes
        and all(is_made_of_data(m, part) for part in (unknown.items if type(unknown) is Tuple else ()))
        and all(is_of_data(m, Ref(at), depth + 1) for at in node.inputs)
    )


def is_made_of_data(m: Machine, value: Value, depth: int = 0) -> bool:
    """Whether something unknown was given, or is what a method of a tensor makes of what was given: `target.sum()`."""
    if is_data(m, value):
        return True
    content = m.cells.get(getattr(value, "address", -1))
    if type(content) is not Opaque or content.origin is None or depth > MOST_TERMS:
        return False
    match content.origin.node:
        case ast.Call(func=ast.Attribute(attr=name)) if load().method(name) is not None:
            return all(is_made_of_data(m, part, depth + 1) for part in content.inputs if type(part) is Ref)
    return False


def is_weight(m: Machine, value: Value, depth: int = 0) -> bool:
    """Whether a factor may be a weight: a number, something that was given, an attribute, or computed from such."""
    contents = [m.cells.get(getattr(atom, "address", -1), atom) for atom in atoms(value)]
    return all(
        type(content) in (Const, Number)
        or (
            type(content) is Opaque
            and (content.reason.startswith((*_DATA, "a part of")) or _is_of_weights(m, content, depth))
        )
        for content in contents
    )


def _is_of_weights(m: Machine, content: Opaque, depth: int) -> bool:
    node = content.origin.node if content.origin is not None else None
    return (
        isinstance(node, (ast.BinOp, ast.UnaryOp))
        and depth < MOST_TERMS
        and all(is_weight(m, part, depth + 1) for part in content.inputs)
    )


def unknown_behind(m: Machine, *values: Value) -> frozenset[int]:
    """What values of which little is known were computed from: results of unknown calls, and what was called."""
    if m.judge is None:
        return NOTHING
    found: set[int] = set()
    unknown_of = m.judge.cut_notes.unknown_of
    gone_into: set[int] = set()
    level = list(values)
    for depth in range(MOST_DEEP + 1):
        inner: list[Value] = []
        for atom in (atom for one in level for atom in atoms(one)):
            address = getattr(atom, "address", -1)
            content = m.cells.get(address)
            if type(content) is Tensor:
                if address not in gone_into:
                    gone_into.add(address)
                    found |= unknown_of.get(address & ~1, NOTHING)
            elif type(content) is Opaque and address not in gone_into:
                results = content.reason.startswith("the result of")
                if results:
                    found.add(address & ~1)
                    called = getattr(content.inputs[0], "address", -1) if content.inputs else -1
                    if type(m.cells.get(called)) in (Opaque, Layer):
                        found.add(called & ~1)
                if results or depth:
                    gone_into.add(address)
                    inner += content.inputs
        if not inner:
            break
        level = list(dict.fromkeys(inner))
    return frozenset(found)


def unknown_cut(m: Machine, value: Value, kind: str, words: str, site: ast.AST) -> frozenset[int]:
    """The cuts of a value of which only this is known, that it was cut here: it may have had a graph."""
    cuts, leaves, nodes = NOTHING, NOTHING, NOTHING
    for state in opaque_inputs(m, value):
        cuts |= state.cuts
        if state.requires_grad & YES:
            leaves, nodes = leaves | state.leaves, nodes | state.nodes
    number = m.cut(kind, words, site, leaves, nodes, cuts)
    if m.judge is not None:
        m.judge.cut_notes.behind.setdefault(number, set()).update(unknown_behind(m, value))
    return cuts | {number}


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
            m.judge.cut_notes.from_unknown(site, behind | unknown_behind(m, root))
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
        if asked and not surely_asks(m, inputs):
            comes = {address: truth | NO for address, truth in comes.items()}
    return {address: truth for address, truth in comes.items() if truth & YES}


def _asks_now(m: Machine, leaf: int) -> int:
    """Whether a leaf requires grad at this moment."""
    state = m.cells.get(leaf)
    return state.requires_grad if type(state) is Tensor else MAYBE


def gradients_made(m: Machine, *, handed: bool) -> int:
    """Whether the gradients of a backward are inference tensors; those that it was `handed` may be given back."""
    made = YES if m.mode == INFERENCE else MAYBE if m.mode & INFERENCE else NO
    m.gradients_made = made | NO if handed else made
    return m.gradients_made


def _is_handed_gradients(site: ast.AST, how: str) -> bool:
    """Whether a call of backward is given gradients to start from, beside the root or as a method of it."""
    if not isinstance(site, ast.Call):
        return False
    words = {keyword.arg for keyword in site.keywords}
    return len(site.args) > (how != "backward()") or not words.isdisjoint({"gradient", "grad_tensors", None})


def _gradient(m: Machine, site: ast.AST, leaf: int, *, certain: bool, inference: int) -> None:
    """What a backward reaches has a gradient from now on: a tensor without a graph."""
    key = (leaf, "grad")
    before = m.cells.get(key, NONE)
    there = [atom for atom in atoms(before) if atom != NONE]  # to what is there already it is added
    surely = certain and not leaf & 1
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
    m.store.set((leaf, "grad"), ref)
    m.grads.add(ref.address)
    state = Tensor(
        requires_grad=asks,
        is_leaf={YES: NO, NO: YES}.get(asks, MAYBE),
        grad_fn={YES: frozenset({"*"}), NO: NO_FN}.get(asks, NO_FN | {"*"}),
        storage=frozenset({ref.address}) | m.given_back,
        nodes=root.nodes if asks & YES else NOTHING,
        leaves=root.leaves if asks & YES else NOTHING,
        view=MAYBE,
        origin=Origin(site, "backward(create_graph=True)"),
    )
    m.store.set(ref.address, state)


def _is_true(value: Value | None) -> bool:
    return type(value) is Const and bool(value.value)
