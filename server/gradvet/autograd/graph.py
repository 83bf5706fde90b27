"""The graph: making nodes, walking them, and what a backward does to them."""

import ast
from collections.abc import Iterable, Iterator

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import INFERRING, MAYBE, NO, NOTHING, YES, Graphed, Node, Tensor
from gradvet.autograd.memory.values import (
    Value,
)

NodesAndLeaves = tuple[frozenset[int], frozenset[int]]

GRADIENT = "grad()"
"""The name of the node that made a gradient."""
MOST_NODES = 4000
MOST_DEEP = 6
UNKNOWN = "?"
"""The name of the node that made something of which only its backward is known."""
MOST_ALTERNATIVES = 6
MOST_BEHIND = 24


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


def add_node(
    m: Machine,
    address: int,
    name: str,
    site: ast.AST,
    inputs: Iterable[Tensor],
    saved: frozenset[int] = NOTHING,
    keeps: int = MAYBE,
    *,
    all_known: bool = True,
    higher: int = MAYBE,
    graphed: frozenset[Graphed] = frozenset(),
    surely_to: NodesAndLeaves | None = None,
) -> None:
    """Make the node of an op.

    `all_known` is False when something unknown among its arguments may be an input too. Where a backward need not come
    to inputs that require grad, `surely_to` are the nodes and leaves to which it must.
    """
    nodes, leaves, surely = NOTHING, NOTHING, NOTHING
    asking = [state for state in inputs if state.requires_grad & YES]
    for state in asking:
        surely |= sure_leaf(state) if surely_to is None else NOTHING
        nodes = nodes | state.nodes if state.nodes else nodes
        if state.is_leaf & YES:
            leaves = leaves | state.leaves
    m.calls_of[site] = m.where()
    m.made_nodes += 1
    if m.packed is not None:
        saved = m.packed if saved else NOTHING
    key = node_key(address)
    sure, surely = (_sure(m, asking, all_known=all_known), surely) if surely_to is None else surely_to
    node = Node(
        name,
        site,
        nodes,
        leaves,
        saved,
        NO,
        keeps,
        sure,
        sure_leaves=surely,
        higher=higher,
        graphed=graphed,
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
    ends = _ends(asked, address)
    return YES if all(gradient_surely_asks(m, root, frozenset({end})) for end in ends) else MAYBE


def _ends(asked: Tensor, address: int) -> frozenset[int]:
    """Where the way of a gradient ends for a tensor at an address: at the node that made it, or at the leaf."""
    return asked.nodes if asked.is_leaf == NO else frozenset({address})


def gradient_surely_asks(m: Machine, root: Tensor, ends: frozenset[int]) -> bool:
    """Whether the gradient that comes from a root to an end has a graph of its own on one way that it surely takes."""
    between = surely_between(m, root, ends)
    return any(node.higher == YES for node in between.values()) or any(_on_the_way(between, ends))


def _on_the_way(between: dict[int, Node], ends: frozenset[int]) -> Iterator[Graphed]:
    """The graphs that gradients get on a way that they surely take."""
    for node in between.values():
        for one in node.graphed:
            at = one.input
            if (at in between or at in ends) and (at in node.sure or at in node.sure_leaves):
                yield one


def gradient_leads_to(m: Machine, root: Tensor, target: Value) -> NodesAndLeaves:
    """The nodes and the leaves to which the graph of a gradient of `root` for a target surely leads."""
    asked, address = m.tensor(target), m.only(target)
    if asked is None or not address:
        return NOTHING, NOTHING
    ends = _ends(asked, address)
    if len(ends) != 1 or gives_zero(m, leading_to(reachable(m, root.nodes), [asked])):
        return NOTHING, NOTHING
    graphs = list(_on_the_way(surely_between(m, root, ends), ends))
    return frozenset(one.node for one in graphs if one.node), frozenset(
        one.leaf for one in graphs if one.leaf
    )


def add_gradient_node(
    m: Machine, address: int, site: ast.AST, roots: list[Tensor], target: Value, others: list[Tensor]
) -> None:
    """Make the node of a gradient of some roots, which has a graph, and into which some others have gone.

    It may lead to whatever is behind the roots, and leads to what the gradient was computed from: that for one factor
    of a product to the other one.
    """
    surely_to = gradient_leads_to(m, roots[0], target) if len(roots) == 1 else (NOTHING, NOTHING)
    keeps = YES if any(surely_to) else MAYBE
    add_node(m, address, GRADIENT, site, [*roots, *others], keeps=keeps, surely_to=surely_to)


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
    # What was made again on top of itself leads to what it was before, and not to what it is.
    first = [at for at, node in found.items() if node.leaves & leaves or node.inputs & (nodes - {at & ~1})]
    wanted = going_on_from(found, first)
    return {address: node for address, node in found.items() if address in wanted}


def going_on_from(found: dict[int, Node], first: list[int]) -> set[int]:
    """Some nodes, and those of all that were found that are computed from one of them."""
    reached, queue = set[int](), list(first)
    users: dict[int, list[int]] = {}
    for address, node in found.items() if first else ():
        for at in node.inputs:
            users.setdefault(at, []).append(address)
    while queue:
        address = queue.pop()
        if address not in reached:
            reached.add(address)
            queue += users.get(address, ())
    return reached


def gradients_made(m: Machine, *, handed: bool) -> int:
    """Whether the gradients of a backward are inference tensors; those that it was `handed` may be given back."""
    made = NO if not m.mode & INFERRING else MAYBE if m.mode & ~INFERRING else YES
    m.gradients_made = made | NO if handed else made
    return m.gradients_made


def _is_handed_gradients(site: ast.AST, how: str) -> bool:
    """Whether a call of backward is given gradients to start from, beside the root or as a method of it."""
    if not isinstance(site, ast.Call):
        return False
    words = {keyword.arg for keyword in site.keywords}
    return len(site.args) > (how != "backward()") or not words.isdisjoint({"gradient", "grad_tensors", None})
