"""What one measured call showed."""

from dataclasses import dataclass, field

from tools.measure.copies import Case


@dataclass(frozen=True)
class Out:
    """One output tensor of one call."""

    grad: bool
    same: bool
    share: bool
    view: bool  # shares and is a view in autograd's sense
    inner: bool  # is a view, but of something that the call has made
    of: str | None  # the parameter whose memory it shares
    fn: str | None
    leaf: bool  # requires grad as a leaf of its own
    empty: bool  # without elements, so that memory says nothing
    zero: bool | None  # whether every gradient through it was zero; None where none was taken


@dataclass(eq=False)
class Seen:
    """What one call showed. Paths are shortened to parameter names."""

    case: Case
    ret: str
    fields: tuple[str, ...]
    paths: tuple[str, ...]
    differentiable: bool  # whether an input could carry grad
    outs: dict[str, Out] = field(default_factory=dict)
    varied: list[dict[str, Out]] = field(default_factory=list)  # the same under other circumstances
    untracked: list[dict[str, Out]] = field(default_factory=list)  # and where nothing is recorded
    brief: bool = False  # only the outputs were looked at
    kinds: dict[str, dict[str, str]] = field(default_factory=dict)  # scenario -> output -> dtype kind
    first: str = ""  # dtype kind of the first tensor input
    mutates: set[str] = field(default_factory=set)
    inputs: set[str] = field(default_factory=set)
    grad_from: dict[str, bool] = field(default_factory=dict)
    raises: dict[str, str] = field(default_factory=dict)
    no_backward: dict[str, bool] = field(default_factory=dict)
    saves_in: dict[str, set[str]] = field(default_factory=dict)  # operand -> inputs whose gradient needs it
    saves_out: dict[str, set[str]] = field(default_factory=dict)
    hidden: bool = False  # whether something neither given nor returned is kept for backward
    probed: bool = False  # whether saved operands could be looked for
    twice: bool | None = None  # whether a second backward raises
    flat: bool | None = None  # whether no gradient of it has a graph, though every input requires grad
    no_grad_inside: bool = False
    leaf_ok: bool = False  # edits a leaf that requires grad without an error
    needs_grad: bool = False  # raises when no input requires grad
