"""What one of several processes does of a campaign: a batch of seeds with a worker of its own."""

import atexit
from collections.abc import Sequence
from contextlib import ExitStack

from tools.fuzz.campaign import SECONDS, Trial, trial
from tools.fuzz.total import Total
from tools.probe.client import Prober, probing

_probers: list[Prober] = []


def begin() -> None:
    """Start the worker of this process; it ends with it."""
    stack = ExitStack()
    atexit.register(stack.close)
    _probers.append(stack.enter_context(probing(SECONDS, share=True)))


def batch(seeds: Sequence[int], statements: int) -> tuple[Total, list[Trial]]:
    """The sums over some seeds, and the programs in which torch and the dry run disagree."""
    found = [trial(seed, _probers[-1], statements) for seed in seeds]
    return Total.of(found), [one for one in found if one.faults]
