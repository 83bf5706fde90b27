"""Arrays and tensors that share memory: an edit of the one, and a later use of the other."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events_alias import SharedEdit
from gradvet.autograd.judging.above import ANY_FUNCTION, function_of, statement_of
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import NOTHING, YES, Alias, Tensor
from gradvet.autograd.memory.values import Array, Dict, Sequence, refs
from gradvet.syntax.parents import Parents

_DESCRIBES = frozenset({
    "shape", "size", "dtype", "device", "ndim", "dim", "numel", "requires_grad", "is_leaf", "layout", "itemsize", "nbytes",
    "is_cuda", "element_size", "stride",
})  # fmt: skip
"""Attributes that tell of a tensor or an array, and not of its values."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def rewritten_key(storage: int) -> tuple[int, str]:
    """The cell that holds the edits (a bit set) of a storage that were made through its other side."""
    return (storage, "#rewritten")


@dataclass(slots=True)
class Edit:
    """An edit of one side; `alias` is how the edited side came from the other, None when it is the first.

    `others` are then the addresses of what had been made of it, and `kept` whether a container holds one of them.
    An array of a parameter that is `used` after the edit was edited for that use: the module that keeps the
    parameter goes on with the edited values, whether or not anybody names it again.
    """

    edited: str
    site: ast.AST
    calls: tuple[ast.AST, ...]
    alias: Alias | None
    target: ast.expr | None
    anew: bool
    loops: tuple[tuple[Loop, int], ...]
    saved: tuple[ast.AST, ...] = ()
    others: frozenset[int] = frozenset()
    kept: bool = False
    of_parameter: bool = False
    used: bool = False
    made: ast.AST | None = None
    reads: list[ast.AST] = field(default_factory=list)


@dataclass(slots=True)
class NumpyNotes:
    """What was edited, in order, and who looked at the other side since."""

    machine: Machine
    edits: list[Edit] = field(default_factory=list)
    shared: set[int] = field(default_factory=set)

    def shares(self, storage: frozenset[int]) -> None:
        """An array was made of a tensor, or a tensor of an array."""
        self.shared |= {place & ~1 for place in storage}

    def array_edited(self, site: ast.AST, content: Array, *, anew: bool) -> None:
        """An array was changed in place."""
        edit = self._edit("array", site, content.storage, content.alias, target_of(site), anew=anew)
        if edit is not None:
            self.machine.judge.spoil(edit, Tensor(storage=content.storage))

    def tensor_edited(self, site: ast.AST, state: Tensor, target: ast.expr | None) -> None:
        """A tensor was changed in place."""
        alias = state.alias if state.alias is not None and state.alias.kind == "numpy" else None
        self._edit("tensor", site, state.storage, alias, target, anew=False)

    def _edit(
        self,
        edited: str,
        site: ast.AST,
        storage: frozenset[int],
        alias: Alias | None,
        target: ast.expr | None,
        *,
        anew: bool,
    ) -> Edit | None:
        m = self.machine
        of_parameter = edited == "array" and alias is not None and self._are_parameters(storage)
        if (len(storage) != 1 and not of_parameter) or not self.shared & {place & ~1 for place in storage}:
            return None
        place = next(iter(storage))
        others = self._made_of(place, Tensor if edited == "array" else Array) if alias is None else {}
        if alias is None and not others:
            return None
        loops = tuple((loop, loop.number) for loop in m.loops)
        edit = Edit(edited, site, m.where(), alias, target, anew, loops, others=frozenset(others))
        edit.of_parameter = of_parameter
        if alias is not None:
            edit.made = alias.node
        else:
            edit.made = next(iter(others.values()))
            edit.kept = any(_holds(content, edit.others) for content in m.cells.values())
        bit = 1 << len(self.edits)
        self.edits.append(edit)
        m.rewritten = True
        for each in storage:
            m.store.set(rewritten_key(each), m.cells.get(rewritten_key(each), 0) | bit)
        return edit

    def _are_parameters(self, storage: frozenset[int]) -> bool:
        """Whether parameters of modules lie in all of these places."""
        states = [self.machine.cells.get(place) for place in storage]
        return bool(states) and all(type(state) is Tensor and state.parameter == YES for state in states)

    def _made_of(self, place: int, kind: type) -> dict[int, ast.AST]:
        """The objects of the other side that were made of this storage, by address, with the calls that made them."""
        m = self.machine
        known = ((address, m.cells.get(address)) for address in m.store.sharing.on((place,)))
        return {
            address: content.alias.node
            for address, content in known
            if isinstance(content, (Tensor, Array))
            and type(content) is kind
            and content.alias is not None
            and content.alias.kind == "numpy"
            and content.storage == {place}
        }

    def looked_at(self, node: ast.AST, address: int, storage: frozenset[int], content: object) -> None:
        """A tensor, an array or something unknown is the value of an expression."""
        for place in storage:
            bits = self.machine.cells.get(rewritten_key(place), 0)
            number = 0
            while bits:
                if bits & 1:
                    self._looked_at(self.edits[number], node, address, content)
                bits >>= 1
                number += 1

    def _looked_at(self, edit: Edit, node: ast.AST, address: int, content: object) -> None:
        """Whether this is the other side; a later iteration may well look at another object of the same place."""
        if any(loop in self.machine.loops and loop.number != number for loop, number in edit.loops):
            return
        if (type(content) is Array) is (edit.edited == "array"):
            alias = content.alias if isinstance(content, (Tensor, Array)) else None
            own = alias is not None and alias.node is edit.made
            edit.used |= edit.of_parameter and own and not _contains(edit.site, node)
            return
        if edit.alias is None:  # the first side was edited; what is made of it afterwards has the new values
            if address in edit.others or (address & 1 and address - 1 in edit.others):
                edit.reads.append(node)
            return
        alias = content.alias if isinstance(content, (Tensor, Array)) else None
        certain = edit.of_parameter or len(getattr(content, "storage", NOTHING)) <= 1
        if certain and (alias is None or alias.kind != "numpy" or type(content) is Array):
            edit.reads.append(node)

    def conclude(self, parents: Parents) -> None:
        """Tell the edits that somebody sees without having wanted to."""
        told: dict[ast.AST, Edit] = {}
        for edit in self.edits:
            if edit.made is None or edit.site is edit.made:
                continue
            edit.reads = [node for node in edit.reads if not _describes(node, parents)]
            # Where nobody uses the array of a parameter after its edit, the parameter is what was to be edited.
            seen = edit.used if edit.of_parameter else bool(edit.reads or edit.kept)
            if edit.saved or (seen and not _is_meant(edit, edit.made, parents)):
                first = told.get(edit.made)
                if first is None or (edit.saved and not first.saved):
                    told[edit.made] = edit  # one copy mends all edits
        for made, edit in told.items():
            read = edit.reads[0] if edit.reads else None
            self.machine.emit(
                SharedEdit(edit.site, edit.calls, edit.edited, made, edit.target, read, edit.saved)
            )


def _holds(content: object, addresses: frozenset[int]) -> bool:
    """Whether a container has one of these objects among its elements."""
    if not isinstance(content, (Sequence, Dict)):
        return False
    element = content.element
    return element is not None and any(ref.address in addresses for ref in refs(element))


def target_of(site: ast.AST) -> ast.expr | None:
    """What a statement or call writes to."""
    match site:
        case ast.Assign(targets=[ast.Subscript(value=holder)]) | ast.AugAssign(ast.Subscript(value=holder)):
            return holder
        case ast.AugAssign(target=target):
            return target
        case ast.Call(keywords=keywords, args=args, func=func):
            out = next((keyword.value for keyword in keywords if keyword.arg == "out"), None)
            if out is not None:
                return out
            if isinstance(func, ast.Attribute) and (not args or func.attr.endswith("_")):
                return func.value
            return args[0] if args else None
    return None


def _describes(node: ast.AST, parents: Parents) -> bool:
    parent = parents.get(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _DESCRIBES
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "len"


def _is_meant(edit: Edit, made: ast.AST, parents: Parents) -> bool:
    """Whether the memory is shared on purpose: both sides are kept, or one is filled again and again."""
    if _contains(edit.target, made):
        return True  # written through the call itself: `x.numpy()[0] = 1`
    statement = statement_of(made, parents)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        return True
    if not edit.anew:
        return False
    homes = [function_of(node, parents, ANY_FUNCTION) for node in (made, edit.site)]
    return homes[0] is homes[1] and _loops(made, parents) != _loops(edit.site, parents)


def _contains(target: ast.AST | None, made: ast.AST) -> bool:
    return target is not None and any(node is made for node in ast.walk(target))


def _loops(node: ast.AST, parents: Parents) -> list[ast.AST]:
    found: list[ast.AST] = []
    while node in parents and not isinstance(node, ANY_FUNCTION):
        node = parents[node]
        if isinstance(node, _LOOPS):
            found.append(node)
    return found
