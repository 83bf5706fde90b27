"""No file takes more than a few seconds, whatever is in it; and a bound that was reached is told."""

import time

import pytest

from gradvet.analysis import analyze
from gradvet.autograd.memory.values import Ref, Tuple, Value, join
from gradvet.text import Source

# Seconds of processor time: several times what the slowest takes on a machine with nothing else to do. What
# this must catch takes minutes.
LONGEST = 10.0

_HEAD = "import torch\nfrom torch import nn\nw = torch.ones(3, requires_grad=True)\n"


def _lines(count: int, text: str) -> str:
    """The text so many times; `@` stands for the number of the repetition, `%` for the one after it."""
    return "".join(text.replace("@", str(i)).replace("%", str(i + 1)) for i in range(count))


def _nested(count: int, head: str, body: str) -> str:
    """A body in so many blocks within one another."""
    blocks = "".join("    " * i + head.replace("@", str(i)) + "\n" for i in range(count))
    return blocks + "".join("    " * count + line + "\n" for line in body.splitlines())


STEPS = "was stopped after"
CALLS = "what comes after that is not followed"
LOOPS = "was not run item by item"

PROGRAMS: dict[str, tuple[str, str]] = {
    "parentheses": ("y = " + "(" * 150 + "w" + " + 1)" * 150 + "\n", ""),
    "ifs in ifs": (_nested(90, "if a > @:", "w = w * 2"), ""),
    "a long chain of elif": (
        "def f(a, x):\n    if a:\n        y = x\n"
        + _lines(800, "    elif a == @:\n        y = x * @\n")
        + "    return y\nf(a, w)\n",
        "nested too deep",
    ),
    "ifs in a row": (
        "x = w\n" + _lines(1500, "if a[@]:\n    x = x * @\n    y@ = x.sum()\n") + "x.sum().backward()\n",
        "",
    ),
    "loops in loops with branches": (
        "s, t = 0, w\n"
        + _nested(
            14,
            "for i@ in n@:",
            "if a():\n    s = s + t.sum()\nelif b():\n    t = t * s\n    continue\nt = t + 1",
        ),
        "",
    ),
    "whiles in whiles": (_nested(15, "while c@():", "w = w + 1"), ""),
    "loops in loops over known things": (
        "s = 0\n" + _nested(12, "for i@ in (1, 2, 3, 4):", "s = s + w.sum() * i0"),
        LOOPS,
    ),
    "comprehensions in comprehensions over known things": (
        "y = " + "[" * 9 + "w * 2" + _lines(9, " for a@ in (1, 2, 3, 4, 5, 6, 7, 8)]") + "\n",
        LOOPS,
    ),
    "a tower of comprehensions": ("y = " + "[" * 40 + "w * 2" + _lines(40, " for a@ in b@]") + "\n", ""),
    "functions that call one another": (
        _lines(
            60,
            "def f@(x, n):\n    if n:\n        return f%(x * 2, n - 1) + f0(x, n)\n    return x\n",
        )
        + "f0(w, n())\n",
        "",
    ),
    "calls that fan out": (
        _lines(20, "def f@(x):\n    return f%(x) + f%(x * 2) + f%(x + 1)\n")
        + "def f20(x):\n    return x\nf0(w)\n",
        CALLS,
    ),
    "thousands of functions": (
        _lines(4000, "def f@(x):\n    loss = (x * @).sum()\n    loss.backward()\n    return loss.item()\n"),
        "",
    ),
    "a thousand modules": (
        _lines(
            1000,
            "class N@(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.a = nn.Linear(3, 3)\n    def forward(self, x):\n        return self.a(x)\n",
        ),
        "",
    ),
    "a huge dict of tensors": (
        "d = {\n" + _lines(6000, "'k@': torch.ones(@),\n") + "}\nfor k in d:\n    d[k] = d[k] * 2\n",
        "",
    ),
    "a huge dict that is filled": ("d = {}\n" + _lines(6000, "d['k@'] = torch.ones(@)\n"), ""),
    "a try around everything": (
        "try:\n" + _lines(2500, "    y@ = w * @\n") + "except ValueError:\n    y0 = None\n",
        "",
    ),
    "thousands of returns": (
        "def f(a, x):\n" + _lines(4000, "    y@ = x * @\n    if a == @:\n        return y@\n") + "f(a, w)\n",
        STEPS,
    ),
    "changes in place of views": (
        "x = w * 2\n" + _lines(1500, "v@ = x[@]\n") + _lines(1500, "v@.add_(1)\n"),
        STEPS,
    ),
    "changes in place of what was saved": (_lines(3000, "y@ = w * w\nz@ = y@ * y@\ny@.add_(1)\n"), STEPS),
    "cuts one after another": (
        "x = w\n" + _lines(2000, "x = (x * w).detach() + w\n") + "x.sum().backward()\n",
        "",
    ),
    "hundreds of optimizers": (
        _lines(400, "m@ = nn.Linear(3, 3)\no@ = torch.optim.SGD(m@.parameters(), lr=1)\n"),
        "",
    ),
    "tuples of tuples": ("x = w\n" + "x = (x, x)\n" * 40 + "y = torch.stack(x)\n", ""),
    "a chain of unknown calls": ("x = w\n" + "x = foo(x, x, x)\n" * 3000 + "x.backward()\n", ""),
    "numbers too large to compute": ("x = 10 ** 10 ** 10\ny = 1 << 10 ** 9\nz = [0] * 10 ** 9\n", ""),
    "a file of broken lines": ("def f(:\n  x = [1\n" * 3000, ""),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ends_soon_and_tells_its_bounds(name: str) -> None:
    """The time is that of the processor, so that other work on the machine does not count."""
    text, limit = PROGRAMS[name]
    begin = time.process_time()
    analysis = analyze(Source(f"{name}.py", _HEAD + text))
    assert time.process_time() - begin < LONGEST
    told = " ".join(analysis.facts.limits)
    assert limit in told
    assert analysis.facts.states or analysis.problems


def test_a_part_that_takes_all_its_steps_leaves_some_for_the_others() -> None:
    """What nothing reaches is run by itself, with a bound of its own."""
    faults = _lines(3, "def f@():\n    v = torch.ones(3, requires_grad=True)\n    v.numpy()\n")
    endless = "x = w\n" * 13_000
    analysis = analyze(Source("parts.py", _HEAD + faults + endless))
    assert "a part of the run was stopped after 12000 statements" in analysis.facts.limits
    assert ["numpy-on-grad"] * 3 == [d.rule.name for d in analysis.diagnostics]


@pytest.mark.parametrize(
    "midst",
    [
        "w.register_hook(work)\nw.sum().backward()\n",
        "layer = nn.Linear(3, 3)\nlayer.register_forward_hook(lambda *_: work(w))\nlayer(w)\n",
        "torch.func.grad(lambda x: work(x).sum())(w)\n",
        "torch.func.vmap(work)(torch.ones(3, 3))\n",
        "import threading\nthreading.Thread(target=work, args=(w,)).start()\n",
    ],
    ids=["hook", "forward hook", "grad", "vmap", "thread"],
)
def test_a_part_that_ends_in_the_midst_of_something_leaves_nothing_under_way(midst: str) -> None:
    """What is run after it is run as ever: its hooks too, and outside of transforms of functions."""
    work = "def work(x):\n" + "    x = x\n" * 13_000 + "    return x\n"
    fault = (
        "def late():\n    v = torch.ones(3, requires_grad=True)\n    y = v * 2\n"
        "    y.register_hook(lambda grad: grad.mul_(2))\n    y.sum().backward()\n"
        "    with torch.no_grad():\n        row = v[0]\n    (row * 2).sum().backward()\n    v.numpy()\n"
    )
    analysis = analyze(Source("midst.py", _HEAD + fault + work + midst))
    assert any(STEPS in limit for limit in analysis.facts.limits)
    assert ["grad-mutated-in-hook", "view-made-under-no-grad", "numpy-on-grad"] == [
        d.rule.name for d in analysis.diagnostics
    ]


def test_a_long_file_is_run_to_its_end() -> None:
    """How much may be run grows with the file."""
    text = _lines(
        10,
        "def work@(x):\n"
        + "    x = x\n" * 60
        + "    return x\n\n\ndef start@():\n    x = torch.ones(3, requires_grad=True)\n"
        + "    x = work@(x)\n" * 40
        + "    x.numpy()\n\n\n",
    )
    analysis = analyze(Source("long.py", _HEAD + text))
    assert () == analysis.facts.limits
    assert 10 == len(analysis.diagnostics)


def test_tuples_in_tuples_that_may_be_any_of_several_do_not_grow_without_end() -> None:
    value: Value = join(Ref(2), Tuple((Ref(2), Ref(2))))
    for _ in range(60):
        value = join(value, Tuple((value, value)))
    assert value == join(value, Tuple((value, value)))


@pytest.mark.parametrize("word", ["break", "continue"])
@pytest.mark.parametrize(
    "around",
    ["@", "if w:\n    @", "def f():\n    @\nf()", "class A:\n    @", "for i in w:\n    pass\nelse:\n    @"],
    ids=["module", "branch", "function", "class", "after a loop"],
)
def test_what_leaves_no_loop_loses_nothing(word: str, around: str) -> None:
    """Python's parser takes it, and whoever types has it for a moment."""
    text = f"{_HEAD}{around.replace('@', word)}\nw.mul_(2)\n"
    analysis = analyze(Source("file.py", text))
    assert [found.rule.name for found in analysis.diagnostics] == ["inplace-on-leaf"]
