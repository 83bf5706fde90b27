"""`itertools`: what its iterators give, each element one of all that may come."""

import ast

from gradvet.autograd.library.externals import handles
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import NONE, Const, Number, Range, Sequence, Tuple, Value, join, join_all
from gradvet.autograd.python.calls import Call, call_value, unknown_call
from gradvet.autograd.python.objects import element_of, items_of
from gradvet.autograd.python.operators import binary

MOST_TOGETHER = 6


def _generator(m: Machine, call: Call, element: Value, tag: str = "iterator") -> Value:
    return m.new(call.node, Sequence("generator", None, element, nonempty=True), tag)


def _elements(m: Machine, call: Call, values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(element_of(m, value, call.node) for value in values)


@handles("itertools.product")
def _product(m: Machine, name: str, call: Call) -> Value:
    times = call.keywords.get("repeat")
    if times is not None and (type(times) is not Const or times.value > MOST_TOGETHER):
        return unknown_call(m, call, "a product of many")
    return _generator(m, call, Tuple(_elements(m, call, call.args) * (1 if times is None else times.value)))


@handles("itertools.zip_longest")
def _zip_longest(m: Machine, name: str, call: Call) -> Value:
    filling = call.keywords.get("fillvalue", NONE)
    return _generator(m, call, Tuple(tuple(join(e, filling) for e in _elements(m, call, call.args))))


@handles("itertools.combinations", "itertools.permutations", "itertools.combinations_with_replacement")
def _combinations(m: Machine, name: str, call: Call) -> Value:
    if not call.args:
        return unknown_call(m, call, "combinations of something")
    element, count = element_of(m, call.args[0], call.node), call.argument(1, "r")
    if type(count) is Const and count.kind == "int" and count.value <= MOST_TOGETHER:
        return _generator(m, call, Tuple((element,) * count.value))
    return _generator(m, call, m.new(call.node, Sequence("tuple", None, element), "together"))


@handles("itertools.pairwise")
def _pairwise(m: Machine, name: str, call: Call) -> Value:
    if not call.args:
        return unknown_call(m, call, "pairs of something")
    element = element_of(m, call.args[0], call.node)
    return _generator(m, call, Tuple((element, element)))


@handles("itertools.accumulate")
def _accumulate(m: Machine, name: str, call: Call) -> Value:
    """The first element, then what a function makes of the result before and the next: run twice, so that it settles."""
    if not call.args:
        return unknown_call(m, call, "what adds up")
    element = element_of(m, call.args[0], call.node)
    function, total = call.argument(1, "func"), join_all([element, *_given(call, "initial")]) or element
    for number in range(2):
        with m.numbered(call.node, number):
            if function is None or function == NONE:
                made = binary(m, call.node, ast.Add(), total, element)
            else:
                made = call_value(m, function, Call(call.node, (total, element)))
        total = join(total, made)
    return _generator(m, call, total)


def _given(call: Call, name: str) -> tuple[Value, ...]:
    return (call.keywords[name],) if name in call.keywords else ()


@handles("itertools.tee")
def _tee(m: Machine, name: str, call: Call) -> Value:
    count = call.argument(1, "n")
    if not call.args or (count is not None and (type(count) is not Const or count.value > MOST_TOGETHER)):
        return unknown_call(m, call, "copies of an iterator")
    items = items_of(m, call.args[0])
    element = None if items is not None else element_of(m, call.args[0], call.node)
    content = Sequence("generator", items, element)
    return Tuple(
        tuple(m.new(call.node, content, f"copy {at}") for at in range(2 if count is None else count.value))
    )


@handles("itertools.groupby")
def _groupby(m: Machine, name: str, call: Call) -> Value:
    if not call.args:
        return unknown_call(m, call, "groups of something")
    element, key = element_of(m, call.args[0], call.node), call.argument(1, "key")
    told: Value = element
    if key is not None and key != NONE:
        _, told = m.for_all(call.node, lambda: (True, call_value(m, key, Call(call.node, (element,)))))
    return _generator(m, call, Tuple((told, _generator(m, call, element, "group"))), "groups")


@handles("itertools.starmap")
def _starmap(m: Machine, name: str, call: Call) -> Value:
    if len(call.args) < 2:  # noqa: PLR2004
        return unknown_call(m, call, "what a function gives")
    element = element_of(m, call.args[1], call.node)
    args, star = (element.items, None) if type(element) is Tuple else ((), element_of(m, element, call.node))
    given = Call(call.node, args, {}, star)
    _, value = m.for_all(call.node, lambda: (True, call_value(m, call.args[0], given)))
    return _generator(m, call, value)


@handles("itertools.takewhile", "itertools.dropwhile", "itertools.filterfalse", "itertools.compress")
def _some(m: Machine, name: str, call: Call) -> Value:
    """Some of the elements; a function that is asked about each is asked."""
    if len(call.args) < 2:  # noqa: PLR2004
        return unknown_call(m, call, "some of something")
    if name.endswith("compress"):
        return _generator(m, call, element_of(m, call.args[0], call.node))
    element = element_of(m, call.args[1], call.node)
    if call.args[0] != NONE:
        m.for_all(call.node, lambda: (True, call_value(m, call.args[0], Call(call.node, (element,)))))
    return _generator(m, call, element)


@handles("itertools.count")
def _count(m: Machine, name: str, call: Call) -> Value:
    return m.new(call.node, Range(Number("number"), nonempty=True))
