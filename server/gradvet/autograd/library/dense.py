"""Tensors that surely lie in one piece, in order: `reshape()`, `flatten()` and the like give views of them."""

import re

from gradvet.autograd.memory.domain import NO, Origin, Tensor

FLATTENING = frozenset({"reshape", "flatten", "ravel", "contiguous", "reshape_as"})
"""Ops that copy only what does not lie so."""
_MADE_SO = frozenset({
    "Linear", "linear", "@", "matmul", "mm", "addmm", "bmm", "baddbmm", "softmax", "Softmax", "log_softmax",
    "LogSoftmax", "stack", "Embedding", "embedding", "one_hot", "randn", "rand", "zeros", "ones", "full", "empty",
    "normal",
})  # fmt: skip
"""Ops whose results lie so, however what they are given does (measured on torch 2.13)."""
_AS_GIVEN = frozenset({
    "sigmoid", "Sigmoid", "tanh", "Tanh", "relu", "ReLU", "exp", "log", "sqrt", "abs", "neg", "gelu", "GELU", "silu",
    "SiLU", "softplus", "Softplus", "elu", "ELU", "leaky_relu", "LeakyReLU", "clamp", "clip", "square", "detach",
    "clone", "dropout", "Dropout", ".data",
})  # fmt: skip
"""Ops of one tensor whose result lies as that does."""
_PARAMETER = re.compile(r"(weight|bias)\w* of [A-Z]\w*")
"""What a parameter is called that a module of torch has made."""
_MOST_STEPS = 6


def is_dense(state: Tensor) -> bool:
    """Whether a tensor surely lies in one piece, by how it was made."""
    return state.view == NO and not state.loose and state.origin is not None and _is_made_so(state.origin)


def _is_made_so(origin: Origin) -> bool:
    for _ in range(_MOST_STEPS):
        word = origin.text.removesuffix("()")
        if word in _MADE_SO or _PARAMETER.fullmatch(word):
            return True
        if word not in _AS_GIVEN or len(origin.inputs) != 1:
            return False
        origin = origin.inputs[0]
    return False
