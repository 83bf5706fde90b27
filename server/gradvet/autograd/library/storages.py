"""Storages: how often they were changed, who lies on them, who saved them, and the views and bases on them."""

from collections.abc import Callable

from gradvet.autograd.graph import node_key, version_key
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import ANY_FN, MAYBE, NO, NOTHING, YES, Alias, Node, Tensor, join_tensors
from gradvet.autograd.memory.values import Const, Each, Number, Ref, Value, atoms

_OWN_COUNTER = frozenset({"data", "numpy", "copy"})
"""The ways to share storage, by kind of alias, that go on with a version counter of their own."""
_MOST_DETACHED = 4
"""How often a tensor that was detached is looked for behind another."""


def version_of(m: Machine, storage: int) -> int:
    """How often a storage was changed in place; -1 when that is not known."""
    version = m.cells.get(version_key(storage))
    if version is None:
        return 0
    return version.value if type(version) is Const else -1


def count_change(m: Machine, state: Tensor, *, certain: bool = True) -> None:
    """A change is counted for each storage that a tensor may have; `.data` and arrays have counters of their own.

    One that may not have happened makes the count unknown.
    """
    own = _counter(m, state)
    if own is not None:
        m.store.set(_own_version_key(own), Number("int"))
        return
    for storage in state.storage:
        version = version_of(m, storage)
        known = certain and len(state.storage) == 1 and not storage & 1 and version >= 0
        m.store.set(version_key(storage), Const("int", version + 1) if known else Number("int"))


def may_be_changed(m: Machine, state: Tensor) -> bool:
    """Whether a tensor may have been changed in place, as far as its version counter tells."""
    own = _counter(m, state)
    if own is not None and _own_version_key(own) in m.cells:
        return True
    shared = (
        own is None or len(state.storage) > 1
    )  # then it may as well be one that has no counter of its own
    return shared and any(version_of(m, storage) != 0 for storage in state.storage)


def _own_version_key(counter: Alias) -> tuple[int, str]:
    """The cell that tells of the changes which `.data`, or an array, counts by itself."""
    return (min(counter.source, default=0), f"#version of {counter.kind} {id(counter.node)}")


def leaf_behind(m: Machine, state: Tensor) -> Tensor | None:
    """The leaf that requires grad and is this tensor, or the base of which it is a view; None if it may be neither."""
    if state.is_leaf == YES and state.view == NO:
        return state if state.alias is None else None
    if state.view != YES or not state.base:
        return _leaf_shared(m, state)
    bases = [m.cells.get(address) for address in sorted(state.base)]
    leaves = [_leaf_shared(m, base) for base in bases if type(base) is Tensor]
    return leaves[0] if len(leaves) == len(bases) and all(leaf is not None for leaf in leaves) else None


def _leaf_shared(m: Machine, state: Tensor) -> Tensor | None:
    """The leaf that requires grad and is this tensor, or whose storage a part of its graph surely is."""
    if state.requires_grad == state.is_leaf == YES and state.view == NO:
        return state
    if not (
        state.view & YES and state.requires_grad == YES and state.alias is None and len(state.leaves) == 1
    ):
        return None
    leaf = m.cells.get(min(state.leaves))
    if type(leaf) is not Tensor or leaf.view != NO or not leaf.is_leaf == leaf.requires_grad == YES:
        return None
    # A leaf on another tensor's storage, such as one that was detached, may have been written into that tensor.
    return leaf if leaf.storage == state.leaves == state.storage else None


def changed_unseen(m: Machine, value: Value, before: Tensor) -> None:
    """After a change that autograd does not record, the grad_fn of a view is made again when it is next asked for.

    So is that of all views which count their versions together with what was changed: views of one base do wherever
    `.data =` has put them.
    """
    storage = frozenset[int]().union(*(state.storage for _, state in m.tensors(value)))
    on = m.store.sharing.on(storage)
    bases = _counted_with(m, value) if m.given_data else NOTHING
    for address in sorted({*on, *bases, *m.store.sharing.over(bases)}) if bases else on:
        other = m.cells.get(address)
        if type(other) is not Tensor or not (other.storage & storage or other.base & bases):
            continue
        if other.view & other.requires_grad & YES and _may_count_together(m, before, other):
            m.store.set(address, made_again(other))


def _counted_with(m: Machine, value: Value) -> frozenset[int]:
    """The bases with which a tensor counts its versions: its own, and those of what it was detached from."""
    found, values = NOTHING, [value]
    for _ in range(_MOST_DETACHED):
        found = found.union(*(bases_of(m, one) for one in values))
        states = [state for one in values for _, state in m.tensors(one)]
        values = [
            Ref(at) for s in states if s.alias is not None and counts_with_source(s) for at in s.alias.source
        ]
    return found


def written_unseen(m: Machine, value: Value) -> None:
    """A tensor is written while grad mode is off, by something that is told of in another way."""
    state = m.tensor(value)
    if state is not None:
        count_change(m, state)
        changed_unseen(m, value, state)


def _may_count_together(m: Machine, a: Tensor, b: Tensor) -> bool:
    """What only may be a view of an array or of `.data` may as well be something of its own."""
    return MAYBE in (a.view, b.view) or _counter(m, a) == _counter(m, b)


def _counter(m: Machine, state: Tensor) -> Alias | None:
    """The `.data`, or the array, with which a tensor counts its versions; None for its storage's own counter."""
    alias = state.alias
    for _ in range(_MOST_DETACHED):
        if alias is None or alias.kind in _OWN_COUNTER or len(alias.source) != 1:
            break
        source = m.cells.get(min(alias.source))
        if type(source) is not Tensor:
            return None
        state, alias = source, source.alias
    if alias is None and m.counters:
        return _counter_of_parameter(m, state)
    return alias if alias is not None and alias.kind in _OWN_COUNTER else None


def _counter_of_parameter(m: Machine, state: Tensor) -> Alias | None:
    """What a parameter, or the one of which a tensor is a view, goes on to count its versions with."""
    on = state.base if state.view == YES else m.store.sharing.on(state.storage)
    found = [m.counters.get(at & ~1) for at in sorted(on) if state.view == YES or m.cells.get(at) == state]
    return found[0] if found and found.count(found[0]) == len(found) else None


def goes_on_counting(m: Machine, address: int, source: Tensor) -> None:
    """A parameter is made of a tensor: what that counts its versions with the parameter counts with too."""
    counter = _counter(m, source)
    if counter is not None:
        m.counters[address & ~1] = counter


def counts_with_source(state: Tensor) -> bool:
    """Whether a tensor counts its versions together with what it was taken from; `.data` and arrays do not."""
    return state.alias is None or state.alias.kind not in _OWN_COUNTER


def made_again(view: Tensor) -> Tensor:
    """A view whose grad_fn may be made again from its base; one that had none as a leaf may have one then."""
    return view._replace(is_leaf=view.is_leaf | NO, grad_fn=view.grad_fn | {ANY_FN})


def bases_of(m: Machine, value: Value) -> frozenset[int]:
    """What a view of this value is a view of: of a view its base, of another tensor that tensor."""
    found = NOTHING
    for ref, state in m.tensors(value):
        if state.view & YES:
            found |= state.base
        if state.view & NO or not state.base:
            found |= {ref.address}
    return found


def asked_by_bases(m: Machine, bases: frozenset[int]) -> int:
    """Whether what a view may be a view of requires grad; nothing when none of it is known."""
    found = 0
    for address in bases:
        base = m.cells.get(address)
        found |= base.requires_grad if type(base) is Tensor else 0
    return found


def tracked_together(m: Machine, bases: frozenset[int]) -> list[tuple[int, Tensor]]:
    """The tensors, by address, that are these bases or may be views of them."""
    known = ((at, m.cells.get(at)) for at in sorted({*bases, *m.store.sharing.over(bases)}))
    return [
        (at, other) for at, other in known if type(other) is Tensor and (at in bases or other.base & bases)
    ]


def reach_aliases(
    m: Machine, target: Value, before: Tensor, bases: frozenset[int], change: Callable[[object], object]
) -> None:
    """What autograd tracks as the base, or as another view, of a tensor that was changed gets its graph too."""
    done = _all_refs(target)
    for address, other in tracked_together(m, bases):
        if Ref(address) in done:
            continue
        m.charge(20)
        is_base = address in bases
        certain = len(bases) == 1 and (is_base or (other.view == YES and len(other.base) == 1))
        certain = certain and (len(done) == 1 and (before.view == YES or not is_base))
        made = change(other)
        if type(made) is Tensor:
            made = made._replace(grad_fn=made.grad_fn | frozenset({ANY_FN}), dead=other.dead)
            m.store.set(address, made if certain and not address & 1 else join_tensors(other, made))


def _all_refs(value: Value) -> tuple[Ref, ...]:
    return value.refs if type(value) is Each else tuple(a for a in atoms(value) if type(a) is Ref)


def savers(m: Machine, state: Tensor) -> list[int]:
    """The nodes, not freed yet, that saved this tensor's storage for backward as it is now."""
    if len(state.storage) != 1:
        return []
    (place,) = state.storage
    return [address for address, node in saving(m, place) if node.freed == NO and node.spoiled == NO]


def saving(m: Machine, storage: int) -> list[tuple[int, Node]]:
    """The nodes, by address, that saved a storage."""
    found = []
    for at in sorted(m.judge.walks.saved_by.get(storage & ~1, ())) if m.judge is not None else ():
        for address in (at, at | 1):
            node = m.cells.get(node_key(address))
            if type(node) is Node and storage in node.saved:
                found.append((address, node))
    return found
