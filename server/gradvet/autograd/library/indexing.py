"""`tensor[key]`, read and written: views, copies and changes in place."""

import ast

from gradvet.autograd.held import held_tensors
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library.changes import edit
from gradvet.autograd.library.kept import Operand
from gradvet.autograd.library.operations import perform
from gradvet.autograd.library.tensors import part_of_loose
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import (
    Array,
    Const,
    Number,
    Sequence,
    Slice,
    Tuple,
    Value,
    atoms,
    join,
)


def _index_form(m: Machine, key: Value, node: ast.expr | None) -> str:
    """Which of torch's ways of indexing a key selects; empty when that is not known.

    Of several indices the last that does something makes the result: a bare `:` and `...` do nothing, and
    neither does a slice that takes all there is.
    """
    kind = type(key)
    if kind is Slice:
        return "slice"
    if kind is Number:
        return "int" if key.kind != "bool" else ""
    if kind is Const:
        if key.value is None:
            return "None"
        if key.value is Ellipsis:
            return "ellipsis"
        return "bool" if key.kind == "bool" else "int"
    if kind is Tuple:
        nodes = (
            node.elts
            if isinstance(node, ast.Tuple) and len(node.elts) == len(key.items)
            else [None] * len(key.items)
        )
        forms = [_index_form(m, item, at) for item, at in zip(key.items, nodes)]
        if "" in forms:
            return ""
        for form in ("index_tensor", "bool"):
            if form in forms:
                return "index_tensor"
        acting = [f for f, at in zip(forms, nodes) if f != "ellipsis" and not _is_bare_slice(at)]
        if not acting:
            return "ellipsis"
        return "tuple_slice" if acting[-1] == "slice" else acting[-1]  # which may do nothing as well
    if m.tensor(key) is not None or type(m.cells.get(getattr(key, "address", -1))) in (Sequence, Array):
        return "index_tensor"
    return ""


def _is_bare_slice(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def index(m: Machine, value: Value, key: Value, node: ast.AST) -> Value:
    """`tensor[key]`: a view for basic indices, a copy for index tensors."""
    state = m.tensor(value)
    if state is not None and state.loose and (type(key) is Const and key.kind in ("str", "int")):
        return part_of_loose(m, value, state, f"[{key.value!r}]", node)
    op = load().method("__getitem__")
    if op is None:
        return m.unknown(node, "an indexed tensor", (value,))
    form = _index_form(m, key, node.slice if isinstance(node, ast.Subscript) else None)
    if not form and state is not None:
        copied = perform(
            m, node, op.forms.get("index_tensor", op), (value, key), {}, name="[...]", tag="copy"
        )
        viewed = perform(m, node, op.forms.get("slice", op), (value,), {}, name="[...]", tag="view")
        return join(viewed, copied)
    return perform(m, node, op.forms.get(form, op), (value, key), {}, name="[...]")


def row(m: Machine, value: Value, node: ast.AST) -> Value:
    """One element of a tensor that is iterated or unpacked: one of several views."""
    op = load().method("__iter__")
    state = m.tensor(value)
    if state is not None and state.loose:
        return part_of_loose(m, value, state, "[*]", node)
    if op is None:
        return m.unknown(node, "a row of a tensor", (value,))
    rows = perform(m, node, op, (value,), {}, name="[...]", tag="row")
    content = m.cells.get(getattr(rows, "address", -1))
    return content.element if type(content) is Sequence and content.element is not None else rows


def set_index(m: Machine, holder: Value, key: Value, new: Value, node: ast.AST) -> None:
    """`tensor[key] = new`: a change in place."""
    state = m.tensor(new)
    others: tuple[Operand, ...] = (Operand("value", new, state),) if state is not None else ()
    if state is None:
        others = tuple(Operand("value", ref, held) for ref, held in held_tensors(m, new))
    target = (
        node.targets[0].value
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
        else None
    )
    edit(
        m,
        node,
        holder,
        "[...] =",
        others,
        fn=("CopySlices", "IndexPutBackward0", "CopyBackwards"),
        target=target,
        places=tuple(Operand("indices", ref, held) for ref, held in held_tensors(m, key)),
        unknown=(new,) if not others and may_be_unknown(m, new) else (),
    )


def may_be_unknown(m: Machine, value: Value) -> bool:
    """Whether a value is, or has among its alternatives, something of which nothing is known."""
    return any(m.is_unknown(atom) for atom in atoms(value))


def written_through_view(m: Machine, holder: Value, new: Value, node: ast.AST) -> None:
    """The end of `tensor[key] += x`: the view was changed in place already, the holder is seen to change with it."""
