"""The interpreter's state and the few operations that everything else stands on.

What each kind of expression, statement, call and object means is registered by the modules of this
room; the machine only finds it.
"""

import ast
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce
from typing import Any, NamedTuple

from gradvet.autograd.events import Event
from gradvet.autograd.memory.domain import GRAD, NO, Alias, Node, Origin, Tensor, join_tensors
from gradvet.autograd.memory.rename import rename, rename_key
from gradvet.autograd.memory.scopes import Scope, ScopeInfo, scope_info
from gradvet.autograd.memory.store import Delta, Seen, Store
from gradvet.autograd.memory.values import (
    Const,
    Each,
    Number,
    Opaque,
    Range,
    Ref,
    Union,
    Unknown,
    Value,
    absent,
    atoms,
    join_cells,
    refs,
)
from gradvet.stopping import stop_if_asked
from gradvet.syntax.parse import Module
from gradvet.syntax.tree import walk

MODE = "mode"
MODE_SETTER = "mode setter"
MOST_STEPS = 12_000  # of one part: the module's body, or what nothing reached and is run by itself
MOST_STEPS_FOR_A_LINE = 20  # on top of those, in all parts together: a long file has more to run
MOST_STEPS_IN_ALL = 36_000
LEAST_SHARE = 1 / 6  # of those, for the smallest part of a module
MOST_WORK = 4_000_000
_TOO_MUCH_WORK = f"the run was stopped after {MOST_WORK} changes"
MOST_CALLS_DEEP = 24
MOST_RUNS_OF_ONE_FUNCTION = 240
MOST_PASSES = 5
EXACT_PASSES = 2  # of a loop: its first iteration and its second
MOST_UNROLLED_TOGETHER = 100
_COUNTED = re.compile(r"self\s*\.\s*(\w+)[\s\\]*(?:[-+*/%@&|^]|//|\*\*|<<|>>)=")
MOST_COMING_AGAIN = 24  # nodes that are looked at for whether a backward comes by one of the same name


_UNDER_WAY = (
    "alone", "raised", "unrolled", "of_many", "one_of_several", "meant_to_raise", "thread", "deriving", "transformed",
    "wrapped", "batched", "packed",
)  # fmt: skip
"""What tells, beside the stacks, in the midst of what the run is."""
_LOOK_UP = 0x3F  # steps between looks at whether anybody still wants the run, as bits


class OutOfSteps(Exception):  # noqa: N818  not an error: a bound of the run was reached
    """A part of the run has done all the steps it may."""


class Result(NamedTuple):
    """What a call gave of which nothing is known: where, in which function, and what the call was given."""

    node: ast.AST
    function: ast.AST
    inputs: tuple[Value, ...]


class Loop:
    """A loop that is being run: where its states are captured, and what was born in this pass."""

    __slots__ = (
        "allocs",
        "base",
        "born",
        "breaks",
        "context",
        "continues",
        "may_skip",
        "node",
        "number",
        "settled",
        "stores",
        "trains",
    )

    def __init__(self, node: ast.AST | None, base: int) -> None:
        """Begin at a mark of the trail."""
        self.node = node
        self.base = base
        self.number = 0
        self.allocs: set[int] = set()
        self.born: set[int] = set()
        """What its passes so far have made, by even addresses; `allocs` is what this one has."""
        self.breaks: list[Delta] = []
        self.continues: list[Delta] = []
        self.stores: list[Any] = []
        self.settled: dict[tuple[ast.AST, int], Delta] = {}
        """What loops inside left of this one's state when one more pass changed nothing, by node and context."""
        self.trains = False
        self.may_skip = False
        self.context = 0

    @property
    def stands_for_many(self) -> bool:
        """Whether this pass is any of the later iterations: how much has come together by then is not known."""
        return self.number > EXACT_PASSES


class Frame:
    """A function, class body or module that is being run."""

    __slots__ = (
        "base",
        "call",
        "context",
        "given",
        "info",
        "loops",
        "modes_before",
        "node",
        "own",
        "owner",
        "raises",
        "receiver",
        "returns",
        "scope",
        "waits",
        "yields",
    )

    def __init__(self, node: ast.AST, info: ScopeInfo, scope: int, context: int, base: int) -> None:
        """Begin at a mark of the trail."""
        self.node = node
        self.info = info
        self.scope = self.own = scope  # a comprehension has one inside it
        self.context = context
        self.base = base
        self.loops: list[Loop] = []
        self.returns: list[tuple[Delta, Value]] = []
        self.given: Value | None = None
        self.raises: list[Seen] = []
        self.yields: Callable[[Value], Value] | None = None
        self.owner = self.modes_before = 0
        self.receiver: Value = None
        self.call: Any = None
        self.waits: list[tuple[int, ast.AST | None]] = []

    def ways_out(self) -> tuple[int, int, int]:
        """How many returns, and breaks and continues of the innermost loop, have been met so far."""
        if not self.loops:
            return len(self.returns), 0, 0
        return len(self.returns), len(self.loops[-1].breaks), len(self.loops[-1].continues)

    def leave(self, since: tuple[int, int, int], change: Callable[[Delta, int], Delta | None]) -> None:
        """Change each way out met since then, given what it changed and from which mark; None takes it away."""
        returned = [(change(delta, self.base), value) for delta, value in self.returns[since[0] :]]
        self.returns[since[0] :] = [(delta, value) for delta, value in returned if delta is not None]
        if not self.loops:
            return
        loop = self.loops[-1]
        for exits, mark in ((loop.breaks, since[1]), (loop.continues, since[2])):
            left = [change(delta, loop.base) for delta in exits[mark:]]
            exits[mark:] = [delta for delta in left if delta is not None]


class Hooks:
    """The hooks that modules and tensors ever had, by their address, and what each handle takes away.

    Whether one is there now, a cell tells. `placed` is, for a module and a handle, when the hook was put there and
    where; `ran` when a module with hooks was called last. `stacked` are the containers, by even address, to which the
    hook of a forward has added something in a loop while grad mode was off, and where; `taken` those out of which
    something was taken, and whether a backward did so.
    """

    __slots__ = (
        "count", "firing", "forwards", "handles", "of_modules", "of_tensors", "placed", "ran", "stacked", "taken",
    )  # fmt: skip

    def __init__(self) -> None:
        """None yet."""
        self.of_modules: dict[int, list[tuple[str, Value, int]]] = {}
        self.handles: dict[int, list[int]] = {}
        self.placed: dict[tuple[int, int], tuple[int, ast.AST, tuple[ast.AST, ...]]] = {}
        self.ran: dict[int, int] = {}
        self.count = 0
        self.of_tensors: dict[int, list[int]] = {}
        self.firing = False
        self.forwards = 0  # how many hooks of forwards are being run
        self.stacked: dict[int, tuple[ast.AST, tuple[ast.AST, ...], ast.AST | None]] = {}
        self.taken: dict[int, set[bool]] = {}

    def took(self, container: Ref, *, in_backward: bool) -> None:
        """Something was taken out of a container, perhaps by what a backward runs."""
        self.taken.setdefault(container.address & ~1, set()).add(in_backward)


class Moment(NamedTuple):
    """A point of a run: the mark of the store, and the number than which all that is made later has a higher one."""

    mark: int
    newest: int


class CutInfo:
    """A place where the way to some leaves was stopped."""

    __slots__ = ("by", "calls", "form", "kind", "leaves", "name", "node", "nodes", "upstream")

    def __init__(self, kind: str, name: str, node: ast.AST, calls: tuple[ast.AST, ...]) -> None:
        """`kind` says how it was stopped: detach, no_grad, data, item, argmax, rewrap; `form` what was cut.

        Of a derivative that was cut, `by` is what it was taken by.
        """
        self.kind = kind
        self.name = name
        self.node = node
        self.calls = calls
        self.form = ""
        self.by: set[int] = set()
        self.leaves: set[int] = set()
        self.nodes: set[int] = set()
        self.upstream: set[int] = set()


KINDS_OF_CUTS = (
    "forced", "unreturned", "cancelled", "rewrap", "item", "numpy", "grad", "checkpoint", "collective", "sample",
    "data", "detach", "no_grad", "nondiff", "zero",
)  # fmt: skip
"""The kinds of cuts, those first that are seldom meant: where several hide a leaf, one of them is told."""

Evaluate = Callable[["Machine", Any], Value]
Execute = Callable[["Machine", Any], bool]

EVALUATE: dict[type, Evaluate] = {}
EXECUTE: dict[type, Execute] = {}
EXPECT: list[Callable[["Machine", Ref, ast.AST], None]] = []
"""What is done with something unknown at a place of which an earlier pass has learnt what it makes."""


class Machine:
    """One dry run of one module."""

    def __init__(self, module: Module) -> None:  # noqa: PLR0915  the whole state of a run
        """Nothing has run yet; grad mode is on."""
        self.main, self._text = module.tree, module.words
        self.store = Store(join_cells, absent)
        self.cells = self.store.cells
        self.frames: list[Frame] = []
        self.loops: list[Loop] = []
        self.unrolled = 1
        self.calls: list[ast.AST] = []
        self.events: list[Event] = []
        self.states: dict[ast.AST, Tensor] = {}
        self.vague: set[ast.AST] = set()
        self.numbers: set[ast.AST] = set()
        self._all_unseen: set[ast.AST] = set()
        self.cuts: list[CutInfo] = []
        self.cut_numbers: dict[tuple[str, int], int] = {}
        self.classes: dict[int, Any] = {}
        self.attributes: dict[int, dict[str, None]] = {}
        self.runs: dict[ast.AST, int] = {}
        self.reached: set[ast.AST] = set()
        self.recorded: set[ast.AST] = set()  # those of them that ran while autograd may have recorded
        self.without_grad: set[ast.AST] = (
            set()
        )  # classes of which the file uses methods only with grad mode off
        self.limits: dict[str, None] = {}
        self.steps = 0
        self.last_step = MOST_STEPS
        self._part_began = 0
        self._left_by_body = frozenset[Any]()
        self._last_of_all = min(
            MOST_STEPS + module.lines * MOST_STEPS_FOR_A_LINE,
            int(MOST_STEPS_IN_ALL * max(module.share, LEAST_SHARE)),
        )
        self.grads: set[int] = set()
        self.given_back: frozenset[int] = (
            frozenset()
        )  # where gradients lie that functions of the file gave: torch keeps them
        self.raised = self.alone = self.cut_short = self.rewritten = False
        self.graph_unseen = False  # what was cut short may have used a graph
        self.of_many = False  # whether the object that is made now stands for all of its class
        self.made_nodes = 0
        self.lone: set[ast.AST] = set()
        self.unsettled: set[ast.AST] = set()  # loops that were left before all that comes of them was seen
        self.consumed: set[ast.AST] = set()
        self.waiting: dict[int, Frame] = {}  # where generators lie that were only named, and who did
        self.put_off: set[ast.AST] = (
            set()
        )  # the calls whose results are only named: a generator does not begin there
        self.view_modes: dict[ast.AST, int] = {}
        self.bare_views: dict[ast.AST, bool] = {}
        """Where a view that was not recorded is used, and whether a backward came by what was made there."""
        self.entered: list[ast.AST] = []
        self.entered_twice: set[ast.AST] = set()
        self.meant_to_raise = 0
        self.blind_runs: dict[tuple[ast.AST, int, int], int] = {}
        self.module_mode = self.global_scope = 0
        self.setters: dict[int, ast.AST] = {}
        self.hooks = Hooks()
        self.thread: Value | None = None  # what the thread runs in which this runs, and with what
        self.queued: dict[ast.AST, Value] = {}  # what was put into a queue that a thread empties
        # By even address the modules that were given to `DataParallel` and the like, and those of several processes.
        self.in_wrapper, self.parallel = dict[int, ast.AST](), dict[int, ast.AST]()
        self.deriving: Any = None  # what notes the ops of a function whose derivative is taken
        self.zeroing: set[int] = (
            set()
        )  # the nodes, by even address, that may give a zero whatever comes to them
        self.once_differentiable: set[ast.AST] = (
            set()
        )  # the backwards of Functions that refuse to be differentiated
        self.too_long: set[ast.AST] = set()  # the decorators of other modules that take too many steps
        # By even address the parameters that were made of what has a version counter of its own, which they go on with.
        self.counters: dict[int, Alias] = {}
        self.given_data: set[int] = (
            set()
        )  # by even address the tensors that were given other data than they had
        self.transformed = 0  # how many transforms of functions are around
        self.gradients_made = NO  # whether the gradients of the backward under way are inference tensors
        self.again: list[Any] = []  # what runs, or runs once more, when a backward comes by
        self.wrapped = 0  # how many transforms are around that make tensors of their own
        self.batched = 0  # how many vmaps are around: what they hand in tells of no view
        # Where hooks pack what ops save, or it is computed again: the storages that are kept in its place.
        self.packed: frozenset[int] | None = None
        self.autocasts: list[ast.expr] = []  # those that were entered and not left
        self.casting: dict[
            ast.AST, ast.expr | None
        ] = {}  # where an op ran, and the autocast in which it always did
        self.mode_nodes: list[ast.AST] = []
        self.passed: dict[ast.Call, deque[tuple[tuple[Value, ...], dict[str, Value], ScopeInfo]]] = {}
        self.calls_of: dict[ast.AST, tuple[ast.AST, ...]] = {}
        self.scope_parents: dict[int, int] = {}
        self.comprehended: dict[int, frozenset[str]] = {}  # the names of the scopes of comprehensions
        self.scope_infos: dict[ast.AST, ScopeInfo] = {}
        self._scopes: dict[tuple[int, int], int] = {}
        self.judge: Any = None
        self.learnt, self.expected = dict[int, str](), dict[int, str]()
        self.alike = dict[tuple[type, tuple[Value, ...]], str]()
        self.objects: set[int] = set()  # has methods that no tensor has: what is not known, by even address
        self.one_of_several = 0  # how many calls are under way that may be calls of something else
        # By what is called, or whose method is, what its calls gave while autograd may record.
        self.results: dict[int, dict[int, Result]] = {}
        # By even address the parts of what a module gave, what they are parts of, and those of which a backward is run.
        self.unpacked, self.taken_out, self.losses = dict[int, set[int]](), dict[int, int](), set[int]()
        # Of what is not known, by even address, what was told to clear, what was called, what showed to be a module.
        self.cleared, self.ran, self.shown = set[int](), set[int](), set[int]()
        # By even address what stands for parameters of which nobody knows how many there are, and those of any of several.
        self.open_leaves, self.several = set[int](), set[int]()
        self.star_imports: dict[int, list[str]] = {}
        self.imports: Any = None
        self.stand_ins: dict[ast.AST, ast.AST] = {}
        self._read_first: dict[ast.Name, ast.Name] = {}
        self.defined: dict[ast.AST, Value] = {}
        self._addresses: dict[tuple[int, int, str], int] = {}
        self._contexts: dict[tuple[int, int], int] = {}
        self._parents: dict[int, int] = {}
        self._context_of: dict[int, int] = {}
        self._site_of: dict[int, ast.AST] = {}
        self._joined: dict[Value, tuple[list[Tensor], Tensor]] = {}
        self._next = 2
        self.store.set(MODE, GRAD)
        self.sizes = Ref(self.number())
        self.store.set(self.sizes.address, Range(Number("int"), nonempty=True))

    @property
    def tree(self) -> ast.Module:
        """All that is run: the module, and the functions of other modules that were called."""
        if self.imports is None:
            return self.main
        called: list[Any] = [node for node in self.reached if not self.imports.holds(node)]
        return ast.Module([*self.main.body, *called], [])

    @property
    def creates_graphs(self) -> bool:
        """Whether the program ever asks for the graph of a gradient."""
        return self._asks_for_graphs or (self.imports is not None and self.imports.mention("create_graph"))

    @cached_property
    def _asks_for_graphs(self) -> bool:
        return "create_graph" in self._text and any(
            isinstance(node, ast.keyword) and node.arg == "create_graph" for node in walk(self.main)
        )

    @cached_property
    def counted(self) -> set[str]:
        """The names of attributes that methods count with; a text may name some more."""
        return set(_COUNTED.findall(self._text))

    def mentions(self, word: str) -> bool:
        """Whether a word stands in the program's text."""
        return word in self._text

    @cached_property
    def sends(self) -> bool:
        """Whether the program ever sends something to a generator."""
        return "send" in self._text and any(
            isinstance(node, ast.Attribute) and node.attr == "send" for node in walk(self.main)
        )

    def read_first(self, target: ast.Name) -> ast.Name:
        """What reads a name before `name += value` writes it: a node that stands where the name does."""
        read = self._read_first.get(target)
        if read is None:
            read = self._read_first[target] = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            self.stand_ins[read] = target
        return read

    # -- grad mode

    @property
    def mode(self) -> int:
        """The grad modes that are possible now."""
        return self.cells[MODE]  # type: ignore[no-any-return]

    def mode_place(self) -> ast.AST | None:
        """What turned grad mode off: the `with` or decorator around, or the last `set_grad_enabled`."""
        if self.mode_nodes:
            return self.mode_nodes[-1]
        setter = self.cells.get(MODE_SETTER)
        return self.setters.get(setter) if type(setter) is int else None

    # -- addresses and contexts

    def number(self) -> int:
        """A fresh even number: addresses, scopes and contexts share one count."""
        self._next += 2
        return self._next

    def moment(self) -> Moment:
        """The present, for a look later at what has changed since."""
        return Moment(self.store.mark(), self.number())

    def changed_since(self, moment: Moment) -> Iterator[tuple[Any, Any]]:
        """The cells, with what they hold now, that changed since a moment in objects that were there by then."""
        for key, value in self.store.delta(moment.mark).items():
            owner = key[0] if type(key) is tuple else key
            if type(owner) is int and owner <= moment.newest:
                yield key, value

    def context(self, call: ast.AST) -> int:
        """The context of a call from here."""
        key = (self.frames[-1].context if self.frames else 0, id(call))
        number = self._contexts.get(key)
        if number is None:
            number = self._contexts[key] = self.number()
            self._parents[number] = key[0]
            self._site_of[number] = call
        return number

    def scope(self, context: int, node: ast.AST, parent: int) -> int:
        """The scope of an activation of `node` in a context."""
        key = (context, id(node))
        number = self._scopes.get(key)
        if number is None:
            number = self._scopes[key] = self.number()
        self.scope_parents[number] = parent
        return number

    def info(self, node: Scope) -> ScopeInfo:
        """The names of a function, class or module."""
        info = self.scope_infos.get(node)
        if info is None:
            info = self.scope_infos[node] = scope_info(node)
        return info

    @contextmanager
    def numbered(self, node: ast.AST, number: int) -> Iterator[None]:
        """Run something in a context of its own: the `number`th time that `node` is passed."""
        frame = self.frames[-1]
        outer = frame.context
        key = (outer, id(node) * 64 + number)
        inner = self._contexts.get(key)
        if inner is None:
            inner = self._contexts[key] = self.number()
            self._parents[inner] = outer
        frame.context = inner
        try:
            yield
        finally:
            frame.context = outer

    @contextmanager
    def packing(self, kept: frozenset[int]) -> Iterator[None]:
        """Run something of which nothing is saved as it is: these storages are kept where an op saves any."""
        outer, self.packed = self.packed, kept
        try:
            yield
        finally:
            self.packed = outer

    def may_unroll(self, node: ast.AST, times: int) -> bool:
        """Whether a loop may be run item by item, within those that already are."""
        if self.unrolled == 1 or self.unrolled * times <= MOST_UNROLLED_TOGETHER:
            return True
        line = getattr(node, "lineno", 0)
        self.limit(f"of loops in loops, the one at line {line} was not run item by item")
        return False

    @contextmanager
    def one_of(self, alternatives: Sequence[Value]) -> Iterator[None]:
        """Run something that is done to just one of several alternatives: no change that it makes is certain."""
        if self.judge is None or len(alternatives) < 2:  # noqa: PLR2004
            yield
            return
        walks, protocol = self.judge.walks, self.judge.protocol
        outer = protocol.alternatives
        protocol.alternatives = frozenset(one.address for one in alternatives if type(one) is Ref)
        walks.perhaps += 1
        try:
            yield
        finally:
            walks.perhaps -= 1
            protocol.alternatives = outer

    def for_all(self, node: ast.AST, run: Callable[[], tuple[bool, Value]]) -> tuple[bool, Value]:
        """Run something once that stands for many times: what it makes is one of many."""
        loop = Loop(node, self.store.mark())
        self.loops.append(loop)
        alive, value = run()
        self.loops.pop()
        born = {address for address in loop.allocs if not address & 1}
        self.age(loop)
        if self.loops:
            self.loops[-1].allocs |= born
        return alive, None if value is None else rename(value, born)

    def within(self, context: int, outer: int) -> bool:
        """Whether a context is `outer` or was called from it."""
        while context != outer:
            if not context:
                return False
            context = self._parents.get(context, 0)
        return True

    def address(self, site: ast.AST, tag: str = "") -> int:
        """The address of what `site` makes in this context."""
        key = (id(site), self.frames[-1].context if self.frames else 0, tag)
        address = self._addresses.get(key)
        if address is None:
            address = self._addresses[key] = self.number()
            self._context_of[address] = key[1]
            self._site_of[address] = site
        return address

    def calls_to(self, address: int) -> tuple[ast.AST, ...]:
        """The calls that led to the making of an address, outermost first."""
        found: list[ast.AST] = []
        context = self.context_of(address)
        while context:
            if context in self._site_of:
                found.append(self._site_of[context])
            context = self._parents.get(context, 0)
        return tuple(reversed(found))

    def context_of(self, address: int) -> int:
        """The context in which an address was made."""
        return self._context_of.get(address & ~1, 0)

    def made_at(self, address: int) -> ast.AST:
        """The node that made what lies at an address, in whichever module it stands."""
        return self._site_of[address & ~1]

    def site_of(self, address: int) -> ast.AST | None:
        """The node that made what lies at an address; None when it stands in a module that is only imported."""
        site = self._site_of.get(address & ~1)
        return site if site is None or self.imports is None or self.imports.holds(site) else None

    def is_made_at(self, address: int, node: ast.AST) -> bool:
        """Whether it was this node that made what lies at an address."""
        return self._site_of.get(address & ~1) is node

    def new(self, site: ast.AST, content: Any, tag: str = "") -> Ref:
        """Put a new object on the heap."""
        address = self.address(site, tag)
        self.place(address, content)
        return Ref(address)

    def place(self, address: int, content: Any) -> None:
        """Put an object at its address; one that is still there from before is joined."""
        if self.loops:
            self.loops[-1].allocs.add(address)
        old = self.cells.get(address)
        self.store.set(address, content if old is None else join_cells(old, content))

    def place_part(self, owner: int, tag: str, content: Any) -> Ref:
        """Put something on the heap that is as old as its owner: a part is not born when it is first looked at."""
        key = (owner & ~1, self._context_of.get(owner & ~1, 0), tag)
        address = self._addresses.get(key)
        if address is None:
            address = self._addresses[key] = self.number()
            self._context_of[address] = key[1]
        for loop in self.loops:
            if owner in loop.allocs:
                loop.allocs.add(address)
        if owner & 1:
            address += 1
        if address not in self.cells:
            self.store.set(address, content)
        return Ref(address)

    def is_part(self, owner: int, tag: str, value: Value) -> bool:
        """Whether a value is what `place_part` gave there: it was looked at, and nobody has put anything else there."""
        part = self._addresses.get((owner & ~1, self._context_of.get(owner & ~1, 0), tag))
        return part is not None and type(value) is Ref and value.address & ~1 == part

    # -- reading and writing objects

    def write(self, target: Value, content: Any) -> None:
        """Replace an object: wholly when the target is just one, else as one more possibility."""
        kind = type(target)
        if kind is Ref and not target.address & 1:
            self.store.set(target.address, content)
        elif kind is Each:
            for ref in target.refs:
                self.store.set(ref.address, content)
        else:
            for ref in refs(target):
                self.store.set(ref.address, join_cells(self.cells.get(ref.address, content), content))

    def update(self, target: Value, change: Callable[[Any], Any]) -> None:
        """Change each object that the target may be, strongly where it is certain which one it is."""
        kind = type(target)
        certain = (kind is Ref and not target.address & 1) or kind is Each
        for ref in refs(target):
            content = self.cells.get(ref.address)
            if content is None:
                continue
            changed = change(content)
            if changed is not content:
                self.store.set(ref.address, changed if certain else join_cells(content, changed))

    def write_cell(self, target: Ref, name: str, value: Any, *, certain: bool = True) -> None:
        """Write an attribute cell of an object."""
        key = (target.address, name)
        if not certain or target.address & 1:
            old = self.cells.get(key)
            value = value if old is None else join_cells(old, value)
        self.attributes.setdefault(target.address & ~1, {})[name] = None
        self.store.set(key, value)

    def tensor(self, value: Value) -> Tensor | None:
        """The state of a value if it must be a tensor, joined over what it may refer to; else None."""
        kind = type(value)
        if kind is Ref:
            content = self.cells.get(value.address)
            return content if type(content) is Tensor else None
        if kind is Union or kind is Each:
            states = []
            for atom in value.atoms if kind is Union else value.refs:
                state = self.tensor(atom)
                if state is None:
                    return None
                states.append(state)
            known = self._joined.get(value)
            if known is None or known[0] != states:
                known = self._joined[value] = (states, reduce(join_tensors, states))
            return known[1]
        return None

    def only(self, value: Value) -> int:
        """The address of the one object that a value is; 0 when there may be others."""
        return value.address if type(value) is Ref and not value.address & 1 else 0

    def is_unknown(self, value: Value) -> bool:
        """Whether nothing is known of a value."""
        return type(value) is Unknown or type(self.cells.get(getattr(value, "address", -1))) is Opaque

    def tensors(self, value: Value) -> list[tuple[Ref, Tensor]]:
        """The tensors that a value may be; other alternatives are left out."""
        found = []
        for ref in refs(value):
            content = self.cells.get(ref.address)
            if type(content) is Tensor:
                found.append((ref, content))
        return found

    def unknown(
        self,
        node: ast.AST,
        reason: str,
        inputs: tuple[Value, ...] = (),
        tag: str = "?",
        *,
        adds: bool = False,
    ) -> Ref:
        """A new object of which nothing is known yet; what it came from may be used there in any way."""
        if inputs and self.judge is not None and self.judge.walks.retains.kept:
            self.judge.walks.retains.handed_over(inputs)
        ref = self.new(node, Opaque(reason, inputs, Origin(node, reason), adds), tag)
        if (
            tag == "call"
            and inputs
            and type(inputs[0]) is Ref
            and self.mode == GRAD
            and not self.meant_to_raise
        ):
            known = self.results.setdefault(inputs[0].address & ~1, {})
            known[ref.address & ~1] = Result(node, self.frames[-1].node, inputs[1:])
        if self.judge is not None:
            self.judge.open_weights.made(ref)
        self.as_expected(ref, node)
        return ref

    def as_expected(self, ref: Ref, node: ast.AST) -> None:
        """Something unknown was made; an earlier pass may have learnt what its place makes."""
        if ref.address in self.expected or self.alike:
            for expect in EXPECT:
                expect(self, ref, node)

    # -- running

    def eval(self, node: ast.expr) -> Value:
        """The value of an expression; its state is noted when it is a tensor."""
        value = EVALUATE[type(node)](self, node)
        kind = type(value)
        if kind is Ref:
            content = self.cells.get(value.address)
            if type(content) is Tensor:
                self.note(node, content)
            elif type(content) is Opaque:
                self.vague.add(node)
            if self.rewritten and self.judge is not None:
                self.judge.looked_at(node, value)
        elif kind is Union or kind is Each:
            content = self.tensor(value)
            if content is not None:
                self.note(node, content)
            else:
                self.vague.add(node)
            if self.rewritten and self.judge is not None:
                self.judge.looked_at(node, value)
        elif kind is Unknown:
            self.vague.add(node)
        elif kind is Number or (kind is Const and value.value is not None):
            self.numbers.add(node)
        return value

    def note(self, node: ast.AST, state: Tensor) -> None:
        """Remember that an expression held this state, among others."""
        known = self.states.get(node)
        self.states[node] = state if known is None else join_tensors(known, state)

    def unseen(self, node: ast.AST, reason: str = "calls that go too deep to follow") -> None:
        """Remember that what is in a node also held what this run does not see."""
        if node not in self._all_unseen:
            self._all_unseen.add(node)
            self.vague.update(ast.walk(node))

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Run something once more to see what it comes by now, and leave memory as it was."""
        mark, before = self.store.mark(), (self.judge, self.raised, self.again)
        self.judge, self.again = None, []
        self.meant_to_raise += 1
        try:
            yield
        finally:
            self.meant_to_raise -= 1
            self.judge, self.raised, self.again = before
            self.store.undo(mark)

    @contextmanager
    def unseen_run(self) -> Iterator[None]:
        """Run something to see what comes of it, and leave everything as it was."""
        mark = self.store.mark()
        before = self.states, self.vague, self.numbers, self._all_unseen, self.judge, self.raised
        self.states, self.vague, self.numbers, self.judge = {}, set(), set(), None
        self._all_unseen = set(self._all_unseen)
        self.meant_to_raise += 1
        try:
            yield
        finally:
            self.meant_to_raise -= 1
            self.states, self.vague, self.numbers, self._all_unseen, self.judge, self.raised = before
            self.store.undo(mark)

    def block(self, statements: list[ast.stmt]) -> bool:
        """Run statements; whether the end is reached."""
        for statement in statements:
            self.step()
            alive = EXECUTE[type(statement)](self, statement)
            raised, self.raised = self.raised, False
            if raised or not alive:
                return False
            if self.frames[-1].raises:
                self.capture_raise()
        return True

    def begin_part(self) -> None:
        """Begin a part of the run with steps of its own: one that takes too many leaves some for the others."""
        self.last_step = min(self.steps + MOST_STEPS, self._last_of_all)
        self._part_began = self.store.mark()

    def ends_body(self) -> None:
        """The module's body has run: what it left is there for whatever runs from now on."""
        self._left_by_body = frozenset(self.cells)

    def present(self) -> Iterator[tuple[Any, Any]]:
        """The cells that the part under way can come by: what the module's body left, and what it has made itself."""
        own = self.store.touched(self._part_began)
        return ((key, now) for key, now in self.cells.items() if key in own or key in self._left_by_body)

    def under_way(self) -> Callable[[], None]:
        """What is under way now, beside the stacks; the answer puts it back when the run was ended in the midst of more."""
        own = {name: getattr(self, name) for name in _UNDER_WAY}
        hooks = self.hooks.firing, self.hooks.forwards

        def put_back() -> None:
            for name, value in own.items():
                setattr(self, name, value)
            self.hooks.firing, self.hooks.forwards = hooks

        return put_back

    @contextmanager
    def at_most(self, steps: int) -> Iterator[Callable[[], bool]]:
        """Do some work in no more than so many steps, or leave all as it was; tells whether it was done."""
        mark, last, limits = self.store.mark(), self.last_step, dict(self.limits)
        stacks: tuple[list[Any], ...] = (
            self.frames,
            self.loops,
            self.calls,
            self.mode_nodes,
            self.entered,
        )
        before = [list(stack) for stack in stacks]
        cut_short, put_back = self.cut_short, self.under_way()
        done = True
        self.last_step = min(last, self.steps + steps)
        try:
            yield lambda: done
        except OutOfSteps:
            if self.steps > last or self.store.work > MOST_WORK:
                raise
            done = False
            self.store.undo(mark)
            for stack, there in zip(stacks, before, strict=True):
                stack[:] = there
            put_back()
            self.cut_short, self.limits = cut_short, limits
        finally:
            self.last_step = last

    def step(self) -> None:
        """Count a step of the run, which ends when there are too many, or when they cost too much."""
        self.steps += 1
        if not self.steps & _LOOK_UP:
            stop_if_asked()
        if self.steps > self.last_step or self.store.work > MOST_WORK:
            self.limit(f"{self._bound()} statements" if self.steps > self.last_step else _TOO_MUCH_WORK)
            raise OutOfSteps

    def _bound(self) -> str:
        """The number of steps that ended this part, or all of them."""
        if self.last_step < self._last_of_all:
            return f"a part of the run was stopped after {MOST_STEPS}"
        return f"the run was stopped after {self._last_of_all}"

    def capture_raise(self) -> None:
        """Keep the present state for the handlers around it: an exception may come here."""
        self.store.look(self.frames[-1].raises[-1])

    def emit(self, event: Event) -> None:
        """Record what the program did; what a test says that it raises is no fault."""
        if not self.meant_to_raise:
            self.events.append(event)

    def where(self) -> tuple[ast.AST, ...]:
        """The calls that led here, outermost first."""
        return tuple(self.calls)

    def limit(self, words: str) -> None:
        """Record that a bound was reached."""
        self.limits[words] = None

    def cut(
        self,
        kind: str,
        name: str,
        node: ast.AST,
        leaves: frozenset[int],
        nodes: frozenset[int],
        upstream: frozenset[int] = frozenset(),
    ) -> int:
        """The number of a cut at a node; its leaves add up over the run. `upstream` are cuts before it."""
        key = (kind, id(node))
        number = self.cut_numbers.get(key)
        if number is None:
            number = self.cut_numbers[key] = len(self.cuts)
            self.cuts.append(CutInfo(kind, name, node, self.where()))
        info = self.cuts[number]
        info.leaves |= leaves
        info.nodes |= nodes
        info.upstream |= upstream
        return number

    def nearest_cut(self, cuts: frozenset[int]) -> frozenset[int]:
        """Of the cuts on the way to a value, of those that no other cut comes after the one that is least often meant."""
        last = self.last_cuts(cuts)
        return frozenset({min(last, key=self.rank_of_cut)}) if last else frozenset()

    def rank_of_cut(self, number: int) -> tuple[int, int]:
        """How seldom a cut is meant, the least often first; of one kind, the first."""
        kind = self.cuts[number].kind
        return (KINDS_OF_CUTS.index(kind) if kind in KINDS_OF_CUTS else len(KINDS_OF_CUTS), number)

    def last_cuts(self, cuts: frozenset[int]) -> list[int]:
        """Of the cuts on the way to a value, those that no other comes after; in a loop two may come after each other."""
        upstream = [self.cuts[cut].upstream for cut in cuts]
        self.charge(sum(map(len, upstream)))
        before = cuts & frozenset[int]().union(*upstream)
        latest_first = sorted(cuts, reverse=True)

        def after(c: int, other: int) -> bool:
            return c in self.cuts[other].upstream and other not in self.cuts[c].upstream

        return [c for c in cuts if c not in before or not any(after(c, o) for o in latest_first if o != c)]

    def charge(self, cells: int) -> None:
        """Count work that took as long as to go through so many cells."""
        self.store.work += cells

    def age(self, loop: Loop) -> None:
        """End an iteration: what was born in it is from now on "from an earlier iteration"."""
        born = {address for address in loop.allocs if not address & 1}
        if born:
            aged = self.aged(self.store.delta(loop.base), born)
            for key, value in aged.items():
                self.store.set(key, value)
        loop.born |= born
        loop.allocs = set()

    def aged(self, delta: Delta, born: set[int]) -> Delta:
        """A delta in which everything born in the iteration is aged."""
        out: Delta = {}
        moved = []
        nodes: list[tuple[Any, Node, Node]] = []
        for key, value in delta.items():
            new_key = rename_key(key, born)
            content = None if value is None else rename(value, born)
            if new_key is key:
                out[key] = content
            else:
                moved.append((key, new_key, content))
        for key, new_key, content in moved:
            out[key] = None
            older = out[new_key] if new_key in out else self.cells.get(new_key)
            out[new_key] = (
                content if older is None else older if content is None else join_cells(older, content)
            )
            if type(content) is type(older) is Node and not older.sure <= content.sure:
                nodes.append((new_key, older, content))
        for key, older, content in nodes:
            if self._comes_again(key, content, out):
                # By whichever of its namesakes a backward comes, it ends at the first, which led there.
                out[key] = out[key]._replace(sure=out[key].sure | older.sure)
        return out

    def _comes_again(self, key: tuple[int, str], node: Node, aged: Delta) -> bool:
        """Whether a backward through a node must come by what has its name: by one that was made before it."""
        queue, seen = [*node.sure], set(node.sure)
        for at in queue:
            if at == key[0]:
                return True
            inner = (at, key[1])
            behind = aged[inner] if inner in aged else self.cells.get(inner)
            if type(behind) is Node and len(seen) < MOST_COMING_AGAIN:
                queue += behind.sure - seen
                seen |= behind.sure
        return False

    def alternatives(self, value: Value) -> tuple[Value, ...]:
        """The atoms of a value with `Each` spelled out."""
        out: list[Value] = []
        for atom in atoms(value):
            if type(atom) is Each:
                out.extend(atom.refs)
            else:
                out.append(atom)
        return tuple(out) or (Unknown(),)
