"""`match`: whether a pattern fits a value, and what its names stand for then."""

import ast

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES
from gradvet.autograd.memory.values import (
    NAME,
    Const,
    Dict,
    Number,
    Sequence,
    Text,
    Tuple,
    Unknown,
    Value,
    atoms,
    const,
)
from gradvet.autograd.python.control import is_instance, is_none
from gradvet.autograd.python.names import bind
from gradvet.autograd.python.objects import element_of, get_attribute, items_of


def match(m: Machine, pattern: ast.pattern, value: Value) -> int:
    """Whether a pattern fits a value. Its names are bound in any case, to what they stand for if it does."""
    match pattern:
        case ast.MatchValue(value=node):
            return _equal(m.eval(node), value)
        case ast.MatchSingleton(value=None):
            return is_none(m, value)
        case ast.MatchSingleton(value=known):
            return _equal(const(known), value)
        case ast.MatchAs(pattern=inner, name=name):
            found = YES if inner is None else match(m, inner, value)
            if name is not None:
                bind(m, name, value)
            return found
        case ast.MatchOr(patterns=patterns):
            found = NO
            for one in patterns:
                this = match(m, one, value)
                if this == YES:
                    return YES
                found |= this
            return found
        case ast.MatchSequence(patterns=patterns):
            return _sequence(m, patterns, value)
        case ast.MatchMapping():
            return _mapping(m, pattern, value)
        case ast.MatchClass():
            return _instance(m, pattern, value)
    return MAYBE


def _both(first: int, second: int) -> int:
    """Whether two things hold together."""
    if NO in (first, second):
        return NO
    return YES if first == second == YES else MAYBE


def _equal(wanted: Value, value: Value) -> int:
    found = 0
    for atom in atoms(value):
        if NAME in (getattr(atom, "kind", ""), getattr(wanted, "kind", "")):
            found |= MAYBE
        elif type(atom) is Const and type(wanted) is Const:
            found |= YES if atom.value == wanted.value else NO
        elif type(atom) in (Tuple, Const):
            found |= NO
        elif type(wanted) is Const and type(atom) is Text:
            found |= MAYBE if wanted.kind == "str" else NO
        elif type(wanted) is Const and type(atom) is Number:
            found |= NO if wanted.kind == "str" or wanted.value is None else MAYBE
        else:
            found |= MAYBE
    return found


def _sequence(m: Machine, patterns: list[ast.pattern], value: Value) -> int:
    items = items_of(m, value) if type(value) is not Const else None
    stars = [at for at, one in enumerate(patterns) if isinstance(one, ast.MatchStar)]
    fixed = len(patterns) - len(stars)
    plain = type(value) in (Const, Number, Text)
    fits = items is not None and (len(items) == fixed or (bool(stars) and len(items) >= fixed))
    if plain or (items is not None and not fits):
        for name in _captures(patterns):
            bind(m, name, Unknown("a part of what does not match"))
        return NO
    if items is None:
        element = element_of(m, value, patterns[0]) if patterns else Unknown()
        parts: list[Value] = [element] * len(patterns)
        if stars:
            parts[stars[0]] = m.new(patterns[stars[0]], Sequence("list", None, element))
    else:
        after = len(patterns) - stars[0] - 1 if stars else 0
        middle = items[stars[0] : len(items) - after] if stars else ()
        parts = list(items)
        if stars:
            rest = m.new(patterns[stars[0]], Sequence("list", tuple(middle)))
            parts = [*items[: stars[0]], rest, *items[len(items) - after :]]
    found = YES if items is not None else MAYBE
    for one, part in zip(patterns, parts, strict=True):
        if isinstance(one, ast.MatchStar):
            if one.name is not None:
                bind(m, one.name, part)
        else:
            found = _both(found, match(m, one, part))
    return found


def _mapping(m: Machine, pattern: ast.MatchMapping, value: Value) -> int:
    content = m.cells.get(getattr(value, "address", -1))
    found = YES if type(content) is Dict and content.rest is None else MAYBE
    for key_node, one in zip(pattern.keys, pattern.patterns, strict=True):
        key = m.eval(key_node)
        part = content.get(key) if type(content) is Dict and type(key) is Const else None
        if part is None and type(content) is Dict and content.rest is None and type(key) is Const:
            found = NO
        elif part is None:
            found = _both(found, MAYBE)
        known = match(m, one, part if part is not None else Unknown("a value of what is matched"))
        found = _both(found, known)
    if pattern.rest is not None:
        bind(m, pattern.rest, m.new(pattern, Dict((), Unknown("the rest of what is matched"), Text())))
    return found


def _instance(m: Machine, pattern: ast.MatchClass, value: Value) -> int:
    wanted = (m.eval(pattern.cls),)
    found = 0
    for atom in m.alternatives(value):
        found |= is_instance(m, atom, wanted)
    for name, one in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        found = _both(found, match(m, one, get_attribute(m, value, name, pattern)))
    for one in pattern.patterns:
        whole = len(pattern.patterns) == 1  # `int(x)` binds the whole of it
        found = _both(found, match(m, one, value if whole else Unknown("a part of an object")) | NO)
    return found


def _captures(patterns: list[ast.pattern]) -> list[str]:
    names = (ast.MatchAs, ast.MatchStar)
    return [n.name for one in patterns for n in ast.walk(one) if isinstance(n, names) and n.name]
