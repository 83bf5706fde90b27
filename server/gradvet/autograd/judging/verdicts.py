"""At the end of a run: which of the judge's notes are faults. Each becomes an event."""

import ast

from gradvet.autograd.events import AliasEdited, Backward, DataUse, ModeStatement, Retained, UnusedGraph
from gradvet.autograd.graph import node_key, reachable
from gradvet.autograd.judging import hooks_placed
from gradvet.autograd.judging.above import ANY_FUNCTION, function_of, statement_of
from gradvet.autograd.judging.adversaries import Adversaries
from gradvet.autograd.judging.averages import entering
from gradvet.autograd.judging.bypassed import bypassed
from gradvet.autograd.judging.cut_paths import cut_paths, cut_subject
from gradvet.autograd.judging.emptied import emptied_elsewhere
from gradvet.autograd.judging.equal_arms import equal_arms
from gradvet.autograd.judging.escapes import told_as_escapes
from gradvet.autograd.judging.evaluations import (
    gives_graphs,
    in_unknown_context,
    is_decorated,
    path_of,
    some_forward_asks,
)
from gradvet.autograd.judging.forwards import unrecorded_forwards
from gradvet.autograd.judging.frozen import reference_models
from gradvet.autograd.judging.function_forms import function_forms
from gradvet.autograd.judging.intents import intents
from gradvet.autograd.judging.judge import DataRead, Edit, Judge, ModuleCall
from gradvet.autograd.judging.number_lists import tensors_among_numbers
from gradvet.autograd.judging.open_data import asks_what, open_data
from gradvet.autograd.judging.retains import told_as_cuts
from gradvet.autograd.judging.retention import Kept, holder_words
from gradvet.autograd.judging.unused_terms import unused_terms
from gradvet.autograd.library.results import ALONE
from gradvet.autograd.machine import CutInfo, Machine
from gradvet.autograd.memory.domain import GRAD, NO, YES, Node, Origin, Tensor
from gradvet.autograd.memory.values import FALSE
from gradvet.syntax.parents import Parents
from gradvet.syntax.parse import Module
from gradvet.syntax.tree import walk


def conclude(m: Machine, judge: Judge, module: Module) -> None:
    """Emit the events that only the whole run can tell."""
    intents(m, judge, module)
    judge.conclude_topics(module)
    Adversaries(m, judge.flow, judge.protocol).conclude()
    judge.adversaries.conclude()
    reference_models(m, judge)
    _conclude(m, judge, module)
    if judge.thrown_away.runs:
        judge.thrown_away.conclude(module)
    unrecorded_forwards(m, module.parents)
    unused_terms(m, module)
    bypassed(m, judge)
    hooks_placed.conclude(m)
    _among_numbers(m, module)
    reads = {read.node for read in judge.data.values()}
    for event in open_data(module, lambda node: node in reads or node in m.states):
        m.emit(event)
    function_forms(m)
    equal_arms(m, module)
    told_as_escapes(m)
    told_as_cuts(m)


def _conclude(m: Machine, judge: Judge, module: Module) -> None:
    if not judge.noticed():
        return
    parents = module.parents
    # What a run that was cut short has not seen may have used a graph, or reached a leaf, after all.
    if m.cut_short:
        unused = set[int]()
        _evaluated_in_open_code(m, judge, parents, set())  # that rests on what was seen alone
    else:
        unused = _unused(m, judge, parents)
    _retained(m, judge, parents, unused)
    _data(m, judge, parents)
    _aliases(m, judge, parents)
    if not m.cut_short:
        cut_paths(m, judge, parents)


def _among_numbers(m: Machine, module: Module) -> None:
    """Emit the terms of losses that are kept where all else is a number."""
    if ".append(" not in module.words:
        return  # no closer look is needed

    def appends(function: ast.FunctionDef) -> bool:
        return "append" in m.info(function).attributes

    for call, function, term in tensors_among_numbers(module.tree, appends):
        value = call.args[0]
        known = m.states.get(value)
        sure = known is not None and known.requires_grad == NO
        if sure or is_decorated(function) or in_unknown_context(call, function, module.parents):
            continue
        assumed = frozenset({f"`{term.id}`, a term of the loss, requires grad"})
        state = Tensor(YES, origin=Origin(value, f"made from `{term.id}`"), assumes=assumed)
        holder = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        m.emit(Retained(call, (), state, holder, None, YES, "numbers", value, scalar=True, fixable=True))


def _both_ages(nodes: frozenset[int]) -> frozenset[int]:
    return nodes | {node | 1 for node in nodes}


def _needed(judge: Judge, kept: Kept) -> bool:
    """Whether a later backward went through what was kept, or code elsewhere may do so."""
    for address in kept.nodes:
        if kept.how in ("chain", "average") and address | 1 in judge.used_nodes:
            return True
        if judge.used_nodes.get(address | 1, 0) > kept.order:
            return True
        if address in judge.escaped_nodes or address | 1 in judge.escaped_nodes:
            return True
    return False


def _as_in_each_pass(kept: Kept) -> tuple[ast.AST, tuple[ast.AST, ...], str, frozenset[int]]:
    """What the passes of one loop have in common when they keep the same thing."""
    return kept.place.site, kept.place.calls, kept.how, kept.nodes


def _retained(m: Machine, judge: Judge, parents: Parents, unused: set[int]) -> None:
    reads = _attribute_reads(m, parents) if any(kept.how == "kept" for kept in judge.retention.kept) else {}
    piled = {site for kept in judge.retention.kept if kept.how != "returned" for site in _made_at(m, kept)}
    # What one pass of a loop kept and the next needed, the pass after the last one would have needed too.
    needed = {
        _as_in_each_pass(kept)
        for kept in judge.retention.kept
        if any(at | 1 in judge.surely_used for at in kept.nodes) and _needed(judge, kept)
    }
    told: set[ast.AST] = set()
    for kept in sorted(judge.retention.kept, key=lambda kept: kept.how == "number"):
        if kept.how == "number" and not told.isdisjoint(kept.place.calls):
            continue  # who hands over what piles up is told to keep a number
        if kept.how == "returned" and not piled.isdisjoint(_made_at(m, kept)):
            continue  # where it piles up is the place to speak of
        if kept.freed != YES and (m.graph_unseen or _needed(judge, kept) or _as_in_each_pass(kept) in needed):
            continue
        if (
            kept.how == "grow"
            and kept.freed != YES
            and (kept.at in judge.retention.let_go or emptied_elsewhere(kept.place, parents))
        ):
            continue  # by whoever uses it, when that is
        if unused and any(at & ~1 in unused or at in unused for at in reachable(m, _both_ages(kept.nodes))):
            continue  # its cause is told already: the forward itself should not have recorded
        if kept.how == "kept" and not reads.get(kept.attribute):
            continue  # never read in this file, or read where its graph is used
        site, holder, value = kept.place.site, kept.holder, kept.place.value
        if kept.how == "rebuilt":
            site = statement_of(site, parents)
            holder = holder_words(site)[0]
        elif kept.average is not None:
            statement = statement_of(site, parents)
            made = kept.average.node.node
            named = (
                holder_of(statement_of(at, parents)) for at in (made, *reversed(m.calls_of.get(made, ())))
            )
            holder = next((words for words in named if words), "it")
            value = value or entering(m, statement, kept.average)
            site = statement if value is None or kept.place.value is None else site
        elif kept.how == "chain" and value is None:
            site = statement_of(site, parents)
            holder, value = holder_words(site)
            if isinstance(site, ast.Assign):
                value = _added(m, value, kept)
        elif kept.how == "chain" and not holder.strip():
            holder = holder_words(statement_of(site, parents))[0] or "it"
        state = m.states.get(value) if value is not None else None
        averaged = kept.average is not None and kept.average.of_leaves
        if kept.how in ("chain", "average") and not (kept.trains or averaged or _is_scalar(state)):
            continue  # what an inference loop builds up step by step is its result, not a total
        fixable = state is not None and state.requires_grad & YES == YES
        told.add(site)
        scalar = bool(kept.nodes & judge.roots or {n | 1 for n in kept.nodes} & judge.roots) or _is_scalar(
            state
        )
        m.emit(
            Retained(
                site,
                kept.place.calls,
                state or kept.tensor,
                holder,
                kept.holder_node,
                kept.freed,
                kept.how,
                value,
                scalar,
                fixable,
            )
        )


def _made_at(m: Machine, kept: Kept) -> set[ast.AST]:
    """Where what is kept was made, whichever calls led there."""
    nodes = (m.cells.get(node_key(address)) for address in _both_ages(kept.nodes))
    return {node.node for node in nodes if type(node) is Node}


def holder_of(statement: ast.AST) -> str:
    """What a statement changes or binds: `avg` in `avg.mul_(0.9).add_(loss)`."""
    node: ast.AST | None = statement
    if isinstance(statement, ast.Expr):
        node = statement.value
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        return ast.unparse(node)
    return holder_words(statement)[0]


def _leaves_torch(node: ast.AST) -> bool:
    """Whether a call gives a number or text, whatever tensor it is given."""
    if not isinstance(node, ast.Call):
        return isinstance(node, (ast.Compare, ast.FormattedValue))
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in ("item", "tolist", "size", "dim", "detach", "numel")
    return isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "print", "len", "str", "repr")


def _added(m: Machine, value: ast.expr | None, kept: Kept) -> ast.expr | None:
    """In `total = total + loss`, or `queue = torch.cat([new, queue])[:size]`, the operand that is new."""
    made = value
    while isinstance(made, ast.Subscript):
        made = made.value
    sides: list[ast.expr] = []
    match made:
        case ast.BinOp(left=left, right=right):
            sides = [right, left]
        case ast.Call(args=[ast.List(elts=sides) | ast.Tuple(elts=sides), *_]) | ast.Call(args=sides):
            pass
    for side in sides:
        state = m.states.get(side)
        if state is not None and state.requires_grad & YES and not _chains(state.nodes, kept.nodes):
            return side
    return value


def _chains(nodes: frozenset[int], chain: frozenset[int]) -> bool:
    return any(node & ~1 in chain or node | 1 in chain for node in nodes)


def _is_scalar(state: Tensor | None) -> bool:
    """Whether a state was made by a reduction to one element."""
    if state is None or state.origin is None:
        return False
    node, words = state.origin.node, state.origin.text
    bare = isinstance(node, ast.Call) and not any(
        k.arg in ("dim", "axis", "reduction") for k in node.keywords
    )
    if words in ("mean()", "sum()") and isinstance(node, ast.Call):
        return bare and not node.args
    return bare and (words.endswith(("_loss()", "Loss")) or words == "cross_entropy()")


def _attribute_reads(m: Machine, parents: Parents) -> dict[str, bool]:
    """For each attribute name that is read: whether no read of it goes on with a graph."""
    found: dict[str, bool] = {}
    for node, holder in parents.items():
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if m.states.get(node) is None and m.states.get(_above(holder, parents)) is None:
            continue
        found[node.attr] = found.get(node.attr, True) and not _goes_on(m, node, parents)
    return found


def _goes_on(m: Machine, node: ast.AST, parents: Parents) -> bool:
    """Whether what is read goes on with its graph, through whatever methods are called on it."""
    while True:
        above = _above(parents[node], parents)
        state = m.states.get(above)
        if (state is not None and not state.requires_grad & YES) or _leaves_torch(above):
            return False
        if not _is_chained(node, above):
            return True
        node = above


def _above(holder: ast.AST, parents: Parents) -> ast.AST:
    """What an expression that this holds stands in; of `x` in `x.mean()` the call."""
    above = parents.get(holder) if isinstance(holder, ast.Attribute) else None
    return above if isinstance(above, ast.Call) and above.func is holder else holder


def _is_chained(node: ast.AST, above: ast.AST) -> bool:
    """Whether an expression is what a method is called on, or of what a part is taken."""
    match above:
        case (
            ast.Call(func=ast.Attribute(value=value))
            | ast.Subscript(value=value)
            | ast.Attribute(value=value)
        ):
            return value is node
    return False


def _unused(m: Machine, judge: Judge, parents: Parents) -> set[int]:
    """Emit forwards in eval mode that build graphs for nothing; the nodes of those graphs."""
    seen: set[ast.AST | None] = set()
    unused: set[int] = set()
    serving = [c for c in judge.modules if _is_used(judge, c) and not _only_measured(m, judge, c, parents)]
    used, needed = {call.function for call in serving}, {id(call) for call in serving}
    training = {at for event in m.events if isinstance(event, Backward) for at in event.calls}
    training |= {call.site for call in serving}
    silent = {
        function_of(event.node, parents, ANY_FUNCTION)
        for event in m.events
        if isinstance(event, ModeStatement)
    }
    for call in judge.modules:
        if call.mode != GRAD or id(call) in needed or isinstance(parents.get(call.site), ast.Expr):
            continue
        if any(not _is_parameter(m, leaf) for leaf in call.tensor.leaves):
            continue  # an input that asks for its own gradient: an attack, saliency
        site, calls = call.site, call.calls
        if call.own and calls:
            site, calls = calls[-1], calls[:-1]  # a method of the module that calls the module
        function = function_of(site, parents, ANY_FUNCTION)
        if call.training == FALSE:
            whole_model = judge.eval_sites.get(call.module.address & ~1)
            sites = whole_model or judge.eval_parts.get(call.module.address & ~1)
            if not sites or _is_target(m, judge, call):
                continue
            site, calls, function, evidence = _evaluator(call, sites, parents, used)
            # A method of what is in eval mode, and that serves training as well, is no place to speak of.
            inner = used | judge.in_forwards if not whole_model else set()
            while function in inner and calls and isinstance(calls[-1], ast.Call):
                site, calls = calls[-1], calls[:-1]
                function = function_of(site, parents, ANY_FUNCTION)
            if function in inner and calls:
                continue  # it was run for itself: who calls it is not known
            if site in training:
                continue  # it is no evaluation: a backward runs in it
        else:
            found = _only_used_detached(m, judge, call, function, parents)
            if found is None:
                continue
            evidence = found
        if call.tensor.assumes and _perhaps_without_grad(site, function, parents):
            continue
        if call.tensor.assumes >= ALONE and getattr(function, "name", "") in judge.evaluations.unrecorded:
            continue  # a method of this name is called without grad mode, of something that is not known
        unused |= call.nodes
        if function in seen or function in silent or isinstance(function, ast.Lambda):
            continue
        if any(function_of(outer, parents, ANY_FUNCTION) in silent - {None} for outer in call.calls):
            continue
        seen.add(function)
        whole = (
            isinstance(function, ast.FunctionDef) and function not in used and not _trains_inside(function)
        )
        m.emit(UnusedGraph(site, calls, call.tensor, evidence, function, whole))
    _evaluated_in_open_code(m, judge, parents, seen | silent)
    return unused


def _perhaps_without_grad(site: ast.AST, function: ast.AST | None, parents: Parents) -> bool:
    """Whether something around a place, of which nothing is known, might turn grad mode off."""
    return function is not None and (is_decorated(function) or in_unknown_context(site, function, parents))


def _evaluated_in_open_code(m: Machine, judge: Judge, parents: Parents, told: set[ast.AST | None]) -> None:
    """Emit what evaluates models that are not known, one for each function."""
    used = {at & ~1 for at in judge.used_nodes}
    if judge.evaluations.found and some_forward_asks(m):
        return  # what is not known may be a module whose forward takes a gradient itself
    for found in judge.evaluations.found.values():
        function = found.function
        if function in told or in_unknown_context(found.site, function, parents):
            continue
        if found.once and not (
            _is_only_stored(found.site, parents) or _is_for_nothing(found.site, function, parents)
        ):
            continue
        told_by_graph = not m.cut_short and not isinstance(parents.get(found.site), ast.Expr)
        if found.nodes and (told_by_graph or any(at & ~1 in used for at in found.nodes)):
            continue  # a whole run tells of such a module by its graph
        if found.method and not gives_graphs(m, found.method):
            continue
        told.add(function)
        words = ast.unparse(found.site.func)
        assumed = frozenset({f"`{words}` has parameters that train", "grad mode is on where it is called"})
        given = Tensor(YES, origin=Origin(found.site, f"what `{words}` gives"), assumes=assumed)
        whole = isinstance(function, ast.FunctionDef) and not _trains_inside(function)
        m.emit(UnusedGraph(found.site, found.calls, given, found.evidence, function, whole))


def _is_for_nothing(site: ast.Call, function: ast.AST, parents: Parents) -> bool:
    """Whether nobody takes what a call gives, and no hook that the file places looks at what goes through the module."""
    if not isinstance(parents.get(site), ast.Expr):
        return False
    own = parents.get(function) if path_of(site.func) == "self" else None
    looked_at = walk(own) if isinstance(own, ast.ClassDef) else (node for node, _ in parents.items())
    return not any(
        isinstance(node, ast.Attribute) and node.attr.startswith("register_") and node.attr.endswith("hook")
        for node in looked_at
    )


def _is_only_stored(site: ast.Call, parents: Parents) -> bool:
    """Whether what a call gives goes into an attribute and nowhere else."""
    match parents.get(site):
        case ast.Assign(targets=[ast.Attribute()], value=value):
            return value is site
    return False


def _is_target(m: Machine, judge: Judge, call: ModuleCall) -> bool:
    """Whether the result was detached on purpose: as the target of a loss, or to look at it once.

    A cut in what evaluates and trains alike is of the training.
    """
    numbers = {number for cuts in judge.cuts_of.values() for number in cuts}
    taking = [number for number in numbers if judge_cut_takes(m, number, call)]
    if taking and not all(_takes_of_training(m, judge, number) for number in taking):
        return True
    return not call.in_loop and any(_detached_later(m, info, call) for info in m.cuts)


def _takes_of_training(m: Machine, judge: Judge, number: int) -> bool:
    """Whether a cut takes its value from a module's call in training mode too."""
    return any(call.training != FALSE and judge_cut_takes(m, number, call) for call in judge.modules)


def _only_used_detached(
    m: Machine, judge: Judge, call: ModuleCall, function: ast.AST | None, parents: Parents
) -> ast.AST | None:
    """Where, in another function, what was kept of a call is detached to take part in a loss; None if nowhere."""
    if not call.tensor.leaves & judge.reached_leaves:
        return None  # the module is not trained here
    for cuts in judge.cuts_of.values():
        for number in cuts:
            info = m.cuts[number]
            receiver = cut_subject(info.node, parents)
            if (
                not isinstance(receiver, (ast.Subscript, ast.Attribute))
                or function_of(info.node, parents, ANY_FUNCTION) is function
            ):
                continue
            if _detached_later(m, info, call):
                return info.node
    return None


def _detached_later(m: Machine, info: CutInfo, call: ModuleCall) -> bool:
    return info.kind in ("detach", "data") and _comes_of(m, info, call)


def _comes_of(m: Machine, info: CutInfo, call: ModuleCall) -> bool:
    """Whether what was cut there was computed from what a call of a module gave."""
    behind = reachable(m, _both_ages(frozenset(info.nodes)))
    return any(at in behind or at ^ 1 in behind for at in call.nodes)


def judge_cut_takes(m: Machine, number: int, call: ModuleCall) -> bool:
    """Whether a cut takes its value from the result of a module's call."""
    nodes = m.cuts[number].nodes
    return any(at in nodes or at ^ 1 in nodes for at in call.nodes)


def _evaluator(
    call: ModuleCall, sites: dict[ast.AST, None], parents: Parents, used: set[ast.AST | None]
) -> tuple[ast.AST, tuple[ast.AST, ...], ast.AST | None, ast.AST]:
    """The forward in the innermost function that evaluates: a helper may serve training as well.

    A script, which is in no function, evaluates only by a helper that is among those `used` to train as well: of any
    other it is told where it stands.
    """
    found: list[tuple[int, ast.AST, ast.AST]] = []
    for evidence in sites:
        home = function_of(evidence, parents, ANY_FUNCTION)
        for at, site in enumerate((*call.calls, call.site)):
            if home is not None and function_of(site, parents, ANY_FUNCTION) is home:
                found.append((at, home, evidence))
                break
    own = function_of(call.site, parents, ANY_FUNCTION)
    if found:
        at, home, evidence = max(found, key=lambda one: one[0])
        return (*call.calls, call.site)[at], call.calls[:at], home, evidence
    for evidence in sites if own in used else ():
        if evidence in parents and function_of(evidence, parents, ANY_FUNCTION) is None:
            for at, site in enumerate(call.calls):
                if site in parents and function_of(site, parents, ANY_FUNCTION) is None:
                    return site, call.calls[:at], None, evidence
    return call.site, call.calls, own, next(reversed(sites))


def _trains_inside(function: ast.FunctionDef) -> bool:
    """Whether the function itself runs a backward, or turns to training."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr in ("backward", "step"))
        or isinstance(node, (ast.Yield, ast.YieldFrom))
        for node in ast.walk(function)
    )


def _is_used(judge: Judge, call: ModuleCall) -> bool:
    for address in call.nodes:
        for at in (address, address | 1):
            if at in judge.used_nodes or at in judge.escaped_nodes:
                return True
    return False


def _only_measured(m: Machine, judge: Judge, call: ModuleCall, parents: Parents) -> bool:
    """Whether what a model in eval mode gives of each batch is compared and counted, and then handed to whoever asks.

    Such a caller gets a result: to train on it he would need neither the eval mode nor the count.
    """
    if call.training != FALSE or not judge.used_nodes.keys().isdisjoint(_both_ages(call.nodes)):
        return False
    return _is_over_batches(call.site, parents) and any(
        info.kind == "nondiff" and _comes_of(m, info, call) for info in m.cuts
    )


def _is_over_batches(site: ast.AST, parents: Parents) -> bool:
    """Whether a place stands in a loop over things, and not over numbers of steps."""
    node: ast.AST | None = site
    while node is not None and not isinstance(node, ANY_FUNCTION):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            called = node.iter.func if isinstance(node.iter, ast.Call) else None
            return not (isinstance(called, ast.Name) and called.id in ("range", "trange"))
        node = parents.get(node)
    return False


def _is_parameter(m: Machine, leaf: int) -> bool:
    state = m.cells.get(leaf)
    return state is None or bool(state.parameter & YES)


def _data(m: Machine, judge: Judge, parents: Parents) -> None:
    together: dict[ast.AST, dict[ast.AST, None]] = {}
    for read in judge.data.values():
        together.setdefault(statement_of(read.write or read.node, parents), {})[read.node] = None
        together.setdefault(statement_of(read.node, parents), {})[read.node] = None
    writing = {
        statement_of(read.write or read.node, parents) for read in judge.data.values() if read.kind != "read"
    }
    for read in judge.data.values():
        node = read.node
        if isinstance(node, ast.Call):
            continue  # torch's own `vector_to_parameters()`
        if read.kind == "read" and statement_of(node, parents) in writing:
            continue  # the write in the same statement is what there is to say
        written = read.kind != "read"
        parent = parents.get(node)
        if asks_what(parent) and isinstance(node, ast.Attribute):
            continue
        init = isinstance(parent, ast.Call) and ast.unparse(parent.func).startswith(
            ("nn.init.", "init.", "torch.nn.init.")
        )
        subject = node.value if isinstance(node, ast.Attribute) else None
        if subject is None and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            subject = node.targets[0].value
        activation = written and not read.of_grad and _is_activation(m, read) and bool(read.mode & GRAD)
        statement = statement_of(read.write or node, parents)
        plain = (
            isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr))
            and statement_of(node, parents) is statement
        )
        kept = read.target if isinstance(read.target, (ast.Subscript, ast.Attribute)) else None
        if statement_of(node, parents) is statement:
            kept = None
        m.emit(
            DataUse(
                node,
                read.calls,
                read.tensor,
                read.kind,
                read.write,
                read.saved,
                read.of_grad,
                subject,
                activation,
                init,
                plain,
                kept,
                tuple(together[statement]),
            )
        )


def _is_activation(m: Machine, read: DataRead) -> bool:
    """Whether a gradient flows through what was read: it was computed, or a forward met it; no buffer, nothing new."""
    owners = [m.cells.get(at) for at in read.tensor.storage]
    if owners and all(type(owner) is Tensor and owner.parameter == YES for owner in owners):
        return False  # a view of a parameter, which is set up by it
    if read.tensor.is_leaf == NO or not read.forward:
        return read.tensor.is_leaf == NO
    made = [m.calls_to(at)[: len(read.calls)] for at in read.tensor.storage]
    new = bool(read.calls) and bool(made) and all(calls == read.calls for calls in made)
    return read.tensor.requires_grad == YES and not (new and read.tensor.parameter == YES)


def _aliases(m: Machine, judge: Judge, parents: Parents) -> None:
    seen: set[ast.AST] = set()
    for edit in judge.edits:
        alias = edit.tensor.alias
        if alias is None or alias.kind != "detach" or alias.node in seen:
            continue
        if _is_direct(edit.target, alias.node) and not edit.saved:
            continue  # nobody else could see an edit of a result that has no name: it is meant for the source
        if edit.how.startswith("copy_") and not edit.tensor.view & YES and not edit.saved:
            continue  # the whole is written anew: nobody wanted to keep a copy of it
        if not edit.saved and not edit.tensor.storage <= frozenset[int]().union(
            *(s.storage for s in edit.sources)
        ):
            continue  # what is edited may be something else
        for source in edit.sources[:1]:
            if not edit.saved and not (
                _lives_on(alias.node, parents) and not _is_gone(m, source, edit, parents)
            ):
                continue
            seen.add(alias.node)
            m.emit(
                AliasEdited(
                    edit.site, edit.calls, edit.tensor, source, alias.node, edit.target, edit.saved, edit.how
                )
            )


def _is_direct(target: ast.expr | None, alias: ast.AST) -> bool:
    """Whether the edit is made on the very result of `detach()`, or through views of it without a name."""
    node: ast.AST | None = target
    while node is not None:
        if node is alias:
            return True
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return False
    return False


def _source_of(alias: ast.Call) -> ast.expr:
    """What stands before `detach()`, without indices and attributes."""
    source = alias.func.value if isinstance(alias.func, ast.Attribute) else alias.func
    while isinstance(source, (ast.Subscript, ast.Attribute)):
        source = source.value
    return source


def _is_gone(m: Machine, source: Tensor, edit: Edit, parents: Parents) -> bool:
    """Whether a function that has returned by the time of an edit made the source, under a name of its own."""
    alias = edit.tensor.alias
    node = None if alias is None else alias.node
    if node not in parents:  # of another module: nobody here has a name for what a call there made
        chains = [m.calls_to(at) for at in source.storage]
        return bool(chains) and all(calls and calls[-1] not in edit.calls for calls in chains)
    home = None if node is None else function_of(node, parents, ANY_FUNCTION)
    name = _source_of(node) if isinstance(node, ast.Call) else None
    if not isinstance(home, (ast.FunctionDef, ast.AsyncFunctionDef)) or not isinstance(name, ast.Name):
        return False
    made = [(*m.calls_to(at), m.site_of(at)) for at in source.storage]
    running = (function_of(one, parents, ANY_FUNCTION) for one in (edit.site, *edit.calls))
    return (
        bool(made)
        and all(any(_stands_in(one, home, parents) for one in calls if one is not None) for calls in made)
        and not any(function is home for function in running)
    )


def _stands_in(node: ast.AST, function: ast.AST, parents: Parents) -> bool:
    return function_of(node, parents, ANY_FUNCTION) is function


def _lives_on(alias: ast.AST, parents: Parents) -> bool:
    """Whether the source has a name that is not given to the detached tensor itself."""
    if not isinstance(alias, ast.Call) or not isinstance(alias.func, ast.Attribute):
        return True
    source = _source_of(alias)
    if not isinstance(source, ast.Name):
        return False
    statement = statement_of(alias, parents)
    if isinstance(statement, ast.Assign):
        own = {ast.unparse(source), ast.unparse(alias.func.value)}
        return not any(ast.unparse(target) in own for target in statement.targets)
    return True
