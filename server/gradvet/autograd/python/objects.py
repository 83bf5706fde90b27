"""Attributes, items and iteration of every kind of object, read and written."""

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from gradvet.autograd.library import (
    arrays,
    flags,
    forgotten,
    indexing,
    layers,
    open_modules,
    tensor_methods,
    tensors,
)
from gradvet.autograd.library.distributions import distribution_property
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import YES, Origin, Tensor
from gradvet.autograd.memory.values import (
    ANY_ITEM,
    MOST_ATOMS,
    NAME,
    NESTED,
    NONE,
    Array,
    Bound,
    Class,
    Const,
    Dict,
    Distribution,
    Each,
    External,
    Function,
    Instance,
    Layer,
    Method,
    Number,
    Opaque,
    Optimizer,
    OwnModule,
    Range,
    Ref,
    Sequence,
    Slice,
    Super,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    const,
    join,
    join_all,
    join_cells,
)
from gradvet.autograd.python.calls import (
    ABSTRACT,
    Call,
    Member,
    begin,
    call_function,
    call_value,
    find_in_class,
    members_of_enum,
    setter_of,
)
from gradvet.autograd.python.names import bind

_MATH_CONSTANTS = {
    "math.pi",
    "math.e",
    "math.inf",
    "math.nan",
    "numpy.pi",
    "numpy.inf",
    "numpy.nan",
    "torch.pi",
    "torch.inf",
}
AXES = "matplotlib.axes.Axes"
"""Something to draw on, or an array of such."""
MOST_LETTERS = 8
MOST_DOWN = 2
CONTENT = "#content"
"""The cell of what an object holds as the dict or list that its class extends."""

ELEMENTS: dict[type, Callable[[Machine, Ref, Any, ast.AST], Value]] = {}
"""What is made when one of these objects is iterated."""
ITEMS: dict[type, Callable[[Machine, Ref, Any, Value, ast.AST], Value]] = {}
"""What is made when an item of one of these objects is asked for."""
ATTRIBUTES: dict[type, Callable[[Machine, Ref, Any, str], Value | None]] = {}
"""The attributes of these objects; None for what is no plain attribute."""


def get_attribute(m: Machine, value: Value, name: str, node: ast.AST, *, called: bool = False) -> Value:
    """`value.name`; `called` when the attribute is about to be called."""
    kind = type(value)
    if kind is Ref:
        return _ref_attribute(m, value, name, node, called=called)
    if kind is External:
        full = f"{value.name}.{name}"
        if name in ("__name__", "__qualname__"):
            return const(value.name.rpartition(".")[2])
        return Number("float") if full in _MATH_CONSTANTS else External(full)
    if kind is OwnModule:
        return m.imports.member(m, value, name)
    if kind is Union or kind is Each:
        if m.tensor(value) is not None:
            return tensors.attribute(m, value, name, node, called=called)
        parts = value.atoms if kind is Union else value.refs
        found = [
            get_attribute(m, atom, name, node, called=called)
            for atom in parts
            if type(atom) is not Const and type(atom) is not Number
        ]
        if not found:
            return Method(value, name, node)
        if kind is Each and all(type(v) is Ref for v in found):
            return Each(tuple(dict.fromkeys(found)))
        if len(found) > MOST_ATOMS and all(type(v) is Method for v in found):
            return Method(join_all([v.receiver for v in found]), name, node)  # too many to be kept apart
        return join_all(found)
    if kind is Class:
        found_value = find_in_class(m, value.address, name)
        if found_value is not None:
            if type(found_value) is Function and found_value.kind == "classmethod":
                return Bound(found_value, value)
            return found_value
        if name in ("__name__", "__qualname__"):
            return const(m.classes[value.address].name)
        return Text() if name == "__doc__" else Method(value, name, node)
    if kind is Super:
        receiver = value.receiver
        address = getattr(receiver, "address", 0)
        content = m.cells.get(address)
        owner = content.owner if type(content) is Instance else address
        inherited = find_in_class(m, owner, name, after=value.owner)
        if inherited is not None:
            return _bind_member(m, inherited, receiver, node)
        return Method(value, name, node)
    if kind is Tuple and name in value.fields:
        return value.items[value.fields.index(name)]
    if kind is Unknown:
        if name == "grad" and m.judge is not None:
            m.judge.protocol.read_of_unknown()
        return Unknown(value.reason)
    if kind is Const and type(value.value) is Member and name in ("name", "value"):
        known = getattr(value.value, name)
        return Unknown("the value of a member of an enumeration") if known is None else const(known)
    if value == NONE:
        m.raised = True  # nothing after this line is reached
    return Method(value, name, node)


def _ref_attribute(m: Machine, ref: Ref, name: str, node: ast.AST, *, called: bool) -> Value:
    content: Any = m.cells.get(ref.address)
    kind = type(content)
    if kind is Tensor:
        return tensors.attribute(m, ref, name, node, called=called)
    if name == "grad" and m.judge is not None:
        m.judge.protocol.read_of_unknown()
    cell = m.cells.get((ref.address, name))
    if cell is not None:
        return cell
    if kind is Instance:
        return _instance_attribute(m, ref, content, name, node, called=called)
    if kind is Layer and name == "__class__" and content.name:
        return External(content.name)
    if kind is Layer:
        return layers.attribute(m, ref, content, name, node, called=called)
    if kind is Opaque:
        return Method(ref, name, node) if called else child(m, ref, name, node)
    if kind is Array:
        if name in ("T", "real", "imag", "flat"):
            return ref
        return m.sizes if name == "shape" else Method(ref, name, node)
    if kind is Optimizer and name in ("param_groups", "state"):
        return child(m, ref, name, node)
    if kind in ATTRIBUTES and not called:
        found = ATTRIBUTES[kind](m, ref, content, name)
        if found is not None:
            return found
    if kind is Distribution and not called:
        return distribution_property(m, ref, content, name, node)
    return Method(ref, name, node)


def child(m: Machine, ref: Ref, name: str, node: ast.AST) -> Value:
    """A part of something unknown: unknown too, but the same one at each look."""
    value = m.cells.get((ref.address, name))
    if value is None:
        parent = m.cells.get(ref.address)
        reason = parent.reason if type(parent) is Opaque else "a part of an object that is not known"
        if _goes_down(m, parent, node):
            value = ref  # `item = item.next`: from here on each stands for all that come after it
        else:
            value = m.place_part(ref.address, name, Opaque(reason, (ref,), Origin(node, reason)))
            m.as_expected(value, node)
        m.write_cell(ref, name, value)
    return value


def _goes_down(m: Machine, content: Any, node: ast.AST) -> bool:
    """Whether something unknown is a part of a part that the same expression took before, in a loop."""
    for _ in range(MOST_DOWN):
        if type(content) is not Opaque or content.origin is None or content.origin.node is not node:
            return False
        content = m.cells.get(getattr(content.inputs[0], "address", -1)) if content.inputs else None
    return True


def _is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(made, ast.Name) and made.id == "property" for made in node.decorator_list)


def _bind_member(m: Machine, member: Value, receiver: Value, node: ast.AST) -> Value:
    """What a class attribute is when it is reached through an instance."""
    if type(member) is Function:
        if member.kind == ABSTRACT and isinstance(member.node, ast.FunctionDef) and _is_property(member.node):
            return child(m, receiver, member.node.name, node) if type(receiver) is Ref else Unknown()
        if member.kind == "property":
            return call_function(m, member, Call(node, (receiver,)))
        if member.kind == "staticmethod":
            return member
        if member.kind == "classmethod":
            content = m.cells.get(getattr(receiver, "address", -1))
            return Bound(member, Class(content.owner) if type(content) is Instance else receiver)
        return Bound(member, receiver)
    if type(member) is Union and all(type(a) is Function for a in member.atoms):
        return Bound(member, receiver)
    return member


def _instance_attribute(
    m: Machine, ref: Ref, content: Instance, name: str, node: ast.AST, *, called: bool
) -> Value:
    member = find_in_class(m, content.owner, name)
    if member is not None:
        return _bind_member(m, member, ref, node)
    info = m.classes[content.owner]
    if name == "__class__":
        return Class(content.owner)
    if name == "__dict__":
        return child(m, ref, name, node)
    getter = find_in_class(m, content.owner, "__getattr__")
    if getter is not None and not name.startswith("__"):
        return call_value(m, Bound(getter, ref), Call(node, (const(name),)))
    if info.is_module and name == "module" and ref.address & ~1 in m.in_wrapper:
        return ref  # what wraps it is not told apart from it
    if info.is_module and (called or name in layers.MODULE_METHODS):
        return Method(ref, name, node)
    if called:
        return Method(ref, name, node)
    setting = layers.of_base(m, ref, name) if info.is_module else None
    return child(m, ref, name, node) if setting is None else setting


def set_attribute(m: Machine, value: Value, name: str, new: Value, node: ast.AST) -> None:
    """`value.name = new`."""
    kind = type(value)
    if name == "grad" and m.judge is not None and not m.tensors(value):
        m.judge.protocol.overwritten(node, gone=new == NONE)
    if kind is Ref:
        content = m.cells.get(value.address)
        if type(content) is Tensor:
            tensors.set_attribute(m, value, name, new, node)
            return
        if type(content) is Instance:
            own = find_in_class(m, content.owner, setter_of(name))
            if own is not None:
                call_value(m, Bound(own, value), Call(node, (new,)))
                return
            setter = find_in_class(m, content.owner, "__setattr__")
            if setter is not None and type(setter) is Function and not name.startswith("_"):
                call_value(m, Bound(setter, value), Call(node, (const(name), new)))
                if find_in_class(m, content.owner, "__getattr__") is not None:
                    return  # it may have put it where only that finds it
        if type(content) is Layer and layers.set_parameter(m, value, content, name, new):
            return
        flags.assigned(m, value, name, new, node)
        if name == flags.FLAG:
            open_modules.flag_set(m, value, new)
        m.write_cell(value, name, new)
        if m.judge is not None:
            m.judge.stored(node, value, new, name)
    elif kind is Each:
        if m.tensor(value) is not None:
            tensors.set_attribute(m, value, name, new, node)
            return
        for ref in value.refs:
            set_attribute(m, ref, name, new, node)
    elif kind is Union:
        if m.tensor(value) is not None:
            tensors.set_attribute(m, value, name, new, node)
            return
        if name == flags.FLAG and m.tensors(value):
            tensors.set_requires_grad(m, value, new, node)
        for atom in value.atoms:
            if name == flags.FLAG:
                open_modules.flag_set(m, atom, new)
            if type(atom) is Ref and type(m.cells.get(atom.address)) is not Tensor:
                m.write_cell(atom, name, new, certain=False)
    elif kind is Class:
        m.store.set((value.address, name), new)
    elif kind is OwnModule:
        m.store.set((value.scope, name), new)
    elif kind is Unknown and name == flags.FLAG:
        open_modules.flag_set(m, value, new)


# -- items


def get_item(m: Machine, value: Value, key: Value, node: ast.AST) -> Value:
    """`value[key]`."""
    kind = type(value)
    if kind is Tuple:
        return _of_items(m, value.items, key, node, "tuple")
    if kind is Ref:
        content = m.cells.get(value.address)
        match content:
            case Tensor():
                return indexing.index(m, value, key, node)
            case Sequence():
                if content.items is not None and content.rest is None and type(key) in (Const, Slice):
                    return _of_items(m, content.items, key, node, content.kind)
                if type(key) is Slice:
                    return m.new(node, _part_of(content, node))
                element = content.element
                return element if element is not None else Unknown("an element of an empty list")
            case Dict():
                return _dict_item(m, value, content, key, node)
            case Layer():
                return layers.item(m, value, content, key, node)
            case Instance():
                getter = find_in_class(m, content.owner, "__getitem__")
                if getter is not None:
                    return call_value(m, Bound(getter, value), Call(node, (key,)))
                if (value.address, CONTENT) in m.cells:
                    return get_item(m, m.cells[value.address, CONTENT], key, node)
                return child(m, value, _key_name(key), node)
            case Array():
                return arrays.index(m, value, content, key, node)
            case Range():
                return value if type(key) is Slice else content.element
            case Opaque():
                return child(m, value, _key_name(key), node)
        if type(content) in ITEMS:
            return ITEMS[type(content)](m, value, content, key, node)
        return Unknown("an item of something unknown")
    if kind is Union or kind is Each:
        if m.tensor(value) is not None:
            return indexing.index(m, value, key, node)
        parts = value.atoms if kind is Union else value.refs
        found = [get_item(m, atom, key, node) for atom in parts if type(atom) is not Const]
        return join_all(found) if found else Unknown()
    if kind is Number and value.kind == NESTED:
        return value
    if kind is Text or (kind is Const and value.kind in ("str", NAME)):
        return Text()
    if kind is External or kind is Class:
        return value  # a generic alias: `list[int]`
    return Unknown("an item of something unknown")


def _key_name(key: Value) -> str:
    return f"[{key.value!r}]" if type(key) is Const else ANY_ITEM


def _of_items(m: Machine, items: tuple[Value, ...], key: Value, node: ast.AST, kind: str) -> Value:
    if any(open_modules.stands_for_many(m, item) for item in items):
        one = join_all([open_modules.one_of(m, item) for item in items])
        return m.new(node, Sequence(kind, None, one)) if type(key) is Slice else one
    if type(key) is Const and key.kind == "int" and -len(items) <= key.value < len(items):
        return items[key.value]
    if type(key) is Slice:
        bounds = layers.slice_bounds(node)
        if bounds is not None:
            part = items[bounds]
            return Tuple(part) if kind == "tuple" else m.new(node, Sequence(kind, part))
        return m.new(node, Sequence(kind, None, join_all(list(items))))
    return join_all(list(items)) if items else Unknown("an element of an empty list")


def _part_of(content: Sequence, node: ast.AST) -> Sequence:
    """A slice of a list of which only the beginning is known: without some of its first, the rest stays in its place."""
    bounds = layers.slice_bounds(node)
    known = content.items or ()
    if (
        bounds is not None
        and bounds.stop is None
        and bounds.step is None
        and 0 <= (bounds.start or 0) <= len(known)
    ):
        return content._replace(
            items=known[bounds] if known else content.items, nonempty=False, most=None, of=None
        )
    shortest = content.least
    if shortest is not None:
        shortest = None if bounds is None else len(range(*bounds.indices(shortest)))
    return Sequence(content.kind, None, content.element, thinned=content.thinned, shortest=shortest)


def _dict_item(m: Machine, ref: Ref, content: Dict, key: Value, node: ast.AST) -> Value:
    m.charge(len(content.items) // 2)
    if type(key) is Const:
        value = content.get(key)
        if value is not None:
            return value
        if content.rest is not None:
            return content.rest
    elif content.element is not None and not content.kind.startswith("default"):
        return content.element
    made = default_item(m, ref, content, node)
    if made is not None:
        if type(key) is Const:
            m.update(ref, lambda d: d.put(key, made) if type(d) is Dict else d)
            return made
        m.update(
            ref,
            lambda d: (
                d._replace(rest=made if d.rest is None else join(d.rest, made)) if type(d) is Dict else d
            ),
        )
        return (
            content.element
            if content.element is not None and made is None
            else join_all([v for v in (content.element, made) if v is not None])
        )
    return Unknown("a key that is not known to be there")


def default_item(m: Machine, ref: Ref, content: Dict, node: ast.AST) -> Value | None:
    """What a defaultdict makes for a missing key."""
    if content.kind != "defaultdict":
        return None
    factory = m.cells.get((ref.address, "default_factory"))
    return None if factory is None else call_value(m, factory, Call(node, ()))


def set_item(m: Machine, holder: Value, key: Value, new: Value, node: ast.AST) -> None:
    """`holder[key] = new`."""
    forgotten.kept(m, new, node)
    state = m.tensor(holder)
    if state is not None:
        indexing.set_index(m, holder, key, new, node)
        return
    holders = m.alternatives(holder)
    perhaps = len(holders) > 1 and type(holder) is not Each
    for atom in holders:
        if type(atom) is not Ref:
            continue
        content = m.cells.get(atom.address)
        match content:
            case Sequence() if type(key) is Slice:
                m.update(
                    atom, partial(_with_slice, element_of(m, new, node), items_of(m, new), _target_of(node))
                )
            case Sequence():
                m.write(atom, _with_item(content, key, new)) if not atom.address & 1 else m.update(
                    atom, lambda c: _with_item(c, Number(), new)
                )
            case Dict():
                m.charge(len(content.items) // 2)
                if type(key) is Const:
                    m.update(atom, lambda c: c.put(key, new) if type(c) is Dict else c)
                else:
                    m.update(atom, lambda c: _with_any_key(c, key, new) if type(c) is Dict else c)
            case Layer():
                layers.set_child(m, atom, key, new)
            case Array():
                arrays.written(m, atom, content, node, anew=isinstance(node, ast.Assign))
                stored = m.tensor(new)
                if stored is not None and isinstance(node, ast.Assign) and _has_a_dimension(stored):
                    words = f"storing into {_words(node.targets[0])}"
                    tensor_methods.to_numpy(m, node, stored, words, node.value)
            case Instance(owner=owner):
                setter = find_in_class(m, owner, "__setitem__")
                if setter is not None:
                    call_value(m, Bound(setter, atom), Call(node, (key, new)))
                elif (atom.address, CONTENT) in m.cells:
                    set_item(m, m.cells[atom.address, CONTENT], key, new, node)
                else:
                    m.write_cell(atom, _key_name(key), new, certain=type(key) is Const)
            case Opaque():
                m.write_cell(atom, _key_name(key), new, certain=type(key) is Const)
        if perhaps and type(content) in (Sequence, Dict):
            m.store.set(atom.address, join_cells(content, m.cells[atom.address]))
        if m.judge is not None:
            # A list does not grow by an item that is set; a dict does by a key that it did not have.
            grows = type(key) is not Const
            m.judge.stored(node, atom, new, ("=" if type(content) is Sequence else "*") if grows else "")


def _target_of(node: ast.AST) -> ast.AST:
    """The subscript that an assignment writes."""
    return node.targets[0] if isinstance(node, ast.Assign) else node


def _with_slice(element: Value, items: tuple[Value, ...] | None, target: ast.AST, content: Any) -> Any:
    """`list[a:b] = values`: all of it is replaced, or any of them may be anywhere."""
    if type(content) is not Sequence:
        return content
    if _is_whole(target):
        return content._replace(items=items, rest=None if items is not None else element)
    either = join_all([part for part in (content.element, element) if part is not None])
    return content._replace(items=None, rest=either)


def _has_a_dimension(state: Tensor) -> bool:
    """Whether a tensor must have a dimension: a module gave it. One without goes into an array with a warning."""
    return state.origin is not None and state.origin.text[:1].isupper()


def _words(target: ast.expr) -> str:
    return f"`{ast.unparse(target.value)}`" if isinstance(target, ast.Subscript) else "an array"


def _with_item(content: Sequence, key: Value, new: Value) -> Sequence:
    items = content.items
    if items is not None and content.rest is not None:
        return content._replace(items=None, rest=join_all([*items, content.rest, new]))
    if (
        items is not None
        and type(key) is Const
        and key.kind == "int"
        and -len(items) <= key.value < len(items)
    ):
        at = key.value % len(items)
        return content._replace(items=(*items[:at], new, *items[at + 1 :]))
    if items is not None:
        return content._replace(items=tuple(join(item, new) for item in items))
    return content._replace(rest=new if content.rest is None else join(content.rest, new))


def _with_any_key(content: Dict, key: Value, new: Value) -> Dict:
    items = tuple((known, join(value, new)) for known, value in content.items)
    rest = new if content.rest is None else join(content.rest, new)
    return content._replace(
        items=items, rest=rest, keys=key if content.keys is None else join(content.keys, key), nonempty=True
    )


def delete_item(m: Machine, holder: Value, key: Value, node: ast.AST) -> None:
    """`del holder[key]`, at a subscript."""

    def without(content: object) -> object:
        match content:
            case Sequence() if _is_whole(node):
                return content._replace(items=(), rest=None, nonempty=False)
            case Sequence(items=items) if items and (type(key) is not Const or key.kind != "int"):
                return content.without_one()
            case Sequence(rest=rest) if rest is not None:
                return content.without_one()
            case Sequence(items=items) if (
                items is not None and type(key) is Const and key.kind == "int" and items
            ):
                at = key.value % len(items)
                return content._replace(items=(*items[:at], *items[at + 1 :]), thinned=True)
            case Dict():
                return content.without(key if type(key) is Const else None)
            case Layer(children=children) if type(key) is Const and content.rest is None:
                at = key.value % len(children) if key.kind == "int" and children else -1
                kept = [child for number, (_, child) in enumerate(children) if number != at]
                if key.kind == "int":
                    return content._replace(children=tuple((str(n), child) for n, child in enumerate(kept)))
                return content._replace(children=tuple(pair for pair in children if pair[0] != key.value))
        return content

    m.update(holder, without)
    if m.judge is not None and type(holder) is Ref and _is_whole(node):
        m.judge.retention.emptied(holder)


def take_any(m: Machine, holder: Value) -> None:
    """Take one out of a list, and it is not known which."""
    m.update(holder, lambda content: content.without_one() if type(content) is Sequence else content)


def _is_whole(node: ast.AST) -> bool:
    """Whether a subscript takes all there is: `x[:]`."""
    return isinstance(node, ast.Subscript) and layers.slice_bounds(node) == slice(None)


# -- iteration


def view_of_dict(content: Dict, part: str) -> Sequence:
    """What `items()` and `values()` of a dict give."""
    kind = "members" if content.kind == "state_dict" else part
    if content.rest is None and part == "items":
        return Sequence(kind, tuple(Tuple((key, value)) for key, value in content.items))
    if content.rest is None:
        return Sequence(kind, tuple(value for _, value in content.items))
    if part == "values":
        return Sequence(kind, None, content.element)
    keys = join_all([*(key for key, _ in content.items), content.keys or Text()])
    return Sequence(kind, None, Tuple((keys, content.element)))


def refresh(m: Machine, value: Value) -> None:
    """Let what shows the contents of a dict show what they are now."""
    content = m.cells.get(getattr(value, "address", -1))
    if type(content) is Sequence and content.of is not None and content.kind in ("items", "values"):
        source = m.cells.get(content.of.address)
        if type(source) is Dict:
            m.update(value, lambda _: view_of_dict(source, content.kind)._replace(of=content.of))


def items_of(m: Machine, value: Value) -> tuple[Value, ...] | None:
    """The elements of a value in order when all are known one by one, else None."""
    kind = type(value)
    if kind is Tuple:
        return value.items  # type: ignore[no-any-return]
    if kind is Const and value.kind == "str" and len(value.value) <= MOST_LETTERS:
        return tuple(const(letter) for letter in value.value)
    if kind is Class:
        return members_of_enum(m, value.address)
    if kind is Ref:
        begin(m, value)
        content = m.cells.get(value.address)
        match content:
            case Sequence(items=items, rest=None) if items is not None and content.kind != "set":
                return items
            case Dict(items=items, rest=None):
                return tuple(key for key, _ in items)
            case Layer() if content.name and content.rest is None and content.children:
                return tuple(v for _, v in content.children)
            case Instance(owner=owner) if (value.address, CONTENT) in m.cells:
                own = find_in_class(m, owner, "__iter__") is not None
                return None if own else items_of(m, m.cells[value.address, CONTENT])
    return None


def is_thinned(m: Machine, value: Value) -> bool:
    """Whether nothing may be left of a sequence from which something was taken out."""
    contents = [m.cells.get(getattr(atom, "address", -1)) for atom in m.alternatives(value)]
    return all(
        type(content) is Sequence and not content.items and (content.thinned or content.rest is None)
        for content in contents
    )


def least(m: Machine, value: Value) -> int | None:
    """The least number of elements that a value is known to have on some path."""
    known = []
    for atom in m.alternatives(value):
        content = m.cells.get(getattr(atom, "address", -1))
        if type(atom) is Tuple:
            known.append(len(atom.items))
        elif type(content) is Sequence and content.least is not None:
            known.append(content.least)
    return min(known, default=None)


def as_many(m: Machine, source: Value, kind: str, element: Value) -> Sequence:
    """Something for each element of a value: as many as there are, of a number that is not known."""
    content = m.cells.get(getattr(source, "address", -1))
    one = content if type(content) is Sequence else Sequence("list", None, None, shortest=least(m, source))
    return one.as_many(kind, element)


def are_parameters(m: Machine, items: tuple[Value, ...]) -> bool:
    """Whether a list holds parameters and nothing else, each of them once."""
    states = [m.tensor(item) if type(item) is Ref else None for item in items]
    return len(set(items)) == len(items) and all(s is not None and s.parameter == YES for s in states)


def element_of(m: Machine, value: Value, node: ast.AST) -> Value:
    """Any one element of what is iterated."""
    kind = type(value)
    if kind is Tuple:
        return join_all(list(value.items)) if value.items else Unknown("an element of nothing")
    if kind is Ref:
        begin(m, value)
        content = m.cells.get(value.address)
        match content:
            case Sequence():
                element = content.element
                return element if element is not None else Unknown("an element of an empty list")
            case Dict():
                if content.rest is None and content.items:
                    return join_all([key for key, _ in content.items])
                return content.keys if content.keys is not None else Text()
            case Range():
                return content.element
            case Tensor():
                return indexing.row(m, value, node)
            case Layer():
                return layers.any_child(m, value, content, node)
            case Array():
                return value
            case Instance(owner=owner):
                return _iterate_instance(m, value, owner, node)
            case Opaque():
                return child(m, value, "[*]", node)
        if type(content) in ELEMENTS:
            return ELEMENTS[type(content)](m, value, content, node)
        return Unknown("an element of something unknown")
    if kind is Union or kind is Each:
        if m.tensor(value) is not None:
            return indexing.row(m, value, node)
        parts = value.atoms if kind is Union else value.refs
        # Of an empty list no element is met, and who iterates over None goes no further.
        parts = [atom for atom in parts if not _has_no_element(m, atom)] or parts
        return join_all([element_of(m, atom, node) for atom in parts])
    if kind is Number and value.kind == NESTED:
        return value
    if kind is Text or kind is Const:
        return Text()
    if kind is External and value.name.startswith(AXES):
        return External(AXES)
    return Unknown("an element of something unknown")


def _has_no_element(m: Machine, value: Value) -> bool:
    if type(value) is Tuple:
        return not value.items
    content = m.cells.get(getattr(value, "address", -1))
    return value == NONE or (type(content) is Sequence and content.element is None)


def _iterate_instance(m: Machine, ref: Value, owner: int, node: ast.AST) -> Value:
    iterate = find_in_class(m, owner, "__iter__")
    if iterate is not None:
        result = call_value(m, Bound(iterate, ref), Call(node, ()))
        if result == ref:
            step = find_in_class(m, owner, "__next__")
            return call_value(m, Bound(step, ref), Call(node, ())) if step is not None else Unknown()
        return element_of(m, result, node)
    held = m.cells.get((getattr(ref, "address", -1), CONTENT))
    if held is not None:
        return element_of(m, held, node)
    getter = find_in_class(m, owner, "__getitem__")
    if getter is not None:
        return call_value(m, Bound(getter, ref), Call(node, (Number("int"),)))
    return child(m, ref, "[*]", node)


# -- assignment


def assign(
    m: Machine,
    target: ast.expr,
    value: Value,
    node: ast.AST,
    *,
    holder: Value | None = None,
    key: Value | None = None,
    again: bool = False,
) -> None:
    """Bind a target. `again` marks the store at the end of an augmented assignment, which tensors have done in place."""
    match target:
        case ast.Name(id=name):
            bind(m, name, value)
            state = m.tensor(value)
            if state is not None:
                m.note(target, state)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(m, targets, value, node)
        case ast.Starred(value=inner):
            assign(m, inner, value, node)
        case ast.Attribute():
            owner = m.eval(target.value) if holder is None else holder
            if again and m.tensor(owner) is not None:
                return
            set_attribute(m, owner, target.attr, value, node)
        case ast.Subscript():
            owner = m.eval(target.value) if holder is None else holder
            if again and m.tensor(owner) is not None:
                indexing.written_through_view(m, owner, value, node)
                return
            set_item(m, owner, m.eval(target.slice) if key is None else key, value, node)


def _unpack(m: Machine, targets: list[ast.expr], value: Value, node: ast.AST) -> None:
    stars = [at for at, target in enumerate(targets) if isinstance(target, ast.Starred)]
    items = items_of(m, value)
    if items is not None and not stars and len(items) == len(targets):
        for target, item in zip(targets, items, strict=False):
            assign(m, target, item, node)
        return
    if items is not None and stars and len(items) >= len(targets) - 1:
        at = stars[0]
        after = len(targets) - at - 1
        middle = items[at : len(items) - after]
        pieces = [*items[:at], m.new(targets[at], Sequence("list", middle)), *items[len(items) - after :]]
        for target, item in zip(targets, pieces, strict=False):
            assign(m, target, item, node)
        return
    for at, target in enumerate(targets):
        if isinstance(target, ast.Starred):
            assign(m, target, m.new(target, Sequence("list", None, element_of(m, value, target))), node)
        elif type(value) is Ref and type(m.cells.get(value.address)) in (Opaque, Tensor, Range):
            assign(m, target, part(m, value, at, target), node)
        elif type(value) is Union and any(
            type(a) is Tuple and len(a.items) == len(targets) for a in value.atoms
        ):
            fitting = [a for a in value.atoms if type(a) is Tuple and len(a.items) == len(targets)]
            assign(m, target, join_all([a.items[at] for a in fitting]), node)
        elif type(value) is Union and all(_has_places(m, atom) for atom in value.atoms):
            assign(m, target, join_all([part(m, atom, at, target) for atom in value.atoms]), node)
        else:
            assign(m, target, element_of(m, value, target), node)


def _has_places(m: Machine, value: Value) -> bool:
    """Whether something may be a tuple of which nothing is known but what lies where."""
    content = m.cells.get(getattr(value, "address", -1))
    return type(content) is Opaque or (type(content) is Tensor and content.loose)


def part(m: Machine, value: Ref, at: int, node: ast.AST) -> Value:
    """The element at a position of something that is unpacked."""
    content = m.cells.get(value.address)
    if type(content) is Range:
        return content.element
    if type(content) is Tensor and not content.loose:
        return indexing.row(m, value, node)
    if type(content) is Tensor:
        return indexing.index(m, value, const(at), node)
    return child(m, value, f"[{at}]", node)
