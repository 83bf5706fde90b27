"""Loops: the first and the second iteration exactly, then all later ones to a fixpoint."""

import ast
from collections.abc import Callable

from gradvet.autograd.graph import node_key
from gradvet.autograd.library import batches
from gradvet.autograd.machine import MOST_PASSES, Loop, Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES, Node, Tensor
from gradvet.autograd.memory.store import Delta
from gradvet.autograd.memory.values import (
    Dict,
    Each,
    Instance,
    Layer,
    Mode,
    Optimizer,
    Range,
    Ref,
    Sequence,
    Tuple,
    Value,
    join_all,
)
from gradvet.autograd.python.calls import begin
from gradvet.autograd.python.contexts import in_mode
from gradvet.autograd.python.control import narrow, truth
from gradvet.autograd.python.names import builds_modules, lookup, named
from gradvet.autograd.python.objects import (
    ELEMENTS,
    are_parameters,
    assign,
    element_of,
    is_thinned,
    items_of,
    least,
    refresh,
)

MOST_UNROLLED = 4
MOST_FOLLOWED = 8  # of a list that grows meanwhile
MOST_NAMED = 60  # `Machine.numbered` has place for so many


def run_for(m: Machine, node: ast.For) -> bool:
    """Run a `for` loop; whether its end is reached."""
    source = m.eval(node.iter)
    if type(source) is Ref:
        begin(m, source)
    waits = m.cells.get((getattr(source, "address", -1), "#mode"))
    if type(waits) is Mode:
        # The generator waits inside a `with torch.no_grad()` of its own while the body runs.
        m.mode_nodes.append(waits.node)
        alive = in_mode(m, waits.after(m.mode), m.mode, lambda: _run_over(m, node, source))
        m.mode_nodes.pop()
        return alive
    return _run_over(m, node, source)


def _run_over(m: Machine, node: ast.For, source: Value) -> bool:
    items = items_of(m, source)
    content = m.cells.get(getattr(source, "address", -1))
    if type(content) is Range and content.values and not m.of_many and builds_modules(m, node):
        return _unrolled(m, node, content.values)  # each round makes layers of its own
    if type(content) is Range and _picks(m, node, content.values):
        return _unrolled(m, node, content.values)
    if items is not None:
        if not items:
            return m.block(node.orelse) if node.orelse else True
        merged = _each(m, items) if _is_members(m, source) or are_parameters(m, items) else None
        if merged is not None and _told_apart(m, items) and _may_unroll(m, node, items, MOST_NAMED):
            return _unrolled(m, node, items)
        if merged is not None:
            begin = _each_once(m, merged)

            def enter() -> None:
                begin()
                assign(m, node.target, merged, node)

            return _repeat(m, node, enter, surely=True)
        if _may_unroll(m, node, items, MOST_UNROLLED):
            return _unrolled(m, node, items, source)

    def following() -> None:
        refresh(m, source)
        element = element_of(m, source, node.iter)
        assign(m, node.target, _made_anew(m, node, element) if is_generator else element, node)

    is_generator = type(content) is Sequence and content.kind == "generator"
    if type(content) is Sequence or type(content) in ELEMENTS:
        return _repeat(m, node, following, may_skip=is_thinned(m, source) or least(m, source) == 0)
    element = element_of(m, source, node.iter)
    return _repeat(m, node, lambda: assign(m, node.target, element, node), may_skip=least(m, source) == 0)


def _picks(m: Machine, node: ast.For, numbers: tuple[Value, ...]) -> bool:
    """Whether a loop over a few numbers takes with each what trains out of a list: `optimizers[i].step()`."""
    name = node.target.id if isinstance(node.target, ast.Name) else ""
    if not numbers or len(numbers) > MOST_UNROLLED:
        return False
    for part in (part for statement in node.body for part in ast.walk(statement)):
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Name) and part.slice.id == name:
            held = m.cells.get(getattr(_held(m, part.value), "address", -1))
            items = (held.items or ()) if type(held) is Sequence else ()
            contents = [m.cells.get(getattr(item, "address", -1)) for item in items]
            if (type(held) is Layer and held.children) or any(_trains(content) for content in contents):
                return m.may_unroll(node, len(numbers))
    return False


def _made_anew(m: Machine, node: ast.For, value: Value, tag: str = "") -> Value:
    """What a generator has trained with and then handed out: in each iteration it is another one."""
    if type(value) is Tuple:
        items = tuple(_made_anew(m, node, item, f"{tag}.{at}") for at, item in enumerate(value.items))
        return value._replace(items=items)
    content = m.cells.get(getattr(value, "address", -1))
    if type(content) is Dict:
        found = [(key, _made_anew(m, node, item, f"{tag} {key.value}")) for key, item in content.items]
        if all(item is old for (_, item), (_, old) in zip(found, content.items, strict=True)):
            return value
        return m.new(node, content._replace(items=tuple(found)), f"handed out{tag}")
    state = m.tensor(value) if type(value) is Ref else None
    made = m.cells.get(node_key(min(state.nodes))) if state is not None and len(state.nodes) == 1 else None
    if state is None or not state.has_graph or type(made) is not Node or made.freed != YES:
        return value
    address = m.address(node, f"handed out{tag}")
    m.store.set(node_key(address), made)
    m.place(address, state._replace(nodes=frozenset({address})))
    m.loops[-1].trains = True
    return Ref(address)


def _held(m: Machine, node: ast.expr) -> Value | None:
    """What a name, or an attribute of what a name stands for, holds, looked at without effects."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return m.cells.get((getattr(lookup(m, node.value.id), "address", -1), node.attr))
    return named(m, node)


def _trains(content: object) -> bool:
    if type(content) is Tensor:
        return content.requires_grad == YES
    return type(content) in (Layer, Instance, Optimizer)


def _told_apart(m: Machine, items: tuple[Value, ...]) -> bool:
    """Whether it matters which member is which: they have names, or are modules of several kinds."""
    if type(items[0]) is Tuple:
        return True
    return any(type(m.cells.get(getattr(item, "address", -1))) is not Tensor for item in items)


def _each_once(m: Machine, merged: Value) -> Callable[[], None]:
    """What to do when a pass over all tensors at once begins: each tensor is met in one pass only, as it was before."""
    columns = merged.items if type(merged) is Tuple else (merged,)
    met = [ref for column in columns if type(column) is Each for ref in column.refs]
    before = {ref.address: m.cells[ref.address] for ref in met if type(m.cells[ref.address]) is Tensor}

    def begin() -> None:
        for address, state in before.items():
            m.store.set(address, state)

    return begin if len(before) == len(met) else lambda: None


def _may_unroll(m: Machine, node: ast.For, items: tuple[Value, ...], most: int) -> bool:
    return len(items) <= most and m.may_unroll(node, len(items))


def _is_members(m: Machine, source: Value) -> bool:
    content = m.cells.get(getattr(source, "address", -1))
    return type(content) is Sequence and content.kind == "members"


def _each(m: Machine, items: tuple[Value, ...]) -> Value | None:
    """One value that stands for every item in turn, when they are parameters or modules (or pairs with one)."""
    first = items[0]
    if type(first) is Tuple and all(type(i) is Tuple and len(i.items) == len(first.items) for i in items):
        columns = [
            _each(m, column) or join_all(list(column))
            for column in zip(*(i.items for i in items), strict=False)
        ]
        return Tuple(tuple(columns))
    if all(type(i) is Ref and type(m.cells.get(i.address)) in (Tensor, Layer, Instance) for i in items):
        return items[0] if len(items) == 1 and not items[0].address & 1 else Each(tuple(dict.fromkeys(items)))
    return None


def _unrolled(m: Machine, node: ast.For, items: tuple[Value, ...], source: Value = None) -> bool:
    """Run the few iterations one after the other, each with addresses of its own.

    Of a list, or what shows the contents of a dict, each takes what is there then.
    """
    frame = m.frames[-1]
    base = m.store.mark()
    loop = Loop(None, base)
    frame.loops.append(loop)
    alive = True
    outer = m.unrolled
    m.unrolled *= len(items)
    for number in range(len(items) if source is None else MOST_FOLLOWED):
        loop.continues = []
        item = items[number] if source is None else _item_now(m, source, number, len(items), node)
        if item is None:
            break
        with m.numbered(node, number):
            assign(m, node.target, item, node)
            alive = m.block(node.body)
        alive = _go_on(m, loop, base, alive=alive)
        if not alive:
            break
    m.unrolled = outer
    frame.loops.pop()
    if alive and not loop.breaks:
        return m.block(node.orelse) if node.orelse else True
    ends = [m.store.delta(base)] if alive else []
    return _leave(m, node, base, ends, loop.breaks)


def _go_on(m: Machine, loop: Loop, base: int, *, alive: bool) -> bool:
    """Join the end of a body, if it was reached, with the `continue`s in it; whether anything goes on."""
    if not loop.continues:
        m.store.settle(base)
        return alive
    ends = [*loop.continues, *([m.store.delta(base)] if alive else [])]
    m.store.undo(base)
    m.store.merge(ends)
    return True


def _item_now(m: Machine, source: Value, number: int, count: int, node: ast.For) -> Value | None:
    """What an iteration meets; None when there is no more."""
    refresh(m, source)
    items = items_of(m, source)
    if items is not None:
        return items[number] if number < len(items) else None
    return element_of(m, source, node.iter) if number < count else None


def _leave(m: Machine, node: ast.For | ast.While, base: int, exits: list[Delta], breaks: list[Delta]) -> bool:
    """Join the ways out of a loop; those that did not break run its `else` first."""
    m.store.undo(base)
    ends = list(breaks)
    if exits:
        m.store.merge(exits)
        if not breaks:
            return m.block(node.orelse) if node.orelse else True
        if not node.orelse or m.block(node.orelse):
            ends.append(m.store.delta(base))
        m.store.undo(base)
    if not ends:
        return False
    m.store.merge(ends)
    return True


def run_while(m: Machine, node: ast.While) -> bool:
    """Run a `while` loop; whether its end is reached."""
    test = m.eval(node.test)
    batches.decides(m, node.test, test)
    first = truth(m, test)
    if first == NO:
        return m.block(node.orelse) if node.orelse else True
    may_skip = first == MAYBE and m.tensor(test) is not None  # who knows what values there are
    forever = isinstance(node.test, ast.Constant) and first == YES

    def enter() -> bool:
        return truth(m, m.eval(node.test)) != NO and narrow(m, node.test, True)

    alive = _repeat(m, node, enter, forever=forever, may_skip=may_skip)
    if alive and not forever:
        m.eval(node.test)
    return alive


def _repeat(
    m: Machine,
    node: ast.For | ast.While,
    enter: Callable[[], object],
    *,
    forever: bool = False,
    may_skip: bool = False,
    surely: bool = False,
) -> bool:
    """Run the body until nothing new is learned; join all ways out.

    A loop over something unknown is taken to run at least once: a program whose loader is empty has
    other worries, and to say "perhaps the loop never ran" of every total would say nothing. Some `surely` do.
    """
    frame = m.frames[-1]
    base = m.store.mark()
    loop = Loop(node, base)
    loop.may_skip = may_skip
    loop.context = frame.context
    frame.loops.append(loop)
    m.loops.append(loop)
    exits: list[Delta] = [{}] if may_skip else []
    breaks: list[Delta] = []
    born_ever: set[int] = set()
    previous: Delta | None = None
    seen = m.made_nodes
    around = m.loops[-2] if len(m.loops) > 1 else None
    place = (node, frame.context)
    for number in range(1, MOST_PASSES + 1):
        loop.number = number
        loop.continues, loop.breaks = [], []
        entered = enter() is not False
        alive = entered and m.block(node.body)
        born = {address for address in loop.allocs if not address & 1}
        born_ever |= born
        if loop.breaks:
            end = m.store.take(base)
            breaks += [m.aged(delta, born) for delta in loop.breaks]
            m.store.apply(end)
        if not _go_on(m, loop, base, alive=alive):
            break
        if m.judge is not None:
            m.judge.end_of_pass(loop)
        m.age(loop)
        m.store.settle(base)  # what follows goes through all that was changed, several times
        current = m.store.delta(base)
        if not forever:
            exits.append(current)
        if (m.alone or (m.imports is not None and m.imports.is_running)) and m.made_nodes == seen:
            # No graph was made, and the arguments are unknown anyway: what changed may be as before or as now.
            exits += [] if surely else [{}]
            break
        if (
            around is not None
            and place in around.settled
            and around.settled[place] == m.store.changes(around.base)
        ):
            break  # here the loop came to rest in an earlier iteration of the loop around it
        if previous is not None and _rests(m, base, previous, current):
            if around is not None:
                around.settled[place] = m.store.changes(around.base)
            break
        previous = current if previous is None else m.store.delta(base)
    else:
        m.unsettled.add(node)
        m.limit(f"a loop at line {node.lineno} did not settle in {MOST_PASSES} passes")
    frame.loops.pop()
    m.loops.pop()
    if m.loops:
        m.loops[-1].allocs |= born_ever
    return _leave(m, node, base, exits, breaks)


def _rests(m: Machine, base: int, previous: Delta, current: Delta) -> bool:
    """Join what the passes so far have left with what this one has; whether that is nothing new."""
    if current == previous:
        return True
    m.store.undo(base)
    m.store.merge([previous, current])
    return m.store.delta(base) == previous
