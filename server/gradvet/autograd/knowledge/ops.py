"""What one callable does to autograd, and what it does when its arguments leave open which form is called."""

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

Answer = Literal["always", "maybe", "never"]
OTHER = "other"  # the kind of an argument of which nothing is known


class Output(NamedTuple):
    """One output tensor of a call."""

    at: str  # its path: "0", "1.0" for the first of the second; "=self" for an input edited and not returned
    grad: Answer  # requires grad when an input of `grad_from` does and grad mode is on
    share: Answer  # shares memory with an input
    view: Answer  # is a view of an input in autograd's sense
    inner: Answer  # is a view of something made inside the call: it shares memory with no input
    same: Answer  # is the input object itself
    of: tuple[str, ...]  # the parameters it may share with
    leaf: Answer  # is a leaf of its own that requires grad
    dtype: str  # same, promote, float, int, bool, complex or maybe
    fn: tuple[str, ...]  # every name of grad_fn it may have; empty where any is possible
    zero: bool  # the gradient through it is always zero
    many: bool  # stands for every element of a list


class Saved(NamedTuple):
    """An operand that backward reads again: changing it in place in between makes backward raise."""

    operand: str  # a parameter, or the index of an output
    answer: Answer
    needs: frozenset[str]  # it is saved when one of these requires grad


class Op(NamedTuple):
    """What one callable does. Build it with `Knowledge`, not by hand."""

    name: str
    params: tuple[str, ...]  # positional; `dim|other` where overloads differ, `*tensors` for the rest
    ret: str  # tensor, tuple, list, namedtuple:<name>, number, bool, none, ndarray, dict, str, other
    fields: tuple[str, ...]
    out: tuple[Output, ...]
    grad_from: Mapping[str, Answer]
    mutates: Mapping[str, Answer]
    raises_on_grad: Mapping[str, str]  # parameter -> message
    leaf_ok: bool  # may edit a leaf that requires grad, as `nn.init` does
    needs_grad: bool  # raises when no input requires grad
    no_backward: Mapping[str, Answer]  # parameters whose backward raises by itself
    saves_in: tuple[Saved, ...]
    saves_out: tuple[Saved, ...]
    saves_hidden: Answer  # keeps what was neither given nor returned
    twice: str  # raises, fine or maybe: a second backward without retain_graph
    flat: (
        bool  # no gradient through it has a graph of its own, whatever it keeps: of a sum, a clamp, a gather
    )
    no_grad_inside: bool
    property: bool
    forms: Mapping[str, "Op"]  # the same callable with certain arguments
    when: Mapping[str, str]  # for a form: `parameter|parameter` -> kind of argument that selects it

    def parameter(self, position: int, *, tensor: bool = False) -> str | None:
        """The parameter that a positional argument goes to; `dim|other` gives `dim`, or `other` for a tensor."""
        if position < len(self.params):
            names = _names(self.params[position])
            if not tensor or len(names) == 1:
                return names[0]
            return next((n for n in names if n in self.grad_from), names[0])
        return self.params[-1][1:] if self.params and self.params[-1].startswith("*") else None

    def out_asks(self, at: str) -> bool:
        """Whether the output at a place may require grad: the indices of `max(dim)` do not."""
        return any(out.at == at and out.grad != "never" for out in self.out)

    def form(self, given: Mapping[str, str]) -> "Op":
        """The form that these arguments select, or this record itself.

        `given` holds each argument's kind: tensor, number, true, false, none, str, list, other. Where an
        `other` might be what selects a form, what that form does is possible too.
        """
        for form in self.forms.values():
            if any(
                _selects(wanted, given.get(p, "absent"))
                for ps, wanted in form.when.items()
                for p in ps.split("|")
            ):
                return form
        found = self
        for form in self.forms.values():
            if any(given.get(p) == OTHER for ps in form.when for p in ps.split("|")):
                found = joined(found, form)
        return found


@cache
def _names(parameter: str) -> list[str]:
    """The names of a parameter that is called differently in different forms."""
    return parameter.lstrip("*").split("|")


def _selects(wanted: str, kind: str) -> bool:
    return kind not in ("absent", "none") if wanted == "given" else kind in wanted.split("|")


def joined(op: Op, form: Op) -> Op:
    """What is true of either, where both give the same kind of thing; else the first."""
    if op.ret != form.ret or [o.at for o in op.out] != [o.at for o in form.out]:
        return op
    return op._replace(
        out=tuple(map(_either, op.out, form.out)),
        grad_from=_answers(op.grad_from, form.grad_from),
        mutates=_answers(op.mutates, form.mutates),
        raises_on_grad={p: text for p, text in op.raises_on_grad.items() if p in form.raises_on_grad},
        leaf_ok=op.leaf_ok or form.leaf_ok,
        needs_grad=op.needs_grad and form.needs_grad,
        no_backward=_answers(op.no_backward, form.no_backward),
        saves_in=_saves(op.saves_in, form.saves_in),
        saves_out=_saves(op.saves_out, form.saves_out),
        saves_hidden=_answer(op.saves_hidden, form.saves_hidden),
        twice=op.twice if op.twice == form.twice else "maybe",
        flat=op.flat and form.flat,
        no_grad_inside=op.no_grad_inside and form.no_grad_inside,
    )


def _answer(a: Answer, b: Answer) -> Answer:
    return a if a == b else "maybe"


def _answers(a: Mapping[str, Answer], b: Mapping[str, Answer]) -> dict[str, Answer]:
    return {p: _answer(a.get(p, "never"), b.get(p, "never")) for p in (*a, *b)}


def _either(a: Output, b: Output) -> Output:
    bounded = (a.fn or a.grad == "never") and (b.fn or b.grad == "never")
    return a._replace(
        grad=_answer(a.grad, b.grad),
        share=_answer(a.share, b.share),
        view=_answer(a.view, b.view),
        inner=_answer(a.inner, b.inner),
        same=_answer(a.same, b.same),
        of=tuple(dict.fromkeys((*a.of, *b.of))),
        leaf=_answer(a.leaf, b.leaf),
        dtype=a.dtype if a.dtype == b.dtype else "maybe",
        fn=tuple(dict.fromkeys((*a.fn, *b.fn))) if bounded else (),
        zero=a.zero and b.zero,
        many=a.many or b.many,
    )


def _saves(a: tuple[Saved, ...], b: tuple[Saved, ...]) -> tuple[Saved, ...]:
    """What both save for the same needs is saved always, and what one of them does is at times."""
    always = [_needs(saved, "always") for saved in (a, b)]
    either = _needs((*a, *b))
    found = []
    for operand, needs in either.items():
        sure = always[0].get(operand, frozenset()) & always[1].get(operand, frozenset())
        found += [Saved(operand, "always", sure)] if sure else []
        found += [Saved(operand, "maybe", needs - sure)] if needs - sure else []
    return tuple(found)


def _needs(saved: tuple[Saved, ...], answer: Answer | None = None) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for one in saved:
        if answer in (None, one.answer):
            found[one.operand] = found.get(one.operand, frozenset()) | one.needs
    return found
