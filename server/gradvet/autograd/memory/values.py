"""Python values as the interpreter sees them: atoms, unions of atoms, and the objects on the heap.

A value is an atom or a `Union` of atoms. Tensors, containers and instances live on the heap under
an address, so that aliases see each other's changes; a value only refers to them.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gradvet.autograd.memory.domain import (
    NOTHING,
    Node,
    Origin,
    Tensor,
    join_nodes,
    join_tensors,
    switched,
)
from gradvet.autograd.memory.gradients import Gradient, join_gradients

MOST_ATOMS = 10
MOST_OBJECTS = 64  # of a value that is one of many objects: an element of a list of parameters
MOST_WORDS = 4
MOST_JOINED = 100
MOST_KEYS = 250
MOST_NESTED = 4  # tuples in one another, where one may be any of several


class Ref(NamedTuple):
    """A reference to the heap object at an address."""

    address: int


class Each(NamedTuple):
    """Every one of these objects in turn: the variable of a loop whose body is run once for them all."""

    refs: tuple[Ref, ...]


class Const(NamedTuple):
    """A known number, string, None, or other constant. `kind` keeps True and 1 apart.

    A `NAME` stands for the names of several things at once: as a key it is one, and what is in it is not known.
    """

    kind: str
    value: Any


class Number(NamedTuple):
    """An unknown number; `cuts` are the gradients that were stopped to make it."""

    kind: str = "number"
    cuts: frozenset[int] = NOTHING


class Text(NamedTuple):
    """An unknown string."""

    known: None = None


class Tuple(NamedTuple):
    """A tuple of known length; the items of a named tuple have `fields` as well."""

    items: "tuple[Value, ...]"
    fields: tuple[str, ...] = ()


class Function(NamedTuple):
    """A function or lambda of the file: its node, the scope it was made in, its evaluated defaults.

    It runs in grad `modes`, and `inside` context managers of the file, that decorate it.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: int
    defaults: "tuple[tuple[str, Value], ...]" = ()
    owner: int = 0
    modes: "tuple[Mode, ...]" = ()
    kind: str = ""
    inside: "tuple[Value, ...]" = ()


class Bound(NamedTuple):
    """A function with its first argument."""

    function: "Value"
    receiver: "Value"


class Class(NamedTuple):
    """A class of the file, by the address of its attributes."""

    address: int


class External(NamedTuple):
    """Something of another package, by its qualified name."""

    name: str


class OwnModule(NamedTuple):
    """A module of the project, by the scope of its globals; `place` is where the modules of a package lie."""

    scope: int
    name: str
    place: str | None = None


class Later(NamedTuple):
    """What an import of another module of the project gives; it is looked for when its name is first used.

    That is the `name` in the module, or the module itself; of `import a.b.c` it is the `first` package.
    """

    importer: str
    module: str
    name: str
    first: bool = False


class Method(NamedTuple):
    """A method of a value that the interpreter itself knows, such as `tensor.detach`."""

    receiver: "Value"
    name: str
    node: ast.AST


class Partial(NamedTuple):
    """A callable with some arguments given."""

    function: "Value"
    args: "tuple[Value, ...]"
    keywords: "tuple[tuple[str, Value], ...]"


class Mode(NamedTuple):
    """A context manager (and decorator) that sets the grad mode; `name` is what the user called."""

    modes: int
    node: ast.AST
    name: str = ""

    def after(self, before: int) -> int:
        """The grad modes inside, entered from these.

        Inference mode is a flag of its own: no_grad and enable_grad inside it leave it on.
        """
        return self.modes if self.name.endswith("inference_mode") else switched(before, self.modes)


class Stack(NamedTuple):
    """A `contextlib.ExitStack`: what is entered through it ends when it does."""

    node: ast.AST


class Coroutine(NamedTuple):
    """What a call of an `async def` gives; its value comes out when it is awaited."""

    value: "Value"


class Super(NamedTuple):
    """What `super()` gives: the classes after `owner`, on `receiver`."""

    owner: int
    receiver: "Value"


class Slice(NamedTuple):
    """A slice in a subscript; a basic index, which makes a view."""

    known: None = None


class Unknown(NamedTuple):
    """Nothing is known, and it has no identity."""

    reason: str = ""


class Union(NamedTuple):
    """One of several atoms."""

    atoms: "tuple[Value, ...]"


Value = Any  # an atom or a Union; a recursive alias would only slow mypy down

PARSER = "a parser of the command line"
"""Why nothing is known of an `ArgumentParser`; what it gives are settings, and no tensors."""
SETTING = "a setting of the command line"
"""Why nothing is known of what a parser of the command line gives, and of what lies in it."""
ANY_ITEM = "[]"
"""The part of something unknown that lies under an index that is not known."""
NESTED = "nested"
"""The kind of a number in what `tolist()` gives: of more dimensions than one it is a list of them."""
NONE = Const("NoneType", None)
TRUE = Const("bool", True)
FALSE = Const("bool", False)


NAME = "name"
"""The kind of a constant that stands for names."""


def is_plain(value: Value) -> bool:
    """Whether a value is a constant of which the text or number is known."""
    return type(value) is Const and value.kind != NAME


def const(value: object) -> Const:
    """The atom of a Python constant."""
    return Const(type(value).__name__, value)


def atoms(value: Value) -> tuple[Value, ...]:
    """The alternatives of a value."""
    if type(value) is Union:
        return value.atoms
    return (value,)


def refs(value: Value) -> Iterator[Ref]:
    """All objects that a value may refer to directly."""
    for atom in atoms(value):
        if type(atom) is Ref:
            yield atom
        elif type(atom) is Each:
            yield from atom.refs


class Opaque(NamedTuple):
    """An object of which only this is known: why, the values it was made from, and whether it `adds` them up."""

    reason: str
    inputs: tuple[Value, ...] = ()
    origin: Origin | None = None
    adds: bool = False


class Sequence(NamedTuple):
    """A list, deque, set, or iterator: `items` one by one, or `rest` for all of them.

    `most` is how many it holds at most: a deque with a `maxlen` drops those at the other end. What
    `dict.items()` and `dict.values()` give is `of` the dict, and shows what is put there later. `thinned`
    is one from which something was surely taken out, of a number that is not known: there may be nothing left.
    `shortest` is the least of the lengths that it is known to have on some path, where it has others on other paths.
    """

    kind: str = "list"
    items: tuple[Value, ...] | None = ()
    rest: Value | None = None
    nonempty: bool = False
    most: int | None = None
    of: Ref | None = None
    thinned: bool = False
    shortest: int | None = None

    @property
    def least(self) -> int | None:
        """The least length that it is known to have on some path."""
        if self.items is not None and self.rest is None:
            return len(self.items)
        return None if self.items or self.shortest is None else max(self.shortest, self.nonempty)

    def without_one(self) -> "Sequence":
        """With any one of its elements taken out."""
        left = None if self.least is None else max(self.least - 1, 0)
        return self._replace(items=None, rest=self.element, nonempty=False, thinned=True, shortest=left)

    def as_many(self, kind: str, element: Value) -> "Sequence":
        """Another one with something for each of its elements, of a number that is not known."""
        nonempty = not self.thinned and self.least != 0
        return Sequence(kind, None, element, nonempty=nonempty, thinned=self.thinned, shortest=self.least)

    @property
    def element(self) -> Value | None:
        """Any one of its elements, or None when it is empty."""
        return join_all([*(self.items or ()), *([self.rest] if self.rest is not None else [])])


class Dict(NamedTuple):
    """A dict: values of known keys, and `rest` for the others; `nonempty` when something surely is there.

    Of the known keys `perhaps` are those that some path has not put there.
    """

    items: tuple[tuple[Const, Value], ...] = ()
    rest: Value | None = None
    keys: Value | None = None
    kind: str = "dict"
    nonempty: bool = False
    perhaps: frozenset[Const] = frozenset()

    @property
    def element(self) -> Value | None:
        """Any one of its values, or None when it is empty."""
        return join_all(
            [*(value for _, value in self.items), *([self.rest] if self.rest is not None else [])]
        )

    def get(self, key: Const) -> Value | None:
        """The value of a known key."""
        for known, value in self.items:
            if known == key:
                return value
        return None

    def put(self, key: Const, value: Value) -> "Dict":
        """The same with one key set; of very many keys, the later are not told apart."""
        items = dict(self.items)
        if len(items) >= MOST_KEYS and key not in items:
            return self._replace(
                rest=_join_optional(self.rest, value),
                keys=_join_optional(self.keys, Unknown()),
                nonempty=True,
            )
        items[key] = value
        perhaps = self.perhaps - {key} if self.perhaps else self.perhaps
        return self._replace(items=tuple(items.items()), nonempty=True, perhaps=perhaps)

    def without(self, key: Const | None = None) -> "Dict":
        """The same with one key taken out, which may not be known."""
        return self._replace(items=tuple(pair for pair in self.items if pair[0] != key), nonempty=False)


class Instance(NamedTuple):
    """An instance of a class of the file; its attributes are cells of their own."""

    owner: int


class Layer(NamedTuple):
    """A module of torch.nn, or one known only to be a module (`name` is then empty).

    `parameters` are its own parameters by name, in order; a name of which another one may have been put in its place
    stands there with each, one after the other. `children` are its submodules in order; `rest` stands for children
    that are not known one by one.
    """

    name: str
    parameters: tuple[tuple[str, int], ...] = ()
    children: tuple[tuple[str, Value], ...] = ()
    rest: Value | None = None
    options: tuple[tuple[str, Value], ...] = ()

    def own(self, name: str) -> Value | None:
        """The parameter of this name, whichever of several it may be; None when there is none."""
        found = [Ref(address) for part, address in self.parameters if part == name]
        return join_all(found) if found else None


class Optimizer(NamedTuple):
    """An optimizer and the leaves it owns; `all_known` is False when it may own others."""

    owns: frozenset[int]
    all_known: bool = True


class Array(NamedTuple):
    """A numpy array: the storage it shares with tensors, and the gradients that were stopped to make it."""

    storage: frozenset[int] = NOTHING
    cuts: frozenset[int] = NOTHING
    alias: Any = None


class Distribution(NamedTuple):
    """A torch distribution and what it was made from, by parameter."""

    name: str
    inputs: tuple[tuple[str, Value], ...]


class Range(NamedTuple):
    """Something to iterate whose elements are alike: range, a loader, a file.

    `values` are the elements of a short range one by one, for who wants them.
    """

    element: Value
    nonempty: bool = False
    values: tuple[Value, ...] = ()


class Data(NamedTuple):
    """A dataset or a loader of torch.utils.data, which makes its elements when it is asked for them.

    `kind` is tensors (rows of `parts`), data (rows of the datasets in `parts`), batches or rows (of the
    one dataset, as a loader gives them; in processes of their own when it ends so).
    """

    kind: str
    parts: "tuple[Value, ...]" = ()
    collate: "Value | None" = None


class Pool(NamedTuple):
    """A pool of threads, a future of it, or a queue: `value` is what a future or a queue will give."""

    kind: str
    value: "Value | None" = None


def _merge_numbers(a: Value, b: Value) -> Value | None:
    """Two numbers that differ become an unknown one."""
    numeric = ("int", "float", "number", NESTED)
    a_kind, b_kind = a.kind, b.kind
    if a_kind not in numeric or b_kind not in numeric:
        return None
    cuts = getattr(a, "cuts", NOTHING) | getattr(b, "cuts", NOTHING)
    either = NESTED if NESTED in (a_kind, b_kind) else "number"
    return Number(a_kind if a_kind == b_kind else either, cuts)


TOO_MANY = Unknown("too many possibilities")
NESTED_TOO_DEEP = Unknown("it lies in too many tuples")


def join(a: Value, b: Value) -> Value:
    """One or the other."""
    if a is b or a == b:
        return a
    out: list[Value] = list(atoms(a))
    changed = False
    for atom in atoms(b):
        if atom in out:
            continue
        changed = True
        kind = type(atom)
        if kind is Const or kind is Number:
            for at, other in enumerate(out):
                if type(other) in (Const, Number) and (merged := _merge_numbers(other, atom)) is not None:
                    out[at] = merged
                    break
            else:
                words = [other for other in out if type(other) is Const and other.kind == "str"]
                if kind is Const and atom.kind == "str" and (len(words) >= MOST_WORDS or Text() in out):
                    out = [other for other in out if other not in words and other != Text()]
                    out.append(Text())
                else:
                    out.append(atom)
            continue
        if kind is Each:
            for at, other in enumerate(out):
                if type(other) is Each:
                    out[at] = Each(tuple(dict.fromkeys((*other.refs, *atom.refs))))
                    break
            else:
                out.append(atom)
            continue
        if kind is Tuple:
            for at, other in enumerate(out):
                if type(other) is Tuple and len(other.items) == len(atom.items):
                    items = tuple(join(x, y) for x, y in zip(other.items, atom.items, strict=False))
                    out[at] = _shallow(Tuple(items, other.fields))
                    break
            else:
                out.append(_shallow(atom))
            continue
        out.append(atom)
    if not changed:
        return a
    if len(out) > MOST_ATOMS:
        objects = sum(type(atom) is Ref for atom in out)
        if objects > MOST_OBJECTS or len(out) - objects > MOST_ATOMS:
            return TOO_MANY
    joined = out[0] if len(out) == 1 else Union(tuple(out))
    return a if joined == a else joined


def _shallow(value: Tuple) -> Tuple:
    """The same; of tuples in tuples that may have become so in a loop, without end, no more than some are kept apart."""
    deep = any(item is NESTED_TOO_DEEP or NESTED_TOO_DEEP in atoms(item) for item in value.items)
    if not deep and not any(_is_deeper(item, MOST_NESTED) for item in value.items):
        return value
    return Tuple((NESTED_TOO_DEEP,) * len(value.items), value.fields)


def _is_deeper(value: Value, most: int) -> bool:
    """Whether a value may be a tuple in which there are tuples in tuples, more than so many."""
    return any(
        type(atom) is Tuple and (most == 0 or any(_is_deeper(item, most - 1) for item in atom.items))
        for atom in atoms(value)
    )


def join_all(values: list[Value]) -> Value | None:
    """The join of some values; None for none. Where a hundred are too many, the rest are not looked at."""
    joined = None
    for at, value in enumerate(values):
        joined = value if joined is None else join(joined, value)
        if at > MOST_JOINED and joined is TOO_MANY:
            break
    return joined


def _join_optional(a: Value | None, b: Value | None) -> Value | None:
    if a is None:
        return b
    return a if b is None else join(a, b)


def _join_sequences(a: Sequence, b: Sequence) -> Sequence:
    kind = a.kind if a.kind == b.kind else "list"
    if a.items is not None and b.items is not None and len(a.items) == len(b.items) and a.most == b.most:
        items = tuple(join(x, y) for x, y in zip(a.items, b.items, strict=False))
        return Sequence(
            kind,
            items,
            _join_optional(a.rest, b.rest),
            a.nonempty and b.nonempty,
            a.most,
            thinned=a.thinned and b.thinned,
        )
    element, known = _join_optional(a.element, b.element), [n for n in (a.least, b.least) if n is not None]
    return Sequence(
        kind,
        None,
        element,
        a.nonempty and b.nonempty,
        thinned=a.thinned and b.thinned,
        shortest=min(known, default=None),
    )


def _join_dicts(a: Dict, b: Dict) -> Dict:
    items, others = dict(a.items), dict(b.items)
    if b.rest is not None:  # what one knows by its key may be among the rest of the other
        items = {key: value if key in others else join(value, b.rest) for key, value in items.items()}
    for key, value in others.items():
        items[key] = join(items[key], value) if key in items else _join_optional(a.rest, value)
    rest, keys = _join_optional(a.rest, b.rest), _join_optional(a.keys, b.keys)
    perhaps = a.perhaps | b.perhaps
    if len(a.items) < len(items) or len(b.items) < len(items):
        perhaps |= dict(a.items).keys() ^ others.keys()
    return Dict(tuple(items.items()), rest, keys, a.kind, a.nonempty and b.nonempty, perhaps)


def _join_layers(a: Layer, b: Layer) -> Any:
    parameters = a.parameters
    if a.parameters != b.parameters:  # each name in its place, with all that may be there
        pairs = dict.fromkeys((*a.parameters, *b.parameters))
        names = dict.fromkeys(name for name, _ in pairs)
        parameters = tuple(pair for name in names for pair in pairs if pair[0] == name)
    if a.name != b.name or dict(a.parameters).keys() != dict(b.parameters).keys():
        return Layer("", parameters, (), _join_optional(a.rest, b.rest))
    others = dict(b.options)
    options = tuple((name, join(value, others[name])) for name, value in a.options if name in others)
    if [name for name, _ in a.children] == [name for name, _ in b.children]:
        children = tuple(
            (name, join(x, y)) for (name, x), (_, y) in zip(a.children, b.children, strict=False)
        )
        return Layer(a.name, parameters, children, _join_optional(a.rest, b.rest), options)
    rest = join_all([value for _, value in (*a.children, *b.children)])
    return Layer(a.name, parameters, (), _join_optional(_join_optional(a.rest, b.rest), rest), options)


def _join_arrays(a: Array, b: Array) -> Array:
    return Array(a.storage | b.storage, a.cuts | b.cuts, a.alias or b.alias)


def _join_optimizers(a: Optimizer, b: Optimizer) -> Optimizer:
    return Optimizer(a.owns | b.owns, a.all_known and b.all_known)


def _join_pools(a: Pool, b: Pool) -> Any:
    return Pool(a.kind, _join_optional(a.value, b.value)) if a.kind == b.kind else _join_unlike(a, b)


def _join_opaques(a: Opaque, b: Opaque) -> Opaque:
    if len(a.inputs) != len(b.inputs):
        return a
    return a._replace(inputs=tuple(join(x, y) for x, y in zip(a.inputs, b.inputs, strict=True)))


_JOINS: dict[type, Callable[[Any, Any], Any]] = {
    Gradient: join_gradients,
    Tensor: join_tensors,
    Node: join_nodes,
    Sequence: _join_sequences,
    Dict: _join_dicts,
    Layer: _join_layers,
    Array: _join_arrays,
    Optimizer: _join_optimizers,
    Pool: _join_pools,
    Opaque: _join_opaques,
}
_OBJECTS = (
    Tensor,
    Sequence,
    Dict,
    Instance,
    Layer,
    Optimizer,
    Array,
    Distribution,
    Opaque,
    Range,
    Data,
    Node,
)


def join_cells(a: Any, b: Any) -> Any:
    """The join of two contents of one cell: values, heap objects, bit sets or versions."""
    if a is b or a == b:
        return a
    kind = type(a)
    if kind is int and type(b) is int:
        return a | b
    if kind is type(b) and kind in _JOINS:
        joined = _JOINS[kind](a, b)
        return a if joined == a else joined
    if kind in _OBJECTS or type(b) in _OBJECTS:
        return _join_unlike(a, b)
    return join(a, b)


PLACED = "#hook "
"""How the cells are named that tell whether a hook is at a module."""


def absent(key: Any) -> Value | None:
    """What a cell stands for that was never written: no gradient before a backward, no hook before it is placed."""
    if type(key) is not tuple:
        return None
    return NONE if key[1] == "grad" else FALSE if key[1].startswith(PLACED) else None


def _join_unlike(a: Any, b: Any) -> Any:
    """Two objects of different kinds at one address: what is known only on one path is not known."""
    if type(a) is Opaque:
        return a
    if type(b) is Opaque:
        return b
    return Opaque("it is one of several kinds of object", (), getattr(a, "origin", None))
