"""The probe records what torch holds, where it holds it, and changes nothing by looking."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from tools.probe.client import Prober, probing
from tools.probe.instrument import Instrument
from tools.probe.observed import Observation, Program, Range, State

ROOT = Path(__file__).parent.parent
LEAF = State(True, True, None, False, False, "grad")
PLAIN = State(False, True, None, False, False, "grad")


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    """One worker for all tests."""
    with probing(20) as prober:
        yield prober


def program(text: str, folder: str = "") -> Program:
    return Program(dedent(text).strip() + "\n", "<program>", folder)


def shown(prober: Prober, text: str) -> Observation:
    """What a program shows that runs to its end."""
    observation = prober.probe(program(text))
    assert observation.failure is None, observation.failure
    return observation


def states(observation: Observation, row: int) -> dict[Range, frozenset[State]]:
    """What the tensors of one row held."""
    return {
        place: seen.states for place, seen in observation.seen.items() if place.row == row and seen.states
    }


def only(observation: Observation, row: int) -> set[State]:
    """What the one tensor of a row held."""
    (found,) = states(observation, row).values()
    return set(found)


def test_each_expression_is_recorded_at_its_place(prober: Prober) -> None:
    """Rows from 1; columns in UTF-8 bytes from 0, as `ast` counts them."""
    seen = shown(
        prober,
        """
        import torch
        x = torch.ones(2, requires_grad=True)
        y = "😀漢", x * 2
        """,
    )
    assert {
        Range(3, 15, 3, 16): {LEAF},
        Range(3, 15, 3, 20): {State(True, False, "MulBackward0", False, False, "grad")},
    } == states(seen, 3)


def test_a_look_in_inference_mode_leaves_a_view_its_grad_fn(prober: Prober) -> None:
    """Torch fails where it is asked there for that of a view which was changed, and leaves it without one."""
    seen = shown(
        prober,
        """
        import torch
        view = torch.fft.fft(torch.ones(3, requires_grad=True)).real
        with torch.inference_mode():
            view.copy_(3)
        view
        """,
    )
    assert {State(True, False, "AsStridedBackward0", True, False, "grad")} == only(seen, 5)


@pytest.mark.parametrize(
    ("setup", "expression", "state"),
    [
        ("x = torch.ones(2)", "x", PLAIN),
        ("x = torch.ones(2, requires_grad=True)", "x", LEAF),
        ("x = (torch.ones(2, requires_grad=True) * 2).detach()", "x", PLAIN),
        ("x = torch.ones(2)[0]", "x", State(False, True, None, True, False, "grad")),
        ("x = torch.ones(2, requires_grad=True)[0]", "x", State(True, False, "SelectBackward0", True, False, "grad")),
        ("x = torch.ones(2, requires_grad=True).exp()", "x", State(True, False, "ExpBackward0", False, False, "grad")),
        ("x = torch.nn.Parameter(torch.ones(2))", "x", LEAF),
    ],
)  # fmt: skip
def test_a_state_says_what_torch_holds(prober: Prober, setup: str, expression: str, state: State) -> None:
    assert {state} == only(shown(prober, f"import torch\n{setup}\n{expression}"), 3)


def test_the_grad_mode_of_the_moment_is_part_of_the_state(prober: Prober) -> None:
    seen = shown(
        prober,
        """
        import torch
        x = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            x
        with torch.inference_mode():
            y = x * 2
            y
        y
        """,
    )
    assert {LEAF._replace(grad_mode="no_grad")} == only(seen, 4)
    assert {State(False, True, None, False, True, "inference")} == only(seen, 7)
    assert {State(False, True, None, False, True, "grad")} == only(seen, 8)


def test_an_expression_holds_the_state_of_the_moment_it_was_evaluated(prober: Prober) -> None:
    """Not of the moment when the program ended."""
    seen = shown(
        prober,
        """
        import torch
        x = torch.zeros(2)
        x.requires_grad_()
        x
        """,
    )
    assert [{PLAIN}, {LEAF}] == [
        set(found) for _, found in sorted(states(seen, 3).items(), key=lambda item: item[0].end_column)
    ]
    assert {LEAF} == only(seen, 4)


def test_all_visits_of_a_place_add_up(prober: Prober) -> None:
    seen = shown(
        prober,
        """
        import torch
        def f(value):
            return value
        f(torch.ones(1))
        f(torch.ones(1, requires_grad=True))
        f(3)
        f(None)
        """,
    )
    (value,) = (seen for place, seen in seen.seen.items() if place.row == 3)
    assert {PLAIN, LEAF} == value.states
    assert {"int", "NoneType"} == value.others


def test_a_view_whose_history_is_lost_is_recorded_as_broken(prober: Prober) -> None:
    """Torch does not tell the grad_fn of one of several views whose base was changed in place."""
    seen = shown(
        prober,
        """
        import torch
        w, base = torch.ones(2, requires_grad=True), torch.zeros(2, 2)
        with torch.no_grad():
            a, b = base.unbind(0)
        base.mul_(w)
        a
        """,
    )
    (state,) = only(seen, 6)
    assert state.broken
    assert state.is_view


def test_what_ran_before_an_exception_is_recorded(prober: Prober) -> None:
    observation = prober.probe(
        program(
            """
            import torch
            x = torch.ones(2, requires_grad=True)
            def fail(value):
                value.numpy()
            fail(x)
            x + 1
            """
        )
    )
    assert observation.failure is not None
    assert ("RuntimeError", 4) == (observation.failure.type, observation.failure.row)
    assert "detach" in observation.failure.message
    assert {LEAF} == only(observation, 5)
    assert {} == states(observation, 6)


def test_a_syntax_error_is_a_failure_with_nothing_seen(prober: Prober) -> None:
    observation = prober.probe(program("x = = 1"))
    assert {} == observation.seen
    assert observation.failure is not None
    assert ("SyntaxError", 1) == (observation.failure.type, observation.failure.row)


def test_leaving_early_on_purpose_is_no_failure(prober: Prober) -> None:
    assert None is prober.probe(program("import sys\nsys.exit()")).failure
    failure = prober.probe(program("import sys\nsys.exit('no data')")).failure
    assert failure is not None
    assert ("SystemExit", "no data", 2) == (failure.type, failure.message, failure.row)


def test_a_program_without_an_end_is_ended_and_what_it_showed_is_kept() -> None:
    with probing(1) as prober:
        observation = prober.probe(program("import torch\nx = torch.ones(1)\nx\nwhile True: pass"))
        assert observation.failure is not None
        assert ("Timeout", 4) == (observation.failure.type, observation.failure.row)
        assert {PLAIN} == only(observation, 3)
        assert {PLAIN} == only(shown(prober, "import torch\nx = torch.ones(1)\nx"), 3)


def test_a_process_that_dies_is_a_failure_and_the_next_program_runs(prober: Prober) -> None:
    observation = prober.probe(program("import os\nos.abort()"))
    assert observation.failure is not None
    assert "Died" == observation.failure.type
    assert {PLAIN} == only(shown(prober, "import torch\nx = torch.ones(1)\nx"), 3)


def test_programs_do_not_see_each_other(prober: Prober) -> None:
    shown(prober, "import torch, sys\nsys.left = 1\ntorch.set_grad_enabled(False)\nopen('left', 'w').close()")
    shown(
        prober,
        """
        import os, sys, torch
        assert not hasattr(sys, "left")
        assert torch.is_grad_enabled()
        assert not os.listdir()
        """,
    )


def test_programs_that_share_a_process_begin_as_if_they_did_not() -> None:
    """Also after one that ran too long, died, or stopped half way through a generator in inference mode."""
    texts = [
        "import torch, random\ntorch.set_grad_enabled(False)\nopen('left', 'w').close()\nleft = 1",
        "def held():\n    with torch.inference_mode():\n        yield\nimport torch\nnext(g := held())\ng.me = g",
        "while True: pass",
        "import os\nos.abort()",
        "import torch\ng = torch.inference_mode()\ng.__enter__()",
    ]
    plain = program(
        "import torch, os, random\nx = torch.rand(1)\nassert not os.listdir() and 'left' not in vars()"
    )
    with probing(1, share=True) as prober:
        first = prober.probe(plain)
        assert first.failure is None, first.failure
        for text in texts:
            prober.probe(program(text))
            assert prober.probe(plain) == first


def test_a_program_runs_as_python_would_run_it(prober: Prober, tmp_path: Path) -> None:
    """As the main module, with its own folder to import from, without input and with output that goes nowhere."""
    (tmp_path / "beside.py").write_text("answer = 42\n", encoding="utf-8")
    observation = prober.probe(
        program(
            """
            import inspect, os, pickle, sys
            from beside import answer
            class Point: pass
            def f():
                return answer
            assert answer == 42
            assert __name__ == "__main__" and sys.modules["__main__"].answer == 42
            assert not [name for name in vars() if "gradvet" in name]
            assert inspect.getsource(f) == "def f():\\n    return answer\\n"
            assert isinstance(pickle.loads(pickle.dumps(Point())), Point)
            assert sys.stdin.read() == "" and len(sys.argv) == 1
            print("lost")
            os.write(1, b"lost")
            assert os.path.basename(os.getcwd()) == "work"
            """,
            str(tmp_path),
        )
    )
    assert observation.failure is None, observation.failure


def test_looking_keeps_nothing_alive_and_changes_nothing(prober: Prober) -> None:
    """A tensor and its graph go when the program lets go of them; subclasses do not notice being looked at."""
    shown(
        prober,
        """
        import torch, weakref
        noticed = []
        class Curious(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                noticed.append(function)
                return super().__torch_function__(function, types, args, kwargs or {})
        x = torch.ones(2, requires_grad=True)
        saved = x * 2
        y = saved.sin()
        alive = weakref.ref(saved), weakref.ref(y)
        del saved
        y, y, [y]
        assert y._version == 0 and alive[0]() is not None
        del y
        assert [one() for one in alive] == [None, None]
        curious = torch.ones(2).as_subclass(Curious)
        noticed.clear()
        curious, (curious), [curious]
        assert noticed == []
        """,
    )


def test_threads_have_their_own_grad_mode_and_are_waited_for(prober: Prober) -> None:
    seen = shown(
        prober,
        """
        import threading, time, torch
        x = torch.ones(1)
        def work():
            time.sleep(0.2)
            x
        with torch.no_grad():
            threading.Thread(target=work).start()
        """,
    )
    assert {PLAIN} == only(seen, 5)


EVERYTHING = '''
from __future__ import annotations
"""Not a docstring."""
import contextlib

def decorate(f): return f

class Base:
    """Doc."""
    shared: int = 1 + 1
    def __init__(self, a=1 + 2, *args: int, b: int = 3, **rest) -> None:
        super().__init__()
        self.__private = a
    @property
    def private(self): return self.__private

class Child(Base):
    def __init__(self):
        super().__init__(7)
        self.names = locals().keys()

@decorate
def generate(n, /, *, double=False):
    for i in range(n):
        got = yield i
        if got: yield got
    return n

def delegate():
    result = yield from generate(2)
    assert result == 2

async def wait(x):
    async with manage() as m:
        async for y in count():
            x += y + m
    return [z async for z in count()], await other(x)

@contextlib.asynccontextmanager
async def manage(): yield 1
async def count():
    for i in (1, 2): yield i
async def other(x): return x

def match(x):
    match x:
        case [a, *rest] if a > 1: return rest
        case {"k": v, **others}: return v, others
        case Base(private=p): return p
        case 1 | 2: return "small"
        case None: return None

import asyncio
assert Child().private == 7 and "self" in Child().names and Child.__doc__ is None and Base.__doc__ == "Doc."
assert list(generate(3)) == [0, 1, 2] and list(delegate()) == [0, 1]
assert asyncio.run(wait(0)) == ([1, 2], 5)
assert (match([2, 3]), match({"k": 1, "z": 2}), match(Child()), match(2), match(None)) == ([3], (1, {"z": 2}), 7, "small", None)
a, *b = [1, 2, 3]
a += 1; b[0] -= 1; b[-1:] = [9, 9]
del b[0]
c: list[int] = [x * y for x in b if x for y in (1, 2)]
d = {**{"a": a}, "n": (n := 10)}
assert (a, b, c, d, n) == (2, [9, 9], [9, 18, 9, 18], {"a": 2, "n": 10}, 10)
assert f"{a!r:>{n}}" == "         2" and (lambda x, *y, z=a: x + z)(1) == 3 and not a < 2 <= n
assert (1 if a else 2) == 1 and {x for x in b} == {9} and {k: v for k, v in d.items()} == d
try:
    raise ValueError("x") from None
except* ValueError as group:
    assert group.exceptions
else:
    assert False
finally:
    while a:
        a -= 1
    else:
        with contextlib.suppress(ZeroDivisionError), contextlib.nullcontext(): 1 / 0
global_list = list(map(str, (i for i in range(2))))
assert global_list == ["0", "1"] and b[::2] == [9] and b[0:1][0] == 9 and -a == ~-1
'''


def test_every_kind_of_syntax_means_what_it_did(prober: Prober) -> None:
    """The program checks itself."""
    text = (
        EVERYTHING
        if sys.version_info >= (3, 11)
        else EVERYTHING.replace("except* ", "except ").replace("group.exceptions", "group")
    )
    observation = prober.probe(Program(text, "<program>", ""))
    assert observation.failure is None, observation.failure
    assert len(observation.seen) > 150


@pytest.mark.parametrize(
    "path", sorted((ROOT / "server" / "gradvet").rglob("*.py")), ids=lambda path: path.stem
)
def test_any_file_can_be_rewritten_and_keeps_its_places(path: Path) -> None:
    """Each line's statements stand where they stood, and Python accepts the rewritten tree."""
    text = path.read_text(encoding="utf-8")
    rewriting = Instrument()
    tree = rewriting.visit(ast.parse(text))
    compile(tree, str(path), "exec", dont_inherit=True)
    assert len(set(rewriting.places)) == len(rewriting.places)


def test_an_observation_survives_json(prober: Prober) -> None:
    observation = prober.probe(
        program("import torch\nx = torch.ones(1, requires_grad=True)\ny = x[0], 3\ny[1].no")
    )
    assert observation.failure is not None
    assert Observation.from_json(observation.to_json()) == observation


def test_the_command_tells_what_was_seen(tmp_path: Path) -> None:
    file = tmp_path / "small.py"
    file.write_text(
        "import torch\nx = torch.ones(1, requires_grad=True)\ny = x * 2\nprint('out')\n1 / 0\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "tools.probe", str(file)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert 1 == done.returncode
    assert done.stdout.splitlines() == [
        "2:4: `torch.ones(1, requires_grad=True)` requires_grad=True is_leaf=True grad_fn=None [grad]",
        "3:4: `x` requires_grad=True is_leaf=True grad_fn=None [grad]",
        "3:4: `x * 2` requires_grad=True is_leaf=False grad_fn=MulBackward0 [grad]",
        "ZeroDivisionError on line 5: division by zero",
    ]


def test_a_compiler_does_not_see_what_looks(prober: Prober) -> None:
    """What it traces with is no tensor of the program, and what it compiled holds what eager code would."""
    seen = shown(
        prober,
        """
        import torch
        @torch.compile(backend="eager")
        def double(x):
            return x * 2
        double(torch.ones(2, requires_grad=True))
        """,
    )
    inside = [state for seen_here in states(seen, 4).values() for state in seen_here]
    assert inside
    assert {"MulBackward0", None} >= {state.grad_fn for state in inside}
    assert all(state.requires_grad for state in inside)
