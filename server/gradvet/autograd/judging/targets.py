"""Which side of a loss is a target, a weight or a reference, and still leads a gradient where none is meant to go.

The shape of the computation tells, not a name alone:

- a bootstrapped value, data plus a part of what a network gives, is compared with what a network gives;
- the log-probability of an action that was only drawn is weighted with something that has a graph of its own;
- the log-probability that an action had is subtracted from what the same policy gives it, and has its graph still;
- a teacher's probabilities weight a student's log-probabilities;
- a loss only pulls two branches together, of which one goes through all of the other's modules and more;
- a network that is only ever set from another one is run with a graph.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.events import StopCrossed
from gradvet.autograd.events_flow import TargetInGraph
from gradvet.autograd.judging.flow import (
    DIFFERENCE,
    LINEAR,
    PRODUCT,
    QUOTIENT,
    SHAPE,
    SUM,
    Called,
    Chain,
    Flow,
    Made,
    Nodes,
    Part,
    Run,
    operands_of,
)
from gradvet.autograd.memory.domain import Tensor

DISTANCES = frozenset({
    "mse_loss", "MSELoss", "smooth_l1_loss", "SmoothL1Loss", "l1_loss", "L1Loss", "huber_loss", "HuberLoss",
})  # fmt: skip
SIMILARITIES = frozenset({"cosine_similarity", "CosineSimilarity"})
POWERS = frozenset({"**", "pow", "square", "abs", "norm"})
DIVERGENCES = frozenset({"kl_div", "KLDivLoss", "cross_entropy", "CrossEntropyLoss"})
PROBABILITIES = frozenset({"softmax", "Softmax", "sigmoid", "Sigmoid", "exp", "gumbel_softmax"})
LOGARITHMS = frozenset({"log_softmax", "LogSoftmax", "log", "logsigmoid", "LogSigmoid", "logsumexp"})
SCORES = LOGARITHMS | {"log_prob", "cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"}
ACTIVATIONS = frozenset(
    {"tanh", "Tanh", "relu", "ReLU", "softplus", "Softplus", "abs", "square", "sqrt", "pow", "**"}
)
_TEACHES = re.compile(r"teacher|target|momentum|pseudo|(?<![a-z])ema(?![a-z])", re.IGNORECASE)


class Found(NamedTuple):
    """A target in a graph: what kind it is, where to speak of it, the operand, where it is used, whom it reaches."""

    kind: str
    node: ast.AST
    calls: tuple[ast.AST, ...]
    operand: ast.expr | None
    use: ast.AST
    source: ast.AST | None
    leaves: frozenset[int]


@dataclass(slots=True)
class Targets:
    """Looks at each backward, and says at the end what it found."""

    flow: Flow
    found: dict[tuple[str, ast.AST], Found] = field(default_factory=dict)
    halves: dict[tuple[int, ast.AST], frozenset[int]] = field(default_factory=dict)
    """By a `detach()` and the backward of a loss, to which leaves the other side of a difference leads."""

    def look(self, run: Run) -> None:
        """Look for targets on the way of a backward."""
        for node in run.seen:
            made = self.flow.made(node)
            if made is None:
                continue
            for found in self._of(made):
                self.found.setdefault((found.kind, found.node), found)
            self._note_half(made, run)
        for found in self._only_pulled_together(run):
            self.found.setdefault((found.kind, found.node), found)

    def conclude(self) -> None:
        """Emit what was found, with whether an optimizer would step on the gradient."""
        m = self.flow.machine
        told: set[ast.AST] = set()
        # What the author says must stop is checked by itself.
        stated = {getattr(event.node, "lineno", 0) for event in m.events if type(event) is StopCrossed}
        followers = list(self._followers(frozenset(self.flow.stepped))) if self.flow.all_known else []
        following = {found.node for found in followers}
        for found in (*followers, *self.found.values()):
            if found.kind == "teacher" and not following.isdisjoint(ast.walk(found.node)):
                continue
            if (
                getattr(found.node, "lineno", 0) in stated
                or found.node in told
                or (found.source is not None and found.source in told)
            ):
                continue
            told |= {found.node} | ({found.source} if found.source is not None else set())
            reached = any(leaf & ~1 in self.flow.owned for leaf in found.leaves)
            m.emit(
                TargetInGraph(
                    found.node, found.calls, found.kind, found.operand, found.use, found.source, reached
                )
            )

    # -- one op

    def _note_half(self, made: Made, run: Run) -> None:
        """Of a difference one side was detached: what the loss then trains is behind the other alone."""
        if made.name not in DISTANCES | DIFFERENCE or len(made.parts) != 2 or len(made.asking) != 1:  # noqa: PLR2004
            return
        m, live = self.flow.machine, made.asking[0]
        for part in made.parts:
            for cut in m.nearest_cut(part.cuts) if not part.asks and not part.leaves else ():
                if m.cuts[cut].kind == "detach" and live.sure and live.leaves:
                    key = (cut, run.site)
                    self.halves[key] = self.halves.get(key, frozenset()) | live.leaves

    def _of(self, made: Made) -> Iterator[Found]:
        asking = tuple(part for part in made.asking if part.sure)
        both = tuple(part for part in made.asking if part.sure or self._is_there(part))
        if made.name in DISTANCES and asking and len(both) > 1:
            yield from self._compared(made, both[0], both[1])
        elif made.name in POWERS and len(asking) == 1:
            for at in self.flow.walk(asking[0].nodes, SHAPE).ends:
                inner = self.flow.made(at)
                sides = [part for part in inner.asking if part.sure] if inner is not None else []
                if inner is not None and inner.name in DIFFERENCE and len(sides) > 1:
                    yield from self._compared(inner, sides[0], sides[1])
        elif made.name in PRODUCT and len(made.asking) > 1:
            for score, weight in (made.asking[:2], made.asking[1::-1]):
                if score.sure and (weight.sure or self._is_there(weight)):
                    yield from self._weighted(made, score, weight)
        elif made.name in PRODUCT and len(asking) == 1 and len(made.parts) > 1:
            yield from self._ratio(asking[0])
        elif made.name in DIVERGENCES:
            for part in asking:
                if part.role == "target":
                    yield from self._taught(made, part, [p for p in asking if p is not part])

    def _compared(self, made: Made, a: Part, b: Part) -> Iterator[Found]:
        """A difference: one side is data plus a part of a network's value, the other a network's value."""
        sums = [self._bootstrapped(part) for part in (a, b)]
        if (sums[0] is None) != (sums[1] is None):
            target, other = (a, b) if sums[0] is not None else (b, a)
            if self._is_value(other):
                source = sums[0] or sums[1]
                ends = [set(self.flow.walk(part.nodes, SHAPE | LINEAR).ends) for part in (target, other)]
                if source is not None and not ends[0].isdisjoint(ends[1]):
                    # One call gives the prediction as well: only the sum can do without its graph.
                    operand = self.flow.expression(made, target)
                    where, calls = source.site, source.calls
                    yield Found("bootstrap", where, calls, operand, made.site, None, target.leaves)
                else:
                    yield self._speak("bootstrap", made, target, source)
        elif a.leaves.isdisjoint(b.leaves):
            for part, other in ((a, b), (b, a)):
                if self._is_called_teacher(made, part) and not self._is_called_teacher(made, other):
                    yield self._speak("teacher", made, part, None)

    def _bootstrapped(self, part: Part) -> Made | None:
        """The sum of data and a scaled value that an operand is, if it is one."""
        chain = self.flow.walk(part.nodes, SHAPE | LINEAR)
        if not chain.ends or not all(at in self.flow.outputs for at in chain.ends):
            return None
        passed = self.flow.all_made(chain.passed)
        scaled = any(made.name in PRODUCT and len(made.asking) == 1 for made in passed)
        for made in passed:
            if made.name in SUM and len(made.asking) == 1 and (made.others or len(made.parts) > 1) and scaled:
                return made
        return None

    def _is_value(self, part: Part) -> bool:
        ends = self.flow.walk(part.nodes, SHAPE).ends
        return bool(ends) and all(at in self.flow.outputs for at in ends)

    def _is_there(self, part: Part) -> bool:
        """Whether a path surely makes an operand of what networks of the program gave, if not all paths do."""
        cells = self.flow.machine.cells
        ends = self.flow.walk(part.nodes, SHAPE | LINEAR).ends
        return bool(ends) and all(
            at in self.flow.outputs
            and self.flow.outputs[at].leaves
            and all(type(cells.get(leaf)) is Tensor for leaf in self.flow.outputs[at].leaves)
            for at in ends
        )

    def _weighted(self, made: Made, score: Part, weight: Part) -> Iterator[Found]:
        """A product of a log-probability and something that has a graph of its own."""
        kind = self._score(score)
        if not kind:
            return
        chain = self.flow.walk(weight.nodes, SHAPE | LINEAR)
        names = {made.name for made in self.flow.all_made(chain.ends)}
        if names <= {"softmax", "Softmax"} and names and kind == "log":
            yield from self._taught(made, weight, [score])
            return
        passed = self.flow.all_made(chain.passed)
        differences = [m for m in passed if m.name in DIFFERENCE or (m.name in SUM and len(m.asking) == 1)]
        if (kind == "drawn" and self._rewards(score, weight)) or (differences and self._is_in(score, chain)):
            yield self._speak("weight", made, weight, differences[-1] if differences else None)
            return
        if not chain.ends or names & (PROBABILITIES | SCORES) or self._shares(chain.ends, score):
            return
        if not differences and (kind != "drawn" or not any(at in self.flow.outputs for at in chain.ends)):
            return
        yield self._speak("weight", made, weight, differences[-1] if differences else None)

    def _rewards(self, score: Part, weight: Part) -> bool:
        """Whether a weight is what another network gives, on whichever scale."""
        ends = self.flow.walk(weight.nodes, SHAPE | LINEAR | PROBABILITIES | LOGARITHMS | ACTIVATIONS).ends
        other = bool(weight.leaves) and weight.leaves.isdisjoint(score.leaves)
        return other and bool(ends) and all(at in self.flow.outputs for at in ends)

    def _is_in(self, score: Part, weight: Chain) -> bool:
        """Whether the log-probability that is weighted stands in its own weight, as a penalty in a reward does."""
        ends = self.flow.walk(score.nodes, SHAPE | {"neg"}).ends
        bare = all(made.name in SCORES for made in self.flow.all_made(ends))
        return bool(ends) and bare and set(ends) <= set(weight.ends)

    def _ratio(self, part: Part) -> Iterator[Found]:
        """`exp(log_prob - old)` that weights a constant: where both are of one policy and attached, nothing is left."""
        for at in self.flow.walk(part.nodes, SHAPE).ends:
            made = self.flow.made(at)
            if made is None or made.name != "exp" or len(made.asking) != 1:
                continue
            for inner in self.flow.all_made(self.flow.walk(made.asking[0].nodes, SHAPE).ends):
                sides = [side for side in inner.asking if side.sure]
                if inner.name not in DIFFERENCE or len(sides) != 2 or not isinstance(inner.site, ast.BinOp):  # noqa: PLR2004
                    continue
                one, other = sides
                if one.leaves and one.leaves == other.leaves and self._score(one) and self._score(other):
                    operand = inner.site.right
                    yield Found("ratio", inner.site, inner.calls, operand, made.site, None, other.leaves)

    def _score(self, part: Part) -> str:
        """`drawn` for the log-probability of an action that was sampled, `log` for any other, else empty."""
        through = SHAPE | LINEAR | {"exp"}
        chain = self.flow.walk(part.nodes, through, into=True)
        found = ""
        for at in chain.ends:
            made = self.flow.made(at)
            if made is None or made.name not in SCORES:
                continue
            if made.name == "log_prob":
                last = f"arg{made.given - 1}"  # what comes before it are parameters of the distribution
                action = next((part for part in made.parts if part.role == last), None)
                if action is not None and action.asks and made.given > 1:
                    return ""  # the action has a gradient of its own
                if action is not None and action.sampled:
                    return "drawn"
            found = "log"
        return found

    def _shares(self, ends: tuple[int, ...], score: Part) -> bool:
        """Whether a weight is made from the very thing whose logarithm it weights."""
        stack, seen = [at & ~1 for at in score.nodes], set[int]()
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            made = self.flow.made(at)
            for part in made.asking if made is not None else ():
                stack.extend(node & ~1 for node in part.nodes)
        return not seen.isdisjoint(ends)

    def _taught(self, made: Made, target: Part, others: list[Part]) -> Iterator[Found]:
        """Probabilities that another network's log-probabilities are to come near to."""
        if not others or any(not target.leaves.isdisjoint(other.leaves) for other in others):
            return
        if self._is_called_teacher(made, target):
            yield self._speak("teacher", made, target, None)

    def _is_called_teacher(self, made: Made, part: Part) -> bool:
        """Whether the program itself calls an operand a teacher's, or a target, on its way here."""
        words = [self.flow.expression(made, part)]
        chain = self.flow.walk(part.nodes, SHAPE | LINEAR | PROBABILITIES)
        for at in (*chain.passed, *chain.ends):
            step = self.flow.made(at)
            words += list(operands_of(step.site)) if step is not None else []
            call = self.flow.outputs.get(at)
            words += [call.site] if call is not None and isinstance(call.site, ast.expr) else []
        return any(_TEACHES.search(name) for word in words if word is not None for name in _names(word))

    # -- a whole loss

    def _only_pulled_together(self, run: Run) -> Iterator[Found]:
        """A loss that only pulls branches together: nothing holds them where they are, so constants are best."""
        pulled: list[tuple[Made, Part]] = []
        for made, sign in self._terms(run.nodes, 1, set()):
            if made is None or len(made.asking) != 2:  # noqa: PLR2004
                return
            attracts = (made.name in SIMILARITIES and sign < 0) or (made.name in DISTANCES and sign > 0)
            a, b = made.asking
            if not (a.sure and b.sure):
                return
            smaller = a if a.leaves < b.leaves else b if b.leaves < a.leaves else None
            if not attracts or smaller is None or not smaller.leaves:
                return
            pulled.append((made, smaller))
        for made, part in pulled:
            operand = self.flow.expression(made, part)
            yield Found("branch", made.site, made.calls, operand, made.site, None, part.leaves)

    def _terms(
        self, nodes: Nodes, sign: int, seen: set[tuple[int, int]]
    ) -> Iterator[tuple[Made | None, int]]:
        """The terms that a loss is a sum of, each with its sign; None for one that is not known."""
        for node in {at & ~1 for at in nodes}:
            if (node, sign) in seen:
                continue
            seen.add((node, sign))
            made = self.flow.made(node)
            asking = made.asking if made is not None else ()
            if made is None or not asking or any(p.leaves and not p.asks for p in made.parts):
                yield None, sign  # a leaf, or not known
            elif made.name in ("mean", "sum") or (made.name in QUOTIENT and len(asking) == 1):
                yield from self._terms(asking[0].nodes, sign, seen)
            elif made.name == "neg":
                yield from self._terms(asking[0].nodes, -sign, seen)
            elif made.name in PRODUCT and len(asking) == 1:
                negative = any(number < 0 for number in made.constants)
                yield from self._terms(asking[0].nodes, -sign if negative else sign, seen)
            elif made.name in SUM:
                for part in asking:
                    yield from self._terms(part.nodes, sign, seen)
            elif made.name in DIFFERENCE and isinstance(made.site, ast.BinOp):
                for part in asking:
                    taken = self.flow.expression(made, part) is made.site.right
                    yield from self._terms(part.nodes, -sign if taken else sign, seen)
            else:
                yield made, sign

    # -- a whole run

    def _followers(self, stepped: frozenset[int]) -> Iterator[Found]:
        """Networks that are only ever set from another one, and were run with a graph that a backward walked."""
        follows, calls = self.flow.followers, self.flow.calls

        def only_follows(call: Called) -> bool:
            leaves = {leaf & ~1 for leaf in call.leaves}
            if not leaves or not leaves <= follows.keys():
                return False
            averaged = leaves <= self.flow.averages and (
                any(map(_TEACHES.search, _names(call.site))) or self._meets_leader(call, frozenset(leaves))
            )
            if not stepped and not averaged:
                return False  # the steps are made by what is not known
            return (averaged or stepped.isdisjoint(leaves)) and leaves.isdisjoint(self.flow.read)

        for call in calls.values():
            if not only_follows(call):
                continue
            around = [calls.get((site, call.calls[:at])) for at, site in enumerate(call.calls)]
            if any(outer is not None and only_follows(outer) for outer in around):
                continue  # a part of a network: the call of the whole one is the place to speak of
            leaves = {leaf & ~1 for leaf in call.leaves}
            for run in self.flow.backwards:
                trained = {at & ~1 for at in run.leaves}
                trained &= stepped or trained - follows.keys()
                if not call.nodes.isdisjoint(run.seen) and trained:
                    evidence = follows[min(leaves)]
                    yield Found("follower", call.site, call.calls, None, run.site, evidence, call.leaves)
                    break

    def _meets_leader(self, call: Called, leaves: frozenset[int]) -> bool:
        """Whether what an average gives is held against what comes from the network that it is an average of.

        Networks that are averages of one another are peers, and each of them is to be trained.
        """
        leaders = self.flow.leaders - self.flow.followers.keys()
        for run in self.flow.backwards:
            for made in self.flow.all_made(() if call.nodes.isdisjoint(run.seen) else tuple(run.seen)):
                sides = [{leaf & ~1 for leaf in part.leaves} for part in made.parts]
                led = any(side & leaders and side.isdisjoint(leaves) for side in sides)
                if led and any(side and side <= leaves for side in sides):
                    return True
        return False

    def _speak(self, kind: str, made: Made, part: Part, source: Made | None) -> Found:
        """Speak where the value could have done without its graph, in the function that uses it, or at its use."""
        operand = self.flow.expression(made, part)
        call = self._call_behind(part) if kind in ("bootstrap", "teacher") else None
        if kind == "teacher":
            for at in self.flow.walk(part.nodes, SHAPE).ends:
                step = self.flow.made(at)
                if step is not None and step.name in PROBABILITIES and step.function is made.function:
                    return Found(kind, step.site, step.calls, operand, made.site, None, part.leaves)
        if call is not None and call.function is made.function:
            return Found(kind, call.site, call.calls, operand, made.site, None, part.leaves)
        if kind == "weight":
            chain = self.flow.walk(part.nodes, SHAPE | LINEAR)
            here = self.flow.all_made(chain.passed)
            here = [m for m in here if m.function is made.function]
            candidates = [m for m in here if m.name in DIFFERENCE] or [m for m in here if m.name in SUM]
            if candidates:
                last = candidates[-1]
                return Found(kind, last.site, last.calls, operand, made.site, None, part.leaves)
        node = operand if operand is not None else made.site
        return Found(kind, node, made.calls, operand, made.site, source.site if source else None, part.leaves)

    def _call_behind(self, part: Part) -> Called | None:
        for at in self.flow.walk(part.nodes, SHAPE | LINEAR).ends:
            if at in self.flow.outputs:
                return self.flow.outputs[at]
        return None


def _names(node: ast.AST) -> Iterator[str]:
    """The names and attributes in an expression."""
    for child in ast.walk(node):
        if isinstance(child, ast.Name):
            yield child.id
        elif isinstance(child, ast.Attribute):
            yield child.attr
