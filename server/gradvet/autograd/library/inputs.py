"""What goes into an op: arguments by parameter, the tensors among them, and what those give: gradient, dtype, cuts."""

import ast

from gradvet.autograd.held import held_tensors, surely_asks
from gradvet.autograd.knowledge.lookup import Op, Output
from gradvet.autograd.library import batches, forgotten
from gradvet.autograd.library.kept import Inputs, Operand
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import FLOAT, GRAD, INFERRING, INTEGER, MAYBE, NO, NOTHING, YES
from gradvet.autograd.memory.values import (
    Const,
    External,
    Method,
    Number,
    Opaque,
    Ref,
    Sequence,
    Text,
    Tuple,
    Union,
    Value,
    atoms,
)
from gradvet.autograd.unknowns import added_numbers, is_setting

_DTYPES = {"float": FLOAT, "complex": FLOAT, "int": INTEGER, "bool": INTEGER, "maybe": FLOAT | INTEGER}


_INTEGER_TYPES = frozenset(
    f"torch.{name}"
    for name in ("long", "int", "int64", "int32", "int16", "int8", "uint8", "bool", "short", "LongTensor")
)


_FLOAT_TYPES = frozenset(
    f"torch.{name}"
    for name in ("float", "double", "half", "float32", "float64", "float16", "bfloat16", "cfloat")
)


def bind(m: Machine, site: ast.AST, op: Op, args: tuple[Value, ...], keywords: dict[str, Value]) -> Inputs:
    """Give each argument the name of its parameter and find the tensors among them."""
    arguments: dict[str, Value] = {}
    rest: list[Value] = []
    for at, value in enumerate(args):
        name = op.parameter(at, tensor=m.tensor(value) is not None)
        if name is None or name in arguments:
            rest.append(value)
            arguments[f"arg{at}"] = value
        else:
            arguments[name] = value
    arguments |= {_spoken(op, word): value for word, value in keywords.items()}
    operands: list[Operand] = []
    unknown: list[Value] = []
    asking = False
    for name, value in arguments.items():
        kind = type(value)
        if kind in (Const, Number, Text, External):
            continue
        if kind is Method:
            forgotten.used(m, value, site)
        held = operands_of(m, name, value)
        operands += held
        if not held or m.tensor(value) is None:
            found = [atom for atom in _leaves_of(m, value) if m.is_unknown(atom) and not is_setting(m, atom)]
            asking = asking or bool(found and (name in op.grad_from or name.startswith("arg")))
            unknown += found
    return Inputs(arguments, tuple(operands), tuple(unknown), asking)


_NUMPY_WORDS = {
    "axis": "dim",
    "keepdims": "keepdim",
    "a": "input",
    "x": "input",
    "x1": "input",
    "x2": "other",
}
"""numpy's names for parameters, which torch takes too (torch/csrc/utils/python_arg_parser.cpp)."""


def _spoken(op: Op, word: str) -> str:
    """The name of a parameter that is given by numpy's name for it."""
    other = _NUMPY_WORDS.get(word)
    if other is None:
        return word
    named = {name for names in op.params for name in names.lstrip("*").split("|")}
    return other if word not in named and other in named else word


def operands_of(m: Machine, name: str, value: Value) -> list[Operand]:
    """The tensors of an argument. Of what is only one of several alternatives, none must require grad."""
    state = m.tensor(value)
    if state is not None:
        return [Operand(name, value, state)]
    held = held_tensors(m, value)
    if any(state.requires_grad & YES for _, state in held) and not surely_asks(m, value):
        held = [(ref, state._replace(requires_grad=state.requires_grad | NO)) for ref, state in held]
    return [Operand(name, ref, state) for ref, state in held]


def _leaves_of(m: Machine, value: Value) -> list[Value]:
    out: list[Value] = []
    for atom in atoms(value):
        content = m.cells.get(getattr(atom, "address", -1))
        if type(atom) is Tuple:
            out += [x for item in atom.items for x in _leaves_of(m, item)]
        elif type(content) is Sequence and content.element is not None:
            out += atoms(content.element)
        else:
            out.append(atom)
    return out


def argument_kind(m: Machine, value: Value) -> str:
    """The kind of an argument, by which an op's form is chosen."""
    kind = type(value)
    if kind is Const:
        if value.value is None:
            return "none"
        if value.kind == "bool":
            return "true" if value.value else "false"
        return "str" if value.kind == "str" else "number"
    if kind is Number:
        return "other" if value.kind == "bool" else "number"
    if kind is Text:
        return "str"
    if kind is Tuple:
        return "list"
    if m.tensor(value) is not None:
        return "tensor"
    content = m.cells.get(getattr(value, "address", -1))
    return "list" if type(content) is Sequence else "other"


Carried = tuple[int, list[Operand]]


def scalar_cuts(m: Machine, site: ast.AST, words: str, operands: tuple[Operand, ...]) -> frozenset[int]:
    """The cuts that a Python number made from tensors carries."""
    cuts = NOTHING
    for operand in operands:
        batches.read(m, site, operand.state, "number")
        cuts |= operand.state.cuts
        if operand.state.requires_grad & YES:
            cuts |= {
                m.cut("item", words, site, operand.state.leaves, operand.state.nodes, operand.state.cuts)
            }
    return cuts


def argument_cuts(m: Machine, inputs: Inputs) -> frozenset[int]:
    """The cuts that plain numbers among the arguments carry, also where something unknown was added to them."""
    cuts = NOTHING
    for value in inputs.arguments.values():
        kind = type(value)
        if kind is Number:
            cuts |= value.cuts
        elif kind is not Const and (kind is not Ref or type(m.cells.get(value.address)) is Opaque):
            cuts |= added_numbers(m, value)
    return cuts


def carried(op: Op, inputs: Inputs) -> tuple[int, list[Operand]]:
    """Whether gradients may come through the inputs, and through which."""
    truth, through = NO, []
    for operand in inputs.operands:
        answer = op.grad_from.get(operand.parameter)
        if answer is None and operand.parameter.startswith("arg"):
            answer = (
                op.grad_from.get("tensors")
                or (op.params and op.grad_from.get(op.params[-1].lstrip("*")))
                or None
            )
        if answer is None or operand.state.dtype == INTEGER:
            continue
        if operand.state.requires_grad & YES:
            through.append(operand)
            certain = operand.state.requires_grad == YES and answer == "always"
            truth = YES if certain or truth == YES else MAYBE
    if truth == NO and inputs.asking and op.grad_from:
        truth = MAYBE
    return truth, through


FILL = "fill_value"
"""The parameter that decides the dtype of what is filled with it: `torch.full((), 3)` is a tensor of integers."""


def _dtype_of_number(value: Value) -> int:
    kind = value.kind if type(value) in (Const, Number) else ""
    return FLOAT if kind in ("float", "complex") else INTEGER if kind in ("int", "bool") else FLOAT | INTEGER


def dtype_of(op: Op, out: Output, inputs: Inputs) -> int:
    """The dtype class of an output."""
    wanted = inputs.arguments.get("dtype")
    for value in (wanted, *inputs.arguments.values()) if out.dtype == "maybe" else (wanted,):
        if type(value) is Union and any(type(atom) is External for atom in value.atoms):
            return FLOAT | INTEGER
        if type(value) is External:
            if value.name in _INTEGER_TYPES:
                return INTEGER
            if value.name in _FLOAT_TYPES:
                return FLOAT
    if FILL in inputs.arguments and not inputs.operands:
        return _dtype_of_number(inputs.arguments[FILL])
    if out.dtype in _DTYPES and out.dtype != "maybe":
        return _DTYPES[out.dtype]
    if not inputs.operands:
        return FLOAT | INTEGER if inputs.unknown or out.dtype == "maybe" else FLOAT
    if out.dtype == "maybe":
        # What is not seen to be a dtype is a size or a device: `x.to(device)` keeps the dtype.
        others = [o.state.dtype for o in inputs.operands[1:] if o.parameter == "other"]
        return others[0] if others else inputs.operands[0].state.dtype
    if out.dtype == "promote":
        known = [o.state.dtype for o in inputs.operands]
        if FLOAT in known:
            return FLOAT
        number = any(
            type(v) is Number or (type(v) is Const and v.kind == "float") for v in inputs.arguments.values()
        )
        surely = not (number or inputs.unknown) and all(d == INTEGER for d in known)
        return INTEGER if surely else FLOAT | INTEGER
    first = inputs.operands[0]
    # `unknown.gather(1, index)` has the dtype of what is not known, never that of its index.
    return FLOAT | INTEGER if inputs.unknown and first.parameter != op.parameter(0) else first.state.dtype


def in_mode(m: Machine, truth: int, recording: int = GRAD) -> int:
    """What requires grad is left of `truth` in the present grad modes, of which those are `recording`."""
    if not m.mode & recording:
        return NO
    return truth if not m.mode & ~recording else truth | NO


def made_in(m: Machine) -> int:
    """Whether what is made now is an inference tensor."""
    return NO if not m.mode & INFERRING else MAYBE if m.mode & ~INFERRING else YES
