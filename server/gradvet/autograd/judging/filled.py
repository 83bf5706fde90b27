"""What is minus infinity, or zero, wherever a mask says so: scores that were filled before a softmax.

`p * log p` is NaN there, and so is `0 * -inf` on the way back, whatever masks the product (measured on torch 2.13).
"""

import ast
from typing import NamedTuple

from gradvet.autograd.judging.flow import PRODUCT, Flow, Made, Part

LOGARITHMS = frozenset({"log", "log2", "log10"})
_FILLS = frozenset({"masked_fill", "masked_fill_", "where", "[...] ="})
_KEEPS = frozenset(
    {"unsqueeze", "squeeze", "view", "reshape", "expand", "flatten", "transpose", "permute"}
    | {"float", "double", "to", "clone", "contiguous"}
)
_MOST = 12


class Filled(NamedTuple):
    """What is zero, or minus infinity if it is `infinite`, wherever a mask is (or is not) `true`."""

    mask: ast.expr
    true: bool
    infinite: bool


def filled_operand(flow: Flow, op: Made) -> Filled | None:
    """The operand of a logarithm that is zero, or the factor that is minus infinity, where a mask has filled it."""
    if op.name in LOGARITHMS:
        found = _filled(flow, op.parts[0]) if op.parts else None
        return found if found is not None and not found.infinite else None
    if op.name not in PRODUCT or not all(part.sure for part in op.parts):
        return None  # it is the gradient of the other factor that becomes NaN
    for part in op.parts if len(op.parts) > 1 else ():
        found = _filled(flow, part)
        if found is not None and found.infinite:
            return found
    return None


def _filled(flow: Flow, part: Part) -> Filled | None:
    """Whether an operand comes from a softmax of what a mask has filled with minus infinity."""
    softmax = ""
    for _ in range(_MOST):
        made = flow.made(min(part.nodes)) if part.sure and len(part.nodes) == 1 else None
        if made is None or not made.parts:
            return None
        filled = _fill(made) if made.name in _FILLS else None
        if filled is not None:
            return Filled(*filled, infinite=softmax == "log_softmax") if softmax else None
        if made.name in ("softmax", "log_softmax") and not softmax:
            softmax = made.name
        elif made.name not in _KEEPS:
            return None
        part = made.parts[0]
    return None


def _fill(made: Made) -> tuple[ast.expr, bool] | None:
    """By which mask something was filled with minus infinity, and whether where that is true."""
    match made.site:
        case ast.Call(func=ast.Attribute(attr="masked_fill" | "masked_fill_"), args=[mask, value]) if (
            _is_minus_infinity(value)
        ):
            return mask, True
        case ast.Call(func=ast.Attribute(attr="where"), args=[mask, one, other]):
            if _is_minus_infinity(one) is not _is_minus_infinity(other):
                return mask, _is_minus_infinity(one)
        case ast.Assign(targets=[ast.Subscript(slice=mask)], value=value) if _is_minus_infinity(value):
            return mask, True
    return None


def _is_minus_infinity(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name("float"), args=[ast.Constant(value=str() as text)]):
            return text.strip().lower() in ("-inf", "-infinity")
        case ast.UnaryOp(op=ast.USub(), operand=ast.Attribute(attr="inf")):
            return True
        case ast.UnaryOp(
            op=ast.USub(), operand=ast.Call(func=ast.Name("float"), args=[ast.Constant(value=str() as text)])
        ):
            return text.strip().lower() in ("inf", "infinity")
    return False
