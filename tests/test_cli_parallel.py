"""Work in several processes; one that dies takes nothing else along."""

import subprocess
import sys

import pytest

from gradvet.cli.parallel import WORTHWHILE, in_parallel

# `eval` is a function that every process knows by name, and texts are items that can do anything to it.
DEATH = "__import__('os')._exit(3)"


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, WORTHWHILE - 1, WORTHWHILE, 50])
def test_results_come_in_the_order_of_the_items(jobs: int, count: int) -> None:
    """However many processes share the work."""
    items = [f"{number} * 2" for number in range(count)]
    assert [number * 2 for number in range(count)] == list(in_parallel(eval, items, jobs, len))


def test_few_items_are_done_here() -> None:
    """Starting a process takes longer than a file."""
    here, many = "__import__('os').getpid()", 4 * WORTHWHILE
    assert 1 == len(set(in_parallel(eval, [here] * (WORTHWHILE - 1), 2, len)))
    assert 1 < len({*in_parallel(eval, [here] * many, 2, len), *in_parallel(eval, [here], 2, len)})


@pytest.mark.parametrize("deaths", [{0}, {17}, {49}, {3, 4, 30}])
def test_an_item_that_ends_its_process_is_lost_alone(deaths: set[int]) -> None:
    """All the others have their results."""
    items = [DEATH if number in deaths else str(number) for number in range(50)]
    results = list(in_parallel(eval, items, 2, lambda item: f"lost {item}"))
    assert [f"lost {DEATH}" if number in deaths else number for number in range(50)] == results


def test_a_failure_that_is_raised_is_raised_here() -> None:
    """Only the death of a process is survived; work must not raise."""
    with pytest.raises(ZeroDivisionError):
        list(in_parallel(eval, ["1"] * 20 + ["1 // 0"], 2, len))


@pytest.mark.parametrize(("here", "there"), [("SIG_IGN", "SIG_IGN"), ("default_int_handler", "SIG_DFL")])
def test_an_interrupt_that_is_ignored_is_ignored_by_all(here: str, there: str) -> None:
    """Else Ctrl-C would end the workers of a run in the background, and leave it to do all again."""
    code = (
        f"import signal; signal.signal(signal.SIGINT, signal.{here})\n"
        "from gradvet.cli.parallel import in_parallel\n"
        "asked = ['__import__(\"signal\").getsignal(2).name'] * 20\n"
        "print(*set(in_parallel(eval, asked, 2, len)))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert f"{there}\n" == done.stdout


def test_a_caller_that_has_enough_may_leave() -> None:
    """The processes end with it."""
    results = in_parallel(eval, ["1"] * 200, 2, len)
    assert 1 == next(results)
    results.close()
