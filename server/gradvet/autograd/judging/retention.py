"""What outlives a loop's iteration and still holds a graph that was made in it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradvet.autograd.graph import node_key, reachable
from gradvet.autograd.held import held_tensors
from gradvet.autograd.judging.averages import Average
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES, Node, Tensor
from gradvet.autograd.memory.rename import rename
from gradvet.autograd.memory.values import (
    NONE,
    Bound,
    Const,
    Dict,
    Method,
    Number,
    Ref,
    Sequence,
    Tuple,
    Union,
    Value,
    atoms,
    refs,
)
from gradvet.syntax.tree import walk

MOST_HOLDERS = 6
"""So many containers are looked into for what holds them."""
GROWING = ("+", "*", "=")
"""How something is put into a container: one element more, a key that is not known, an item that is set."""


@dataclass(slots=True)
class Place:
    """Where to speak of something that is kept: the node, the calls that led there, and the kept expression."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    value: ast.expr | None


@dataclass(slots=True)
class Kept:
    """A graph that outlived an iteration: a finding unless a later backward turns out to need it."""

    place: Place
    tensor: Tensor
    nodes: frozenset[int]
    holder: str
    holder_node: ast.AST | None
    freed: int
    how: str
    order: int
    attribute: str = ""
    trains: bool = True
    average: Average | None = None
    at: int = 0
    """The address of the container that keeps it."""


@dataclass(slots=True)
class Store:
    """Something was put into an object that may outlive the iteration."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    holder: Ref
    value: Value
    how: str
    frames: tuple[int, ...]
    forward: bool


@dataclass(slots=True)
class Retention:
    """Told of what was stored, and looks at the end of each iteration whether it still holds a graph."""

    machine: Machine
    kept: list[Kept] = field(default_factory=list)
    elements: dict[int, tuple[Store, Ref]] = field(default_factory=dict)
    """By graph node the store by which what it made became an element of something."""
    entries: set[object] | None = None
    let_go: set[int] = field(default_factory=set)
    """The containers that are emptied now and then."""

    def end_of_pass(self, loop: Loop, stores: list[Store], around: Loop | None) -> None:
        """Keep what these stores have put where it outlives the iteration, and may outlive one of the loop `around`."""
        m = self.machine
        for store in stores:
            if store.holder.address in loop.allocs:
                continue
            if store.how not in GROWING:
                self._attribute(store)
                continue
            content = m.cells.get(store.holder.address)
            if content is None or (store.how == "=" and _is_of_things(content)):
                continue
            if (
                not loop.trains
                and (store.how == "=" or m.context_of(store.holder.address) == loop.context)
                and loop.node is not None
            ):
                continue  # what an inference loop collects for its own function: not for ever
            inside = {ref for ref, _ in held_tensors(m, store.holder)}
            held = [(ref, state) for ref, state in held_tensors(m, store.value) if ref in inside]
            graphs = [(ref, state) for ref, state in held if state.has_graph and state.nodes]
            if (
                store.how == "="
                and loop.node is not None
                and m.context_of(store.holder.address) == loop.context
            ):
                # Slots of the function's own list are filled to be read after the loop, not what a step has used up.
                graphs = [(ref, state) for ref, state in graphs if self.freed(state.nodes) & YES]
            for ref, state in graphs if graphs and self.is_held(store.holder) else ():
                self.keep(state, self._place(store, ref), holder_words(store.site)[0], store.holder, "grow")
        if around is not None and stores:
            born = {address for address in loop.allocs if not address & 1}
            for store in stores:
                store.value = rename(store.value, born)  # to the loops around, what comes next is a newer one

    def is_held(self, holder: Ref) -> bool:
        """Whether a name, an attribute or a container still refers to an object.

        Another may have taken its place; what may be None by now was perhaps let go.
        """
        cells = self.machine.cells
        asked, seen = [holder.address], set[int]()
        while asked and len(seen) < MOST_HOLDERS:
            address = asked.pop()
            seen.add(address)
            self.machine.charge(len(cells))
            for key, content in cells.items():
                if not any(
                    ref.address == address
                    for part in _parts(content)
                    if not (type(part) is Union and NONE in part.atoms)
                    for ref in refs(part)
                ):
                    continue
                if type(key) is not int:
                    return True
                if key not in seen:
                    asked.append(key)
        return False

    def freed(self, nodes: frozenset[int]) -> int:
        """Whether a backward has freed what these nodes and those before them had saved."""
        found = reachable(self.machine, nodes).values()
        keepers = [node for node in found if node.keeps & YES and node.freed != YES]
        if not keepers:
            return YES if any(node.freed == YES for node in found) else NO
        return NO if any(node.freed == NO for node in keepers) else MAYBE

    def keep(
        self,
        state: Tensor,
        place: Place,
        words: str,
        holder: Ref | None,
        how: str,
        attribute: str = "",
        freed: int = 0,
    ) -> None:
        """A graph is kept: by a holder, if one is known, and in which way."""
        self.machine.judge.order += 1
        made = self.machine.site_of(holder.address) if holder is not None else None
        known = freed or self.freed(state.nodes)
        order, at = self.machine.judge.order, holder.address & ~1 if holder is not None else 0
        self.kept.append(Kept(place, state, state.nodes, words, made, known, how, order, attribute, at=at))

    def emptied(self, holder: Ref) -> None:
        """A container was emptied: what it held unused was collected for a while, and is let go."""
        self.let_go.add(holder.address & ~1)

    def _place(self, store: Store, ref: Ref) -> Place:
        """The place where what is kept could do without its graph: where it is stored, or where it was handed over."""
        m = self.machine
        earlier = self._gathered(ref)
        if earlier is not None:
            return self._place(*earlier)
        value = holder_words(store.site)[1]
        site, calls = store.site, store.calls
        value = self._entry(value, ref)
        born = m.context_of(ref.address)
        for depth in range(len(store.frames) - 1, 0, -1):
            if not calls or m.within(born, store.frames[depth]):
                break
            argument = self._argument(calls[-1], ref)
            if argument is None:
                break
            site, calls, value = calls[-1], calls[:-1], self._entry(argument, ref)
        origin = getattr(m.cells.get(ref.address), "origin", None)
        if (
            origin is not None
            and origin.text == "clone()"
            and isinstance(origin.node, ast.Call)
            and isinstance(origin.node.func, ast.Attribute)
        ):
            return Place(origin.node, m.calls_of.get(origin.node, ()), origin.node.func.value)
        literal = self._literal(store.value, ref)
        if literal is not None and site is store.site:
            return Place(literal, calls, literal)
        return Place(site, calls, value)

    def _gathered(self, ref: Ref) -> tuple[Store, Ref] | None:
        """Where the elements were put that a stack or cat has gathered: they could have done without their graph."""
        state = self.machine.cells.get(ref.address)
        if type(state) is not Tensor or state.origin is None or state.origin.text not in ("stack()", "cat()"):
            return None
        for address in state.nodes:
            node = self.machine.cells.get(node_key(address))
            for inner in node.inputs if type(node) is Node else ():
                found = self.elements.get(inner) or self.elements.get(inner ^ 1)
                if found is not None:
                    return found
        return None

    def _argument(self, call: ast.AST, ref: Ref) -> ast.expr | None:
        """The argument of a call that is just this tensor; of what is put into a queue, the entry that holds it."""
        queued = self.machine.queued.get(call)
        if queued is not None and isinstance(call, ast.Call) and call.args:
            return call.args[0] if any(ref == r for r, _ in held_tensors(self.machine, queued)) else None
        for _, value, node in self.arguments(call):
            newest = Ref(ref.address & ~1)
            same = value is not None and (is_or_may_be(value, ref) or is_or_may_be(value, newest))
            if same and not isinstance(node, ast.Starred):
                return node
        return None

    def arguments(self, call: ast.AST) -> Iterator[tuple[str, Value | None, ast.expr]]:
        """Parameter, value and expression of what a call passed, for the last few times that it ran."""
        if not isinstance(call, ast.Call):
            return
        for values, keywords, parameters in self.machine.passed.get(call, ()):
            named = [*parameters.parameters, *parameters.keyword_only]
            extra = max(len(values) - len(call.args), 0)  # a method's receiver comes first
            places = [*parameters.parameters[extra:], *[parameters.star or ""] * len(call.args)]
            yield from zip(places, values[extra:], call.args, strict=False)
            for keyword in call.keywords:
                name = keyword.arg or ""
                yield name if name in named else parameters.stars or "", keywords.get(name), keyword.value

    def _entry(self, value: ast.expr | None, ref: Ref) -> ast.expr | None:
        """Of a tuple or list that is stored, the one element that holds the graph."""
        if not isinstance(value, (ast.Tuple, ast.List, ast.Dict)):
            return value
        parts = value.values if isinstance(value, ast.Dict) else value.elts
        states = self.machine.states
        holding = [part for part in parts if part in states and states[part].requires_grad & YES]
        return holding[0] if len(holding) == 1 else value

    def _literal(self, value: Value, ref: Ref) -> ast.expr | None:
        """The entry of a dict literal made elsewhere that only repeats a name: the name's owner can keep the graph."""
        m = self.machine
        for address in addresses(value):
            site = m.site_of(address)
            if isinstance(site, ast.Dict):
                if any(isinstance(key, ast.Constant) and self._is_needed(key.value) for key in site.keys):
                    return None  # the dict itself is where the loss is taken from
                for part in site.values:
                    state = m.states.get(part)
                    if (
                        not isinstance(part, (ast.Name, ast.Attribute))
                        or state is None
                        or not state.requires_grad & YES
                    ):
                        continue
                    return part
        return None

    def _is_needed(self, key: object) -> bool:
        """Whether an entry of this name is taken out to be returned, computed with or run backward from."""
        if self.entries is None:
            self.entries = set()
            for node in walk(self.machine.tree):
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.Subscript) and isinstance(child.slice, ast.Constant):
                        backward = isinstance(node, ast.Attribute) and node.attr == "backward"
                        if backward or isinstance(node, (ast.Return, ast.BinOp, ast.Assign, ast.AugAssign)):
                            self.entries.add(child.slice.value)
        return key in self.entries

    def _attribute(self, store: Store) -> None:
        """An attribute that still holds a graph when the iteration is over: set by a forward, or a number elsewhere."""
        m = self.machine
        value = m.cells.get((store.holder.address, store.how))
        if value is None:
            return
        how = "kept" if store.forward else "number"
        for ref, state in held_tensors(m, store.value):
            if not (state.has_graph and state.nodes and is_or_may_be(value, ref)):
                continue
            if how == "number" or self.freed(state.nodes) == YES:
                words, kept = holder_words(store.site)
                place = Place(store.site, store.calls, kept)
                self.keep(state, place, words, store.holder, how, store.how)


def _is_of_things(content: object) -> bool:
    """Whether all slots of a list hold more than None or a number: what is put into one takes another's place."""
    if type(content) is not Sequence:
        return False
    parts = [part for part in (*(content.items or ()), content.rest) if part is not None]
    return not any(type(atom) in (Const, Number) for part in parts for atom in atoms(part))


def _parts(content: object) -> tuple[Value, ...]:
    """What a cell refers to: a value, or the elements of a container."""
    match content:
        case Method(receiver=receiver) | Bound(receiver=receiver):
            return _parts(receiver)
        case Tuple(items=items):
            every: tuple[Value | None, ...] = items
        case Sequence(items=known, rest=rest):
            every = (*(known or ()), rest)
        case Dict(items=pairs, rest=rest):
            every = (*(value for _, value in pairs), rest)
        case _:
            return (content,)
    return tuple(inner for part in every if part is not None for inner in _parts(part))


def is_or_may_be(value: Value, ref: Ref) -> bool:
    """Whether a value is this object, or has it among its alternatives."""
    return value == ref or (type(value) is Union and ref in value.atoms)


def addresses(value: Value) -> list[int]:
    """Where the objects lie that a value may be."""
    return [ref.address for ref in refs(value)]


def holder_words(site: ast.AST) -> tuple[str, ast.expr | None]:
    """What keeps the value, in the user's words, and the expression that is kept."""
    match site:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="heapq")) | ast.Name(), args=[holder, value]):
            return ast.unparse(holder), value
        case ast.Call(func=ast.Attribute(value=holder), args=[*_, value]):
            return ast.unparse(holder), value
        case ast.AugAssign(target=target, value=value):
            return ast.unparse(target), value
        case ast.Expr(value=value):
            return holder_words(value)
        case ast.Assign(targets=[ast.Subscript(value=holder)], value=value):
            return ast.unparse(holder), value
        case ast.Assign(targets=[target], value=value):
            return ast.unparse(target), value
    return "", None
