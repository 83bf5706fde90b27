"""Threads, pools of them, processes and queues: functions run elsewhere, with grad mode on whatever it is here."""

from gradvet.autograd.library import serialised
from gradvet.autograd.library.escapes import in_thread
from gradvet.autograd.library.externals import handles
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import (
    NONE,
    TRUE,
    External,
    Number,
    Pool,
    Ref,
    Sequence,
    Tuple,
    Unknown,
    Value,
    join,
    join_all,
)
from gradvet.autograd.python.calls import Call, unknown_call
from gradvet.autograd.python.objects import element_of, items_of

MOST_TASKS = 16
_POOLS = (
    "concurrent.futures.ThreadPoolExecutor", "concurrent.futures.thread.ThreadPoolExecutor",
    "multiprocessing.pool.ThreadPool", "multiprocessing.dummy.Pool",
)  # fmt: skip

_BETWEEN_PROCESSES = (
    "multiprocessing.Queue", "multiprocessing.SimpleQueue",
    "torch.multiprocessing.Queue", "torch.multiprocessing.SimpleQueue",
)  # fmt: skip
_SPAWN = "torch.multiprocessing.spawn"
_TAKES = "#takes"
"""The cell of a queue that holds what a thread runs which takes things out of it, and with what."""


THREADS = frozenset({"threading.Thread"})
"""The classes whose `start()` calls the `run()` of a class of the file that extends them."""


@handles("threading.Thread", "threading.Timer")
def _thread(m: Machine, name: str, call: Call) -> Value:
    target = call.argument(1, "target" if name.endswith("Thread") else "function")
    if target is not None and target != NONE:
        args = items_of(m, call.keywords.get("args", Tuple(()))) or ()
        run_thread(m, target, Call(call.node, tuple(args)))
    return m.unknown(call.node, "a thread", ())


def run_thread(m: Machine, work: Value, call: Call) -> None:
    """Run what a thread runs; where it takes things out of queues, it does so again whenever something is put there."""
    outer, m.thread = m.thread, Tuple((work, Tuple(call.args)))
    in_thread(m, work, call)
    m.thread = outer


@handles(
    "multiprocessing.Process",
    "torch.multiprocessing.Process",
    _SPAWN,
    "torch.multiprocessing.start_processes",
)
def _process(m: Machine, name: str, call: Call) -> Value:
    """Another process runs the function on copies of what it is given: nothing that it changes comes back."""
    target = call.argument(1, "target") if name.endswith("Process") else call.argument(0, "fn")
    at = 3 if name.endswith("Process") else 1
    args = items_of(m, call.argument(at, "args") or Tuple(())) or ()
    if not name.endswith("Process"):
        args = (Number("int"), *args)
    if target is not None and target != NONE:
        before = m.store.mark()
        in_thread(m, target, Call(call.node, args))
        m.store.undo(before)
    return m.unknown(call.node, "a process", ())


@handles("multiprocessing.get_context", "torch.multiprocessing.get_context")
def _context(m: Machine, name: str, call: Call) -> Value:
    """A start method of its own, and the names of the module."""
    return External(name.removesuffix(".get_context"))


@handles(*_POOLS)
def _pool(m: Machine, name: str, call: Call) -> Value:
    return m.new(call.node, Pool("pool"), "pool")


@handles("queue.Queue", "queue.SimpleQueue", "queue.LifoQueue", *_BETWEEN_PROCESSES)
def _queue(m: Machine, name: str, call: Call) -> Value:
    ref = m.new(call.node, Pool("queue"), "queue")
    if name in _BETWEEN_PROCESSES:
        m.write_cell(ref, "#processes", TRUE)
    return ref


@handles("concurrent.futures.as_completed")
def _completed(m: Machine, name: str, call: Call) -> Value:
    return call.args[0] if call.args else Unknown("futures")


@handles("concurrent.futures.wait")
def _wait(m: Machine, name: str, call: Call) -> Value:
    return Tuple((call.args[0], call.args[0])) if call.args else Unknown("futures")


def call_method(m: Machine, ref: Ref, content: Pool, name: str, call: Call) -> Value:
    """A method of a pool, of a future of it, or of a queue."""
    if content.kind == "queue":
        return _queue_method(m, ref, content, name, call)
    if content.kind == "future":
        if name in ("result", "get"):
            return content.value if content.value is not None else Unknown("the result of a future")
        return (
            NONE
            if name in ("add_done_callback", "wait", "cancel")
            else unknown_call(m, call, f"the result of `{name}`")
        )
    if name in ("submit", "apply", "apply_async") and call.args:
        if name == "submit":
            task = Call(call.node, call.args[1:], call.keywords, call.star, call.stars)
        else:
            task = Call(call.node, items_of(m, call.args[1]) or () if len(call.args) > 1 else ())
        value = in_thread(m, call.args[0], task)
        return value if name == "apply" else m.new(call.node, Pool("future", value), "future")
    if name in ("map", "imap", "imap_unordered", "starmap") and len(call.args) > 1:
        return _map(m, name, call)
    if name == "__enter__":
        return ref
    return NONE


def _map(m: Machine, name: str, call: Call) -> Value:
    function, sources = call.args[0], call.args[1:]
    columns = [items_of(m, source) for source in sources]
    if all(column is not None and len(column) <= MOST_TASKS for column in columns):
        made = []
        for number, args in enumerate(zip(*(c for c in columns if c is not None), strict=False)):
            given = items_of(m, args[0]) or () if name == "starmap" else args
            with m.numbered(call.node, number):
                made.append(in_thread(m, function, Call(call.node, tuple(given))))
        return m.new(call.node, Sequence("list", tuple(made)))
    elements = tuple(element_of(m, source, call.node) for source in sources)
    if name == "starmap":
        elements = items_of(m, elements[0]) or elements
    _, value = m.for_all(call.node, lambda: (True, in_thread(m, function, Call(call.node, elements))))
    return m.new(call.node, Sequence("list", None, value, nonempty=True))


def _taken_out(m: Machine, ref: Ref, new: Value, call: Call) -> None:
    """The thread that waits for what is put into a queue goes on with it."""
    waiting = m.cells.get((ref.address, _TAKES))
    if type(waiting) is not Tuple or m.thread is not None:
        return
    work, args = waiting.items
    before = m.cells[ref.address]
    m.store.set(ref.address, Pool("queue", new))
    m.queued[call.node] = new
    run_thread(m, work, Call(call.node, args.items))
    m.store.set(ref.address, before)


def _queue_method(m: Machine, ref: Ref, content: Pool, name: str, call: Call) -> Value:
    if name in ("put", "put_nowait") and call.args:
        new = call.args[0]
        if (ref.address, "#processes") in m.cells:
            serialised.sent(m, new, call.node)
        m.update(
            ref,
            lambda c: (
                c._replace(value=new if c.value is None else join(c.value, new)) if type(c) is Pool else c
            ),
        )
        _taken_out(m, ref, new, call)
        return NONE
    if name in ("get", "get_nowait"):
        if m.thread is not None and (ref.address, "#processes") not in m.cells:
            m.store.set((ref.address, _TAKES), m.thread)
        known = join_all([v for v in (content.value,) if v is not None])
        return known if known is not None else unknown_call(m, call, "what a queue gives")
    return NONE if name in ("join", "task_done") else unknown_call(m, call, f"the result of `{name}`")
