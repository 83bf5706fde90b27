"""What a backward tells of things that are not known: where it starts requires grad, and so do the terms of the loss.

A loss that is unknown when it is made and known only later in the iteration is known from the start in the
next pass over the loop: what its place gives is then taken to require grad at once.
"""

import ast
from typing import Any

from gradvet.autograd.backward_pass import LEARN
from gradvet.autograd.graph import MOST_DEEP, UNKNOWN, add_node, node_key, reachable, unknown_key
from gradvet.autograd.held import held_tensors
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.machine import EXPECT, Machine
from gradvet.autograd.memory.domain import FLOAT, GRAD, MAYBE, NO, NOTHING, YES, Node, Origin, Tensor
from gradvet.autograd.memory.values import ANY_ITEM, Const, Number, Opaque, Ref, Tuple, Value, atoms, join_all
from gradvet.autograd.python.calls import Call
from gradvet.autograd.unknowns import is_made_of_data, is_weight, opaque_inputs

ROOT = "it requires grad, since `backward()` is called on it"
TERM = "it requires grad, as a term of a loss on which `backward()` is called"
ALIKE = (
    "it requires grad, since another call of the same gives a term of a loss on which `backward()` is called"
)

MOST_TERMS = 24
MOST_SOURCES = 40
_ADDED = frozenset({"+", "-", "+=", "-=", "add()", "add_()", "sub()", "sub_()"})
_WEIGHTED = frozenset({"*", "/", "*=", "/=", "mul()", "mul_()", "div()", "div_()"})
_SAME = frozenset({"neg", "scale", "squeeze", "float", "to"})
_BOUNDED = frozenset({"clip()", "clamp()", "clip_()", "clamp_()"})
_PICKED = frozenset({"min()", "max()", "minimum()", "maximum()"})
_REDUCED = frozenset({"mean", "sum", "nanmean", "view", "reshape", "flatten"})
_SYMBOLS: dict[type, str] = {ast.Add: "+", ast.Sub: "-"}


def learn(m: Machine, value: Value, site: ast.AST) -> None:
    """A backward starts from this value, unless it is an object that has a backward of its own."""
    if type(value) is Ref and value.address & ~1 not in m.objects:
        if m.judge is not None:
            m.judge.open_weights.backward(value)
        _requires(m, value, site, ROOT, {})
        _by_only_sources(m, value, site)


def _requires(
    m: Machine, ref: Ref, site: ast.AST, words: str, seen: dict[int, bool], *, summed: bool = True
) -> None:
    """Take it that something requires grad, and the terms that it is the sum of, but for those that were `seen`.

    Below what is not `summed`, as in the mean of a difference, one of the parts need not require grad.
    """
    content: Any = m.cells.get(ref.address)
    if ref.address & 1 or not _may_require(content):
        return  # what stands for several is not known by what happens to one of them
    if (ref.address in seen and seen[ref.address] >= summed) or len(seen) >= MOST_TERMS:
        return
    if words == TERM and type(content) is Tensor and _is_weighted_constant(m, ref, content):
        return
    seen[ref.address] = summed
    terms, linear = _terms(m, ref, content)
    for term in terms if summed or len(terms) == 1 else ():
        for one in _refs(term):
            if one.address & 1 and _is_whole_sum(content):
                _each_requires(m, one, 0)
            _requires(m, one, site, TERM, seen, summed=summed and linear)
    if not terms:
        _by_only_sources(m, ref, site)
        content = m.cells.get(ref.address)
    if type(content) is Opaque:
        others = _given_alike(m, ref, content)
        _known(m, ref, content, site, words)
        for other, place in others:
            _known_alike(m, other, place)
    else:
        _lead_to_terms(m, content)
        if content.requires_grad == YES:
            return
        m.write(ref, _asking(content, words))
    m.learnt[ref.address] = words


def _is_whole_sum(content: object) -> bool:
    """Whether something unknown is the `sum()` of all that a container holds."""
    return (
        type(content) is Opaque
        and content.adds
        and content.origin is not None
        and isinstance(content.origin.node, ast.Call)
    )


def _each_requires(m: Machine, ref: Ref, depth: int) -> None:
    """All of what one place has made is summed up: it is taken that each requires grad, from the next pass on."""
    content = m.cells.get(ref.address)
    if type(content) is not Opaque or not was_computed(content) or depth > MOST_DEEP:
        return
    terms, _ = _terms_of_unknown(m, content)
    for one in (one for term in terms for one in _refs(term)):
        _each_requires(m, one, depth + 1)
    if not terms and content.origin is not None:
        inputs = [state for state in _inputs(m, ref) if state.requires_grad & YES]
        leaves = NOTHING.union(*(state.leaves for state in inputs))
        cuts = NOTHING.union(*(state.cuts for state in inputs))
        m.expected.setdefault(ref.address & ~1, ALIKE)
        add_node(m, ref.address, UNKNOWN, content.origin.node, inputs, keeps=YES, all_known=False)
        m.store.set(ref.address, _computed(ref.address, leaves, cuts, content.origin, ALIKE))


def _may_require(content: Any) -> bool:
    if type(content) is Tensor:
        return content.requires_grad != NO
    return type(content) is Opaque and not _is_nothing(content)


def _is_weighted_constant(m: Machine, ref: Ref, state: Tensor) -> bool:
    """Whether something is `weight * constant`, where a cut made the constant: of a sum the others may require grad."""
    node = m.cells.get(node_key(ref.address))
    return state.requires_grad == MAYBE and bool(state.dead) and type(node) is Node and node.name in _WEIGHTED


def _is_nothing(content: Opaque) -> bool:
    """Whether something is `0 * weight`: the loss that would be weighted is left out."""
    made = content.origin.node if content.origin is not None else None
    return (
        isinstance(made, ast.BinOp)
        and type(made.op) is ast.Mult
        and any(type(part) is Const and part.value in (0, 0.0) for part in content.inputs)
    )


def _is_weighted_number(m: Machine, part: Value) -> bool:
    """Whether something is `weight * number`: what a weighted term is where a loss of no items is a plain number."""
    content = m.cells.get(getattr(part, "address", -1))
    if type(content) is not Opaque or content.origin is None:
        return False
    made = content.origin.node
    return (
        isinstance(made, ast.BinOp)
        and type(made.op) in (ast.Mult, ast.Div)
        and any(type(part) in (Const, Number) for part in content.inputs)
        and all(is_weight(m, part) for part in content.inputs)
    )


def _asking(state: Tensor, words: str) -> Tensor:
    """A tensor that may require grad, once it is known to."""
    computed = bool(state.nodes)
    return state._replace(
        requires_grad=YES,
        is_leaf=NO if computed else state.is_leaf,
        grad_fn=state.grad_fn - {None} if computed else state.grad_fn,
        dtype=FLOAT,
        assumes=state.assumes | {words},
    )


def _lead_to_terms(m: Machine, state: Tensor) -> None:
    """A node that was made of unknown terms leads to what made them, now that they are known."""
    for address in state.nodes:
        node, unknown = m.cells.get(node_key(address)), m.cells.get(unknown_key(address))
        if type(node) is Node and type(unknown) is Tuple:
            new = NOTHING.union(*(part.nodes for item in unknown.items for _, part in m.tensors(item)))
            if new - node.inputs:
                m.store.set(node_key(address), node._replace(inputs=node.inputs | new, sure=node.sure | new))


def _known(m: Machine, ref: Ref, content: Opaque, site: ast.AST, words: str) -> None:
    """Something unknown did require grad, or the line would raise: it is a tensor that was computed.

    It may have been made outside the loop that is under way: it is no younger for it, unless the next pass takes
    another from the same container.
    """
    older = [loop for loop in m.loops if ref.address not in loop.allocs]
    older = [] if _is_any_item(m, ref, content) else older
    _computed_there(m, ref, content, site, words)
    for loop in older:
        loop.allocs.discard(ref.address)


def _computed_there(m: Machine, ref: Ref, content: Opaque, site: ast.AST, words: str) -> None:
    inputs = _inputs(m, ref)
    leaves, nodes, cuts = NOTHING, NOTHING, NOTHING
    for state in inputs:
        if state.requires_grad & YES:
            leaves, nodes = leaves | state.leaves, nodes | state.nodes
        cuts |= state.cuts
    address = ref.address
    flagged = m.judge.cut_notes.flagged.get(address & ~1) if m.judge is not None else None
    if flagged is not None:
        # Had it been computed, `loss.requires_grad = True` would have raised: it is a leaf, and all there is to reach.
        number = m.cut("forced", "requires_grad", flagged, leaves, nodes, cuts)
        m.judge.cut_notes.made_leaf(address, number)
        own = frozenset({address})
        leaf = Tensor(YES, storage=own, leaves=own, cuts=cuts | {number}, origin=content.origin)
        m.write(ref, leaf)
        return
    operation = _operation(content)
    if operation is not None and len(operation[1]) > 1:
        m.alike[operation] = words
    keeps = MAYBE if _is_any_item(m, ref, content) else YES
    add_node(m, address, _name(content, inputs), site, inputs, keeps=keeps, all_known=False)
    m.write(ref, _computed(address, leaves, cuts, content.origin, words))


def _is_any_item(m: Machine, ref: Ref, content: Opaque) -> bool:
    """Whether something is what lies under an index that is not known: the next time it may be another item."""
    return any(
        m.cells.get((part.address, ANY_ITEM)) == ref for part in content.inputs[:1] if type(part) is Ref
    )


def _inputs(m: Machine, value: Value) -> list[Tensor]:
    """The tensors that went into something unknown; those that may not have are no more than possible."""
    found: list[Tensor] = []
    _take_inputs(m, value, found, {}, certain=True, depth=0)
    return found


def _take_inputs(
    m: Machine,
    value: Value,
    found: list[Tensor],
    entered: dict[tuple[int, bool], int],
    *,
    certain: bool,
    depth: int,
) -> None:
    """Add the tensors that went into a value; what was entered before, no deeper than now, tells nothing more."""
    for atom in atoms(value):
        address = getattr(atom, "address", -1)
        content = m.cells.get(address)
        if type(content) is not Opaque or depth > MOST_DEEP:
            continue
        sure = certain and type(value) is Ref and not value.address & 1
        if entered.get((address, sure), MOST_DEEP + 1) <= depth:
            continue
        entered[address, sure] = depth
        for item in content.inputs:
            one = sure and type(item) is Ref and not item.address & 1
            held = [state for _, state in held_tensors(m, item)]
            found += (
                held if one else [state._replace(requires_grad=state.requires_grad | NO) for state in held]
            )
            _take_inputs(m, item, found, entered, certain=sure, depth=depth + 1)


def _computed(
    address: int, leaves: frozenset[int], cuts: frozenset[int], origin: Origin | None, words: str
) -> Tensor:
    return Tensor(
        requires_grad=YES,
        is_leaf=NO,
        grad_fn=frozenset({"*"}),
        storage=frozenset({address}),
        nodes=frozenset({address}),
        leaves=leaves,
        cuts=cuts,
        origin=origin,
        assumes=frozenset({words}),
    )


def _name(content: Opaque, inputs: list[Tensor]) -> str:
    """The name of the op that made something: a sum of tensors is known as one."""
    node = content.origin.node if content.origin is not None else None
    if content.adds and inputs and isinstance(node, ast.Call):
        return "+"  # by `sum()`
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and inputs:
        return _SYMBOLS.get(type(node.op), UNKNOWN)
    return UNKNOWN


def _known_alike(m: Machine, ref: Ref, site: ast.AST) -> None:
    """The same of what another call has made before."""
    _known(m, ref, m.cells[ref.address], site, ALIKE)
    m.learnt[ref.address] = ALIKE


def _given_alike(m: Machine, ref: Ref, content: Opaque) -> list[tuple[Ref, ast.AST]]:
    """What other calls of the same thing in the same function gave in the same place, when it was asked alike.

    What is entered around just one of them may turn grad mode off.
    """
    path, whole = _place_in_result(m, ref, content)
    found = m.cells.get(whole.address)
    called = found.inputs[0] if type(found) is Opaque and found.inputs else None
    known = m.results.get(called.address & ~1, {}) if type(called) is Ref and not called.address & 1 else {}
    if whole.address not in known:
        return []
    site, function, _ = known[whole.address]
    asked = _asked(site)
    alike = []
    for address, (place, home, _) in known.items() if asked is not None else ():
        if place is site or home is not function or _asked(place) != asked or _entered(function, place, site):
            continue
        other: Value = Ref(address)
        for name in path:
            other = m.cells.get((getattr(other, "address", -1), name))
        if type(other) is Ref and not other.address & 1 and type(m.cells.get(other.address)) is Opaque:
            alike.append((other, place))
    return alike


def _by_only_sources(m: Machine, ref: Ref, site: ast.AST) -> None:
    """Where all that something can have its graph from are results of one thing, those that were asked for twice have one.

    The ratio of new and old chances is such: whichever of the two requires grad, the other does as well.
    """
    found = _sources(m, ref)
    if len(found) < 2 or len({_thing(m, one) for one in found}) > 1:  # noqa: PLR2004
        return
    twice: dict[Ref, None] = {}
    for one in found:
        alike = {other.address for other, _ in _given_alike(m, one, m.cells[one.address])}
        twice |= dict.fromkeys(other for other in found if other.address in alike)
    for one in twice:
        origin = m.cells[one.address].origin
        _known_alike(m, one, origin.node if origin is not None else site)
    if not twice:
        return
    for at in reachable(m, getattr(m.cells.get(ref.address), "nodes", NOTHING)):
        node, unknown = m.cells.get(node_key(at)), m.cells.get(unknown_key(at))
        if type(node) is Node and type(unknown) is Tuple:
            new = NOTHING.union(*(state.nodes for state in opaque_inputs(m, *unknown.items)))
            if new - node.inputs:
                m.store.set(node_key(at), node._replace(inputs=node.inputs | new, sure=node.sure | new))


def _sources(m: Machine, ref: Ref) -> list[Ref]:
    """The unknown results of calls from which something may have a graph; none where it may come from elsewhere."""
    found: dict[Ref, None] = {}
    entered: set[Value] = set()
    queue: list[Value] = [ref]
    for value in queue:
        if value in entered or len(entered) > MOST_SOURCES:
            if len(entered) > MOST_SOURCES:
                return []
            continue
        entered.add(value)
        content = m.cells.get(getattr(value, "address", -1))
        if type(value) in (Const, Number) or (type(content) is Tensor and content.requires_grad == NO):
            continue
        if type(content) is Tensor:
            nodes = reachable(m, content.nodes)
            if not nodes or any(node.leaves for node in nodes.values()):
                return []
            cells = [m.cells.get(unknown_key(at)) for at in nodes]
            queue += [item for unknown in cells if type(unknown) is Tuple for item in unknown.items]
        elif type(value) is not Ref or type(content) is not Opaque:
            return []
        elif is_made_of_data(m, value):
            continue
        elif _is_computed_by_torch(content):
            queue += content.inputs
        elif _place_in_result(m, value, content)[1].address in m.results.get(_thing(m, value), ()):
            found[value] = None
        else:
            return []
    return list(found)


def _thing(m: Machine, ref: Ref) -> int:
    """Of what the results are from which something unknown comes."""
    whole = m.cells.get(_place_in_result(m, ref, m.cells[ref.address])[1].address)
    called = whole.inputs[0] if type(whole) is Opaque and whole.inputs else None
    return called.address & ~1 if type(called) is Ref else 0


def _is_computed_by_torch(content: Opaque) -> bool:
    """Whether something unknown is what an operator, or a method that tensors have, makes of what it is given."""
    node = content.origin.node if content.origin is not None else None
    match node:
        case ast.BinOp() | ast.UnaryOp():
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return load().method(name) is not None
    return False


def _place_in_result(m: Machine, ref: Ref, content: Opaque) -> tuple[list[str], Ref]:
    """By which names one comes to something unknown from what a call gave, and that."""
    path: list[str] = []
    for _ in range(MOST_DEEP):
        whole = content.inputs[0] if len(content.inputs) == 1 else None
        if type(whole) is not Ref or type(m.cells.get(whole.address)) is not Opaque:
            break
        names = m.attributes.get(whole.address & ~1, {})
        name = next((name for name in names if m.cells.get((whole.address, name)) == ref), None)
        if name is None or name == ANY_ITEM:
            break
        path.insert(0, name)
        ref, content = whole, m.cells[whole.address]
    return path, ref


def _asked(site: ast.AST) -> tuple[str, int, tuple[str, ...]] | None:
    """How a call is written, but for what it is given: what is a constant there tells how it is to be done."""
    if not isinstance(site, ast.Call) or any(isinstance(arg, ast.Starred) for arg in site.args):
        return None
    fixed = [f"{at}={ast.dump(arg)}" for at, arg in enumerate(site.args) if isinstance(arg, ast.Constant)]
    for keyword in site.keywords:
        if keyword.arg is None:
            return None
        value = ast.dump(keyword.value) if isinstance(keyword.value, ast.Constant) else ""
        fixed.append(f"{keyword.arg}={value}")
    return ast.dump(site.func), len(site.args), tuple(sorted(fixed))


def _entered(function: ast.AST, one: ast.AST, other: ast.AST) -> bool:
    """Whether a `with` stands around just one of two places in a function."""
    for node in ast.walk(function):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            inside = set(ast.walk(node))
            if (one in inside) is not (other in inside):
                return True
    return False


# -- the terms of a sum


def _terms(m: Machine, ref: Ref, content: Opaque | Tensor) -> tuple[list[Value], bool]:
    """The things of which the gradient of a value is the gradient, up to a weight, and whether it is a sum of them.

    Each may be one of several: `0` where a term is left out, or whatever a branch has made of it.
    """
    if isinstance(content, Opaque):
        return _terms_of_unknown(m, content)
    node = m.cells.get(node_key(ref.address))
    if type(node) is not Node or ref.address not in content.nodes:
        return [], False
    unknown = m.cells.get(unknown_key(ref.address))
    known = _operands(m, ref.address, node)
    parts = known + [part for part in (unknown.items if type(unknown) is Tuple else ()) if _refs(part)]
    if node.name in _ADDED:
        return _addends(m, parts), True
    if node.name in _WEIGHTED:  # the weight is the one of which nothing is known
        return known if len(known) == 1 else _weighted(m, parts), True
    if node.name in _PICKED:
        parts = _behind_all(m, parts)  # whichever is picked was made of that
    elif node.name in _BOUNDED and len(known) == 1:
        parts = known  # the bounds are settings
    # If the only one did not require grad, neither would what was made of it.
    only = parts if len(parts) == 1 and not _need_not(m, ref, parts[0]) else []
    return only, node.name.removesuffix("()") in _SAME


def _behind_all(m: Machine, parts: list[Value]) -> list[Value]:
    """The nearest thing that all of several were made of, where each was made of one thing that requires grad."""
    if len(parts) < 2:  # noqa: PLR2004
        return parts
    ways: list[list[Value]] = []
    for part in parts:
        way: list[Value] = [part]
        while type(way[-1]) is Ref and len(way) < MOST_TERMS:
            content: Any = m.cells.get(way[-1].address)
            terms = _terms(m, way[-1], content)[0] if _may_require(content) else []
            if len(terms) != 1:
                break
            way += terms
        ways.append(way)
    return [one for one in ways[0] if all(one in way for way in ways)][:1]


def _need_not(m: Machine, ref: Ref, part: Value) -> bool:
    """Whether something need not require grad for a tensor that was made with it to do so.

    A module's parameters may ask for it; and what was only given beside something that is known may well be a target.
    """
    made = m.judge.flow.made(ref.address) if m.judge is not None else None
    if made is None or not made.parts:
        return False
    given = _refs(part)
    own = {at for one in given for at in getattr(m.cells.get(one.address), "nodes", ())} | {
        one.address for one in given
    }
    return is_made_of_data(m, part) or any(
        other.leaves and not (other.leaves | other.nodes) & own for other in made.parts
    )


def _operands(m: Machine, address: int, node: Node) -> list[Value]:
    """The tensors that went into a node, those together of which an operand may have been any."""
    made = m.judge.flow.made(address) if m.judge is not None else None
    left = set(node.inputs)
    found = []
    for part in made.parts if made is not None else ():
        together = sorted(left & part.nodes)
        left -= part.nodes
        found += [join_all([Ref(at) for at in together])] if together else []
    return [*found, *(Ref(at) for at in sorted(left))]


def _terms_of_unknown(m: Machine, content: Opaque) -> tuple[list[Value], bool]:
    node = content.origin.node if content.origin is not None else None
    parts = [part for part in content.inputs if _refs(part)]
    if content.adds:
        return _addends(m, parts), True
    match node:
        case ast.UnaryOp():
            return _addends(m, parts), True
        case ast.BinOp(op=ast.Mult() | ast.Div()) | ast.AugAssign(op=ast.Mult() | ast.Div()):
            return _weighted(m, parts), True
        case ast.Call(func=ast.Attribute(attr="scale"), args=[_]):  # of a gradient scaler
            return parts[-1:], True
        case ast.Call(func=ast.Attribute(attr=name)) if name in _SAME or name in _REDUCED:
            return _addends(m, parts[:1]), name in _SAME
    return [], False


def _refs(value: Value) -> list[Ref]:
    """What a value may be that lies on the heap: numbers beside it say no more than that it may be left out."""
    return [atom for atom in atoms(value) if type(atom) is Ref]


def _addends(m: Machine, parts: list[Value]) -> list[Value]:
    """Of what is added, all that was computed: an argument or an item of a batch may be a target, a plain number."""
    found = [
        part for part in parts if any(asks(m, part) for asks in (_is_tensor, _was_computed, _is_of_result))
    ]
    return found if len(found) == 1 else [part for part in found if not _is_weighted_number(m, part)]


def _weighted(m: Machine, parts: list[Value]) -> list[Value]:
    """Of two factors, the one that is not just a weight: the only one, that is a tensor, was or may have been computed."""
    for asks in (_is_any, _is_tensor, _was_computed, _is_of_result):
        found = [part for part in parts if asks(m, part)]
        if len(found) == 1:
            return found
    return []


def _is_any(m: Machine, part: Value) -> bool:
    return True


def _is_tensor(m: Machine, part: Value) -> bool:
    return all(type(m.cells.get(ref.address)) is Tensor for ref in _refs(part))


def _was_computed(m: Machine, part: Value) -> bool:
    contents = [m.cells.get(ref.address) for ref in _refs(part)]
    return all(type(content) is Tensor or was_computed(content) for content in contents)


def _is_of_result(m: Machine, part: Value) -> bool:
    """Whether something is, or lies in, what a call gave: an argument or an attribute beside it is a weight."""
    contents = [m.cells.get(ref.address) for ref in _refs(part)]
    return all(type(content) is Opaque and content.reason.startswith("the result of") for content in contents)


def was_computed(content: object) -> bool:
    """Whether something unknown was made by a call or an operator, and is no argument, attribute or item."""
    if type(content) is not Opaque or content.origin is None:
        return False
    return isinstance(content.origin.node, (ast.Call, ast.BinOp, ast.UnaryOp, ast.AugAssign))


# -- from one pass to the next


def remember(m: Machine) -> None:
    """At the end of an iteration: what is sure to have required grad will do so from the start the next time."""
    for address, words in m.learnt.items():
        content = m.cells.get(address)
        if type(content) is Tensor and content.requires_grad == YES:
            m.expected[address] = words
    m.learnt.clear()


def expected(m: Machine, ref: Ref, site: ast.AST) -> None:
    """Something unknown is made where an earlier pass has found what requires grad."""
    content = m.cells.get(ref.address)
    if m.mode != GRAD:
        return
    if type(content) is Opaque:
        words = m.expected.get(ref.address) or m.alike.get(_operation(content) or _NO_OPERATION)
        if words is not None:
            _computed_there(m, ref, content, site, words)
    elif type(content) is Tensor and content.requires_grad == MAYBE and ref.address in m.expected:
        m.write(ref, _asking(content, m.expected[ref.address]))


def _operation(content: Opaque) -> tuple[type, tuple[Value, ...]] | None:
    """The operator that made something unknown, with what it was given: the same once more gives the same."""
    node = content.origin.node if content.origin is not None else None
    if isinstance(node, ast.BinOp) and not any(getattr(part, "address", 0) & 1 for part in content.inputs):
        return type(node.op), content.inputs
    return None


_NO_OPERATION: tuple[type, tuple[Value, ...]] = (ast.AST, ())


def handed_to_backward(m: Machine, holder: Value, given: Value) -> bool:
    """Whether `holder.backward(given)` is that of an engine, which runs the backward of what it is given.

    Otherwise `given` is the gradient with which the backward of `holder` begins.
    """
    if any(state.requires_grad & YES for _, state in m.tensors(given)):
        return True
    made = m.cells.get(getattr(holder, "address", -1))
    if m.tensors(given) or (was_computed(made) and not _is_an_object(made)):
        return False
    return may_be_loss(m, given)


def runs_backward(m: Machine, name: str, call: Call) -> bool:
    """Whether a function of this name, of which nothing else is known, runs a backward from what it is given first.

    `backward` and Lightning's `manual_backward` do; of others, such as `scaled_backward`, it is taken only where
    that is possible: `batch_norm_backward(grad_output)` computes a backward by hand, as does what gives a result.
    """
    if "backward" not in name or not call.args or call.node not in m.lone:
        return False
    given = held_tensors(m, call.args[0])
    if not given:
        return is_loss(m, call.args[0])
    return name in ("backward", "manual_backward") or all(state.requires_grad != NO for _, state in given)


def is_loss(m: Machine, value: Value) -> bool:
    """Whether something unknown may be a loss that is handed to a function that runs its backward."""
    return type(value) is not Number and may_be_loss(m, value)


def may_be_loss(m: Machine, value: Value) -> bool:
    """Whether something unknown was computed, whichever of its alternatives it is."""
    found = _refs(value)
    return bool(found) and all(was_computed(m.cells.get(ref.address)) for ref in found)


def _is_an_object(content: object) -> bool:
    """Whether something was made by a call of a class, as its name is written: `Accelerator()` gives no tensor."""
    node = content.origin.node if type(content) is Opaque and content.origin is not None else None
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name[:1].isupper() and not name.isupper()
    return False


LEARN.append(learn)
EXPECT.append(expected)
