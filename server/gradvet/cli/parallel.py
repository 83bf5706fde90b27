"""Many items of work in a few processes. A process that dies takes only its own item along."""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from gradvet.collection import seldom

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTHWHILE = 8  # items; for fewer, starting processes takes longer than the work
_LARGEST_CHUNK = 8
_MOST_PROCESSES = 60  # Windows can wait for no more


def in_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int, lost: Callable[[Item], Result]
) -> Generator[Result, None, None]:
    """The result for each item, in their order. `lost` gives the result for one that killed its process."""
    jobs = min(jobs, _MOST_PROCESSES, len(items))
    if jobs <= 1 or len(items) < WORTHWHILE:
        yield from map(work, items)
        return
    from concurrent.futures.process import BrokenProcessPool

    size = max(1, min(_LARGEST_CHUNK, len(items) // (4 * jobs)))
    chunks = [items[start : start + size] for start in range(0, len(items), size)]
    while chunks:
        try:
            for results in _in_pool(work, chunks, jobs):
                yield from results
                chunks = chunks[1:]
        except BrokenProcessPool:
            # Which item did it cannot be told. Those of the first chunk go one by one, then all goes on.
            for item in chunks[0]:
                yield _alone(work, item, lost)
            chunks = chunks[1:]


def _in_pool(
    work: Callable[[Item], Result], chunks: Sequence[Sequence[Item]], jobs: int
) -> Iterator[list[Result]]:
    pool = _pool(jobs)
    try:
        for future in [pool.submit(_each, work, chunk) for chunk in chunks]:
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _alone(work: Callable[[Item], Result], item: Item, lost: Callable[[Item], Result]) -> Result:
    from concurrent.futures.process import BrokenProcessPool

    pool = _pool(1)
    try:
        return pool.submit(work, item).result()
    except BrokenProcessPool:
        return lost(item)
    finally:
        pool.shutdown()


def _pool(jobs: int) -> "ProcessPoolExecutor":
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(jobs, initializer=_begin)


def _begin() -> None:
    """Let Ctrl-C end a worker at once and without a word: the parent says what there is to say.

    Where it is ignored, as in the background, it stays so.
    """
    import signal

    seldom()
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _each(work: Callable[[Item], Result], chunk: Sequence[Item]) -> list[Result]:
    return [work(item) for item in chunk]
