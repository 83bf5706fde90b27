"""Modules of a project that import one another: what is found in one of them because of the others."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gradvet import cli
from gradvet.analysis import Analysis, analyze
from gradvet.autograd.python.calls import MOST_STEPS_OF_A_DECORATOR
from gradvet.autograd.python.imports import MOST_MODULES, MOST_STEPS_OF_IMPORTS
from gradvet.cli.work import Job, work
from gradvet.config import Config
from gradvet.project import reader
from gradvet.syntax.packages import Packages, seen_from
from gradvet.text import Source, apply
from gradvet.views import hover

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x)
"""
METER = """\
class Meter:
    def __init__(self):
        self.total = 0.0
        self.values = []

    def update(self, value):
        self.total += value
        self.values.append(value)
"""
TRAIN = """\
import torch
{imports}
model = {net}()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
meter = {meter}()
for _ in range(10):
    loss = model(torch.randn(4, 3)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.update(loss)
"""
LEAK = [("meter.update(loss)", "graph-retained")]


def looked_at(files: Mapping[str, str], path: str = "train.py") -> Analysis:
    """The analysis of one file of a project."""
    return analyze(Source(path, files[path]), Config(), files.get)


def told(analysis: Analysis) -> list[tuple[str, str]]:
    """The line and the rule of each finding."""
    source = analysis.source
    return [
        (source.line(source.row_column(found.span.start)[0]).strip(), found.rule.name)
        for found in analysis.diagnostics
    ]


def train(imports: str, net: str = "Net", meter: str = "Meter") -> str:
    """A training script that gets its model and its meter from elsewhere."""
    return TRAIN.format(imports=imports, net=net, meter=meter)


PROJECTS: dict[str, tuple[str, dict[str, str]]] = {
    "beside": (
        "train.py",
        {"train.py": train("from net import Net\nfrom meters import Meter"), "net.py": NET, "meters.py": METER},
    ),
    "modules": (
        "train.py",
        {"train.py": train("import net\nimport meters as m", "net.Net", "m.Meter"), "net.py": NET, "meters.py": METER},
    ),
    "other names": (
        "train.py",
        {"train.py": train("from net import Net as A\nfrom meters import Meter as B", "A", "B"), "net.py": NET, "meters.py": METER},
    ),
    "folders without a file of their own": (
        "train.py",
        {
            "train.py": train("from models.net import Net\nimport tools.meters", meter="tools.meters.Meter"),
            "models/net.py": NET,
            "tools/meters.py": METER,
        },
    ),
    "a module taken from a folder": (
        "train.py",
        {
            "train.py": train("from models import net\nfrom tools import meters as 计", "net.Net", "计.Meter"),
            "models/net.py": NET,
            "tools/meters.py": METER,
        },
    ),
    "a package that passes names on": (
        "train.py",
        {
            "train.py": train("from parts import Net, Meter"),
            "parts/__init__.py": "from .net import Net\nfrom .tools import *\n",
            "parts/net.py": NET,
            "parts/tools/__init__.py": "from .meters import Meter as Meter\n",
            "parts/tools/meters.py": METER,
        },
    ),
    "a module of a package by way of the package": (
        "train.py",
        {
            "train.py": train("import parts\nimport parts.tools.meters", "parts.net.Net", "parts.tools.meters.Meter"),
            "parts/__init__.py": "from . import net\n",
            "parts/net.py": NET,
            "parts/tools/__init__.py": "",
            "parts/tools/meters.py": METER,
        },
    ),
    "relative": (
        "app/train.py",
        {
            "app/train.py": train("from .net import Net\nfrom . import meters", meter="meters.Meter"),
            "app/__init__.py": "",
            "app/net.py": NET,
            "app/meters.py": METER,
        },
    ),
    "relative, further up": (
        "app/jobs/run/train.py",
        {
            "app/jobs/run/train.py": train("from ...models.net import Net\nfrom .. import meters", meter="meters.Meter"),
            "app/jobs/__init__.py": "",
            "app/models/net.py": NET,
            "app/jobs/meters.py": METER,
        },
    ),
    "absolute, from within the package": (
        "/w/app/jobs/train.py",
        {
            "/w/app/jobs/train.py": train("from app.models.net import Net\nfrom app.jobs.meters import Meter"),
            "/w/app/__init__.py": "",
            "/w/app/jobs/__init__.py": "",
            "/w/app/models/__init__.py": "",
            "/w/app/models/net.py": NET,
            "/w/app/jobs/meters.py": METER,
        },
    ),
    "a script beside a src folder": (
        "/w/scripts/train.py",
        {
            "/w/scripts/train.py": train("from app.net import Net\nfrom app.meters import Meter"),
            "/w/src/app/__init__.py": "",
            "/w/src/app/net.py": NET,
            "/w/src/app/meters.py": METER,
        },
    ),
    "a script in a package": (
        "app/train.py",
        {
            "app/train.py": train("from net import Net\nfrom meters import Meter"),
            "app/__init__.py": "",
            "app/net.py": NET,
            "app/meters.py": METER,
        },
    ),
    "a star": (
        "train.py",
        {
            "train.py": train("from net import *\nfrom meters import *"),
            "net.py": NET,
            "meters.py": f"__all__ = ['Meter']\n{METER}def torch(): pass\n",
        },
    ),
    "a star that passes on a star": (
        "train.py",
        {
            "train.py": train("from everything import *").replace("import torch\n", "").replace("torch.randn", "randn").replace("torch.optim", "optim"),
            "everything.py": "from torch import *\nfrom torch import optim\nfrom net import *\nfrom meters import *\n",
            "net.py": NET,
            "meters.py": METER,
        },
    ),
    "on a condition": (
        "train.py",
        {
            "train.py": train("try:\n    from net import Net\nexcept ImportError:\n    Net = None\nif torch.cuda.is_available():\n    from meters import Meter"),
            "net.py": NET,
            "meters.py": METER,
        },
    ),
    "inside a function": (
        "train.py",
        {
            "train.py": train("def make():\n    from net import Net\n    from meters import Meter\n    return Net(), Meter()", "make()[0].__class__", "make()[1].__class__"),
            "net.py": NET,
            "meters.py": METER,
        },
    ),
    "in circles": (
        "train.py",
        {
            "train.py": train("import net\nfrom meters import Meter", "net.Net"),
            "net.py": f"import meters\nimport train\nfrom meters import *\n{NET}",
            "meters.py": f"import net\nfrom net import Net\nfrom train import model\n{METER}",
        },
    ),
    "in a circle that needs what is not there yet": (
        "train.py",
        {
            "train.py": f"import torch\nfrom torch import nn\nclass Base(nn.Module):\n    pass\n{train('from parts import Net, Meter')}",
            "parts.py": "from meters import Meter\n" + NET.replace("nn.Module", "Base").replace("import torch\n", "import torch\nfrom train import Base\n"),
            "meters.py": METER,
        },
    ),
    "through a base class": (
        "train.py",
        {
            "train.py": train("from net import Net as Base\nfrom meters import Meter\nclass Net(Base):\n    def forward(self, x):\n        return super().forward(x) * 2"),
            "net.py": NET,
            "meters.py": METER,
        },
    ),
    "names that are taken twice": (
        "train.py",
        {
            "train.py": train("from net import Net\nfrom meters import Meter\ndef update(value): return value.detach()"),
            "net.py": NET,
            "meters.py": "def keep(value): return value\n" + METER.replace("+= value", "+= keep(value)") + "class Net: pass\n",
        },
    ),
    "a package before a module": (
        "train.py",
        {
            "train.py": train("from net import Net\nfrom meters import Meter"),
            "net.py": "Net = None\n",
            "net/__init__.py": NET,
            "meters.py": METER,
        },
    ),
    "a part that does not parse": (
        "train.py",
        {
            "train.py": train("from net import Net\nfrom meters import Meter"),
            "net.py": f"{NET}\ndef broken(:\n    pass\n",
            "meters.py": f"x = (\n\n{METER}",
        },
    ),
    "wide characters": (
        "训练/😋.py",
        {
            "训练/😋.py": train("from 模型 import Net; from meters import Meter  # 😋").replace("    meter.update", "    '😋漢é'; meter.update"),
            "训练/模型.py": f"# 😋漢é\n{NET}",
            "训练/meters.py": f"'''😋漢é'''\n{METER}",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROJECTS)
def test_a_meter_of_another_module_keeps_a_graph(name: str) -> None:
    """The finding stands at the call that hands the graph over, and its fix makes it go away."""
    path, files = PROJECTS[name]
    analysis = looked_at(files, path)
    line = analysis.source.text.splitlines()[-1].strip()
    assert [(line, "graph-retained")] == told(analysis)
    (found,) = analysis.diagnostics
    safe = found.fixes[0]
    fixed = apply(analysis.source.text, analysis.edits(safe))
    assert fixed == analysis.source.text.replace("meter.update(loss)", "meter.update(loss.detach())")
    assert [] == told(looked_at({**files, path: fixed}, path))


@pytest.mark.parametrize("name", PROJECTS)
def test_without_the_other_modules_nothing_is_known(name: str) -> None:
    """So that the test above proves something."""
    path, files = PROJECTS[name]
    assert [] == told(looked_at({path: files[path]}, path))
    assert [] == told(analyze(Source(path, files[path])))


@pytest.mark.parametrize("name", PROJECTS)
def test_the_other_modules_hide_nothing_and_add_nothing(name: str) -> None:
    """Nothing that happens in another module is told in this one."""
    _, files = PROJECTS[name]
    for path, text in files.items():
        if "meter.update" not in text:
            assert told(looked_at(files, path)) == told(analyze(Source(path, text))), path


def test_the_answer_tells_which_files_it_rests_on() -> None:
    """Those that are there and those that are not, but never packages that everybody knows."""
    files = {
        "a/train.py": "import torch, numpy, os\nfrom net import Net\nfrom .gone import x\n",
        "a/net.py": NET,
    }
    analysis = looked_at(files, "a/train.py")
    assert {"a/net.py", "a/net/__init__.py", "a/gone.py", "a/gone/__init__.py"} <= analysis.read_paths
    assert not [path for path in analysis.read_paths if any(w in path for w in ("torch", "numpy", "os"))]


@pytest.mark.parametrize("name", ["torch", "numpy", "random", "math", "collections", "timm", "lightning"])
def test_a_well_known_package_is_never_looked_for(name: str) -> None:
    """Not even where the project has a file of its name."""
    asked: list[str] = []

    def read(path: str) -> str | None:
        asked.append(path)
        return "def ones(*_, **__): return None\n"

    text = (
        f"import torch\nimport {name}\nfrom {name} import *\nimport {name}.x as y\nfrom {name} import ones\n"
    )
    analyze(Source("train.py", text), Config(), read)
    assert [] == [path for path in asked if path != "__init__.py"]


UPDATES = [
    ("self.total = self.total + value", True),
    ("self.total = 0.9 * self.total + 0.1 * value", True),
    ("self.values += [value]", True),
    ("self.values.append((1, value))", True),
    ("self.total = value", False),
    ("self.total = self.total + value.item()", False),
    ("self.values.append(float(value))", False),
]


@pytest.mark.parametrize(("update", "leaks"), UPDATES)
def test_what_a_meter_does_with_a_value_decides(update: str, leaks: bool) -> None:
    """As it would in one file."""
    meter = METER.partition("        self.total +=")[0] + f"        {update}\n"
    files = {
        "train.py": train("from net import Net\nfrom meters import Meter"),
        "net.py": NET,
        "meters.py": meter,
    }
    found = told(looked_at(files))
    if "0.9" in update:  # an average that keeps every graph has a rule of its own
        assert [("meter.update(loss)", "running-average-with-graph")] == found
    else:
        assert LEAK * leaks == found


LOSS_MODULE = """\
import torch.nn.functional as F

def loss_of(model, x, y):
    scores = model(x)
    return F.mse_loss(scores, y)

class Step:
    last = []

    def __call__(self, model, x, y):
        loss = loss_of(model, x, y)
        return {"loss": loss, "size": len(x)}
"""
LOOP = """\
import torch
from net import Net
from losses import Step, loss_of
model, step, history = Net(), Step(), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader([]):
    optimizer.zero_grad()
    {body}
    optimizer.step()
"""
LOOPS = [
    ("loss = loss_of(model, x, y); loss.backward(); history.append(loss)", True),
    ("loss = loss_of(model, x, y); loss.backward(); history.append(loss.item())", False),
    ("out = step(model, x, y); out['loss'].backward(); history.append(out['loss'])", True),
    ("out = step(model, x, y); out['loss'].backward(); history.append(out)", True),
    ("out = step(model, x, y); out['loss'].backward(); history.append(out['size'])", False),
]


@pytest.mark.parametrize(("body", "leaks"), LOOPS)
def test_what_another_module_returns_is_known(body: str, leaks: bool) -> None:
    """Its graph too."""
    files = {"train.py": LOOP.format(body=body), "net.py": NET, "losses.py": LOSS_MODULE}
    assert [(body, "graph-retained")] * leaks == told(looked_at(files))


def test_reasons_in_other_modules_name_them() -> None:
    """They have no place in this text: the words say where they are."""
    files = {
        "jobs/train.py": train("from net import Net\nfrom meters import Meter"),
        "models/__init__.py": "",
        "jobs/net.py": f"# 😋\n{NET}",
        "jobs/meters.py": METER,
    }
    (found,) = looked_at(files, "jobs/train.py").diagnostics
    notes = [(note.text, note.span is None) for note in found.notes]
    assert ("`self.layer(x)` line 12 of net.py", True) in notes
    assert any("model(torch.randn(4, 3)).pow(2).mean()" in text and not apart for text, apart in notes)


def test_a_hover_tells_reasons_in_other_modules() -> None:
    """And has nothing to say of expressions that stand at the same place in them."""
    files = {
        "train.py": train("from net import Net\nfrom meters import Meter"),
        "net.py": NET,
        "meters.py": METER,
    }
    analysis = looked_at(files)
    text = analysis.source.text
    shown = hover(analysis, text.index("loss ="))
    assert shown is not None
    assert "line 11 of net.py" in shown.markdown
    spoken_of = hover(analysis, text.index("meter.update") + 1)
    assert spoken_of is not None  # the finding alone: a meter is no tensor
    assert "requires grad ·" not in spoken_of.markdown


def test_a_fix_never_changes_this_text_for_another() -> None:
    """Where the cause stands elsewhere, the finding has no fix."""
    files = {
        "train.py": "import torch\nfrom tools import peek\nw = torch.ones(3, requires_grad=True)\nh = w * 2\nout = h.exp()\n"
        "shown = peek(out)\nshown.add_(1)\nout.sum().backward()\n",
        "tools.py": "def peek(x):\n    return x.detach()\n",
    }
    (found,) = looked_at(files).diagnostics
    assert "detached-alias-edited" == found.rule.name
    assert () == found.fixes
    assert "line 2 of tools.py" in "\n".join(note.text for note in found.notes)
    together = files["tools.py"] + files["train.py"].replace("from tools import peek\n", "")
    (same,) = analyze(Source("x.py", together)).diagnostics
    assert same.message == found.message
    assert same.fixes


def test_a_main_guard_of_another_module_stays_shut() -> None:
    """Only the module that is analysed is run as the main one."""
    files = {
        "train.py": "import torch\nimport other\nx = torch.ones(3, requires_grad=True)\nother.show(x)\n"
        "if __name__ == '__main__':\n    x.numpy()\n",
        "other.py": "def show(x): pass\nif __name__ == '__main__':\n    def show(x): x.requires_grad_(False)\n",
    }
    assert [("x.numpy()", "numpy-on-grad")] == told(looked_at(files))


def test_constants_of_another_module_decide() -> None:
    """Names are bound to what the other module's body leaves there, and each module has globals of its own."""
    config = "DETACH = True\ndef switch():\n    global DETACH\n    DETACH = False\nEXIT = {exit}\n"
    body = (
        "import torch\nimport config\nDETACH = False\nx = torch.ones(3, requires_grad=True)\n{more}"
        "y = x.detach() if config.DETACH else x\ny.numpy()\n"
    )
    told_of = {
        more: told(looked_at({"train.py": body.format(more=more), "config.py": config}))
        for more in (
            "",
            "config.switch()\n",
            "config.DETACH = False\n",
            "from config import switch\nswitch()\n",
        )
    }
    raises = [("y.numpy()", "numpy-on-grad")]
    assert [[], raises, raises, raises] == list(told_of.values())


def test_a_module_is_run_once() -> None:
    """However often and by whatever name it is imported: they all see the same objects."""
    files = {
        "app/train.py": "import torch\nfrom . import state\nimport app.state as again\nfrom .state import weight\n"
        "again.weight.requires_grad_()\nstate.weight.numpy()\nweight.numpy()\n",
        "app/__init__.py": "from .state import *\n",
        "app/state.py": "import torch\nweight = torch.ones(3)\n",
    }
    assert ["state.weight.numpy()", "weight.numpy()"] == [
        line for line, _ in told(looked_at(files, "app/train.py"))
    ]


def test_an_import_on_one_branch_is_known_on_the_other() -> None:
    """What was run on a branch that was left is not lost."""
    files = {
        "train.py": "import torch\nimport sys\nif sys.argv:\n    import state\n    w = state.weight\nelse:\n"
        "    from state import weight as w\nw.numpy()\n",
        "state.py": "import torch\nweight = torch.ones(3, requires_grad=True)\n",
    }
    assert [("w.numpy()", "numpy-on-grad")] == told(looked_at(files))


def test_an_import_in_a_loop_makes_nothing_anew() -> None:
    """A module outlives the iteration in which it is first imported."""
    files = {
        "train.py": "import torch\nw = torch.ones(3, requires_grad=True)\nfor _ in range(9):\n    from state import seen\n"
        "    loss = (w * 2).sum()\n    loss.backward()\n    seen.append(loss)\n",
        "state.py": "seen = []\n",
    }
    assert [("seen.append(loss)", "graph-retained")] == told(looked_at(files))


def test_a_file_without_the_word_is_run_for_those_that_it_imports() -> None:
    """A loop need not speak of torch itself."""
    files = {
        "main.py": "from engine import step, model\nlosses = []\nfor batch in range(9):\n    losses.append(step(model, batch))\n",
        "engine.py": "import torch\nmodel = torch.nn.Linear(1, 1)\ndef step(model, batch):\n"
        "    loss = model(torch.ones(1)).sum()\n    loss.backward()\n    return loss\n",
        "plain.py": "import json\nfrom helpers import step\nlosses = [step(json)]\n",
        "helpers.py": "def step(x): return x\n",
    }
    assert [("losses.append(step(model, batch))", "graph-retained")] == told(looked_at(files, "main.py"))
    assert 0 == len(looked_at(files, "plain.py").facts.imported)


def test_functions_that_nobody_calls_are_run_only_in_the_module_itself() -> None:
    """The others are analysed when it is their turn."""
    unused = "import torch\ndef unused():\n    torch.ones(3, requires_grad=True).numpy()\n"
    files = {"train.py": f"import other\n{unused}", "other.py": unused}
    assert 1 == len(looked_at(files, "train.py").diagnostics)
    assert 1 == len([e for e in looked_at(files, "train.py").facts.events if type(e).__name__ == "ToNumpy"])


def test_a_module_that_fails_halfway_has_what_came_before() -> None:
    """Names that it lacks are as unknown as those of a module that is not there."""
    files = {
        "train.py": "import torch\nfrom other import weight, later, gone\nweight.numpy()\nlater.numpy()\ngone.numpy()\n",
        "other.py": "import torch\nweight = torch.ones(3, requires_grad=True)\nraise SystemExit\nlater = weight\n",
    }
    assert [("weight.numpy()", "numpy-on-grad")] == told(looked_at(files))


def test_too_many_modules_end_somewhere() -> None:
    """What was followed till then is known, and the bound is told."""
    files = {f"m{n}.py": f"import torch\nfrom m{n + 1} import x\nx{n} = x\n" for n in range(1000)}
    files |= {"train.py": "import torch\n" + "".join(f"from m{n} import x{n}\n" for n in range(0, 1000, 2))}
    analysis = looked_at(files)
    assert len(analysis.facts.imported) <= MOST_MODULES
    assert any("too many" in limit for limit in analysis.facts.limits)


def test_a_module_that_does_too_much_ends_somewhere() -> None:
    """It takes nothing of what the module that is analysed may do."""
    work = "x = 0\n" + "x = x + 1\n" * (MOST_STEPS_OF_IMPORTS + 1)
    files = {
        "train.py": "import torch\nfrom busy import weight, x\nweight.numpy()\ntorch.ones(3, requires_grad=True).numpy()\n",
        "busy.py": f"import torch\nweight = torch.ones(3, requires_grad=True)\n{work}",
    }
    analysis = looked_at(files)
    assert 2 == len(analysis.diagnostics)
    assert any("`busy`" in limit for limit in analysis.facts.limits)


@pytest.mark.parametrize("work", [3, MOST_STEPS_OF_A_DECORATOR + 1], ids=["short", "long"])
def test_a_decorator_of_another_module_gives_back_what_it_documents(work: int) -> None:
    """Also when it takes so long that it is not followed to its end, which is told."""
    files = {
        "docs.py": "def documented(thing):\n    words = ''\n"
        + "    words += 'x'\n" * work
        + "    return thing\n",
        "train.py": (
            "import torch\nfrom docs import documented\n\n@documented\nclass Net(torch.nn.Linear):\n    @documented\n"
            "    def score(self, x):\n        return self(x).sum()\n\n"
            "net = Net(3, 1)\nscores = []\nfor _ in range(9):\n    score = net.score(torch.ones(3))\n"
            "    score.backward()\n    scores.append(score)\n"
        ),
    }
    analysis = looked_at(files)
    assert [("scores.append(score)", "graph-retained")] == told(analysis)
    assert any("decorator" in limit for limit in analysis.facts.limits) == (work > MOST_STEPS_OF_A_DECORATOR)


def test_endless_recursion_in_another_module_ends() -> None:
    """And costs no finding before it."""
    files = {
        "train.py": "import torch\ntorch.ones(3, requires_grad=True).numpy()\nfrom deep import f\nf(f)\n",
        "deep.py": "def f(g):\n    return [f(lambda: g(f)) for _ in (1, 2)]\nx = f(f)\n",
    }
    assert 1 == len(looked_at(files).diagnostics)


def test_threads_may_share_what_was_parsed() -> None:
    """Many analyses at once say what each says alone."""
    path, files = PROJECTS["a package that passes names on"]
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: told(looked_at(files, path)), range(24)))
    assert [LEAK] * 24 == said


def test_the_newest_text_of_another_module_counts() -> None:
    """What was parsed is kept by its text, not by its name alone."""
    path, files = PROJECTS["beside"]
    assert LEAK == told(looked_at(files, path))
    careful = METER.replace("(value)", "(value.detach())").replace("+= value", "+= value.detach()")
    assert [] == told(looked_at({**files, "meters.py": careful}, path))
    assert LEAK == told(looked_at(files, path))


@pytest.mark.parametrize(
    ("importer", "module", "level", "place"),
    [
        ("a/b/c.py", "x", 1, "a/b/x"),
        ("a/b/c.py", "x.y", 2, "a/x/y"),
        ("a/b/c.py", "", 2, "a"),
        ("a/b/c.py", "", 3, ""),
        ("a/b/c.py", "x", 4, None),
        ("/w/c.py", "x", 1, "/w/x"),
        ("a/b/c.py", "one", 0, "a/b/one"),
        ("a/b/c.py", "two", 0, "a/two"),
        ("a/b/c.py", "three.four", 0, "a/src/three/four"),
        ("a/b/c.py", "nowhere", 0, None),
        ("p/q/c.py", "p.q.d", 0, "p/q/d"),
        ("p/q/c.py", "d", 0, "p/q/d"),
    ],
)
def test_where_a_module_lies(importer: str, module: str, level: int, place: str | None) -> None:
    """As Python would find it: in the package's own folder, else around the package, upwards, and in `src`."""
    there = {
        "a/b/one.py",
        "a/two/__init__.py",
        "a/src/three/__init__.py",
        "p/__init__.py",
        "p/q/__init__.py",
        "p/q/d.py",
    }
    packages = Packages(lambda path: "" if path in there else None)
    assert place == packages.place(importer, module, level)


def test_a_path_is_told_as_seen_from_here() -> None:
    """Short where it is near."""
    assert "b.py" == seen_from("/w/x/a.py", "/w/x/b.py")
    assert "y/b.py" == seen_from("/w/x/a.py", "/w/x/y/b.py")
    assert "../y/b.py" == seen_from("/w/x/a.py", "/w/y/b.py")
    assert "b.py" == seen_from("a.py", "b.py")


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """A project on the disk."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


APP = {
    "app/src/parts/__init__.py": "",
    "app/src/parts/net.py": NET,
    "app/src/parts/meters.py": f"# 😋\n{METER}",
    "app/scripts/train.py": train("from parts.net import Net\nfrom parts.meters import Meter"),
}


@pytest.mark.parametrize(
    ("folder", "path"), [(".", "app"), ("app/scripts", "train.py"), ("app/src", "../scripts")]
)
def test_the_command_line_reads_the_modules_of_the_project(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: str,
    path: str,
) -> None:
    """From wherever it is called, and `--fix` changes the file with the finding alone."""
    monkeypatch.chdir(written(tmp_path, {**APP, "app/pyproject.toml": ""}) / folder)

    def run(*arguments: str) -> tuple[int, list[str]]:
        status = cli.main(("check", "--output-format", "concise", path, *arguments), serve=lambda: None)
        return status, [line for line in capsys.readouterr().out.splitlines() if "[" in line]

    status, (line,) = run()
    assert 1 == status
    assert "train.py:12:5: warning[graph-retained] " in line
    assert (0, []) == run("--fix")
    script = (tmp_path / "app/scripts/train.py").read_text(encoding="utf-8")
    assert script == APP["app/scripts/train.py"].replace("(loss)", "(loss.detach())")
    assert APP["app/src/parts/meters.py"] == (tmp_path / "app/src/parts/meters.py").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("marks", "leaks"),
    [
        ([], False),
        (["app/setup.py"], True),
        (["app/.git/HEAD"], True),
        (["app/scripts/pyproject.toml"], False),
    ],
)
def test_a_project_ends_where_its_folder_ends(tmp_path: Path, marks: list[str], leaks: bool) -> None:
    """Without any sign of a project, it is the folder that the file's package lies in."""
    written(tmp_path, {**APP, **dict.fromkeys(marks, "")})
    report = work(Job(tmp_path / "app/scripts/train.py", Config()))
    assert ["graph-retained"] * leaks == [entry.code for entry in report.entries]


def test_a_reader_keeps_to_the_project(tmp_path: Path) -> None:
    """Nothing outside, nothing hidden, no installed package; what is no text is not there."""
    written(
        tmp_path,
        {
            "app/pyproject.toml": "",
            "app/a.py": "a",
            "app/.venv/x.py": "x",
            "app/v/site-packages/x.py": "x",
            "b.py": "b",
        },
    )
    (tmp_path / "app" / "latin.py").write_bytes(b"x = '\xe9'\n")
    root = tmp_path.as_posix()
    read = reader(tmp_path / "app/train.py", {f"{root}/app/new.py": "new", f"{root}/c.py": "c"})
    names = (
        "app/a.py",
        "app/new.py",
        "app/gone.py",
        "app",
        "app/latin.py",
        "app/.venv/x.py",
        "app/v/site-packages/x.py",
        "b.py",
        "c.py",
    )
    assert ["a", "new", *[None] * 7] == [read(f"{root}/{name}") for name in names]


def test_an_installed_package_reads_only_itself(tmp_path: Path) -> None:
    """Its neighbours are not its project."""
    written(tmp_path, {"lib/site-packages/one/a.py": "a", "lib/site-packages/two/b.py": "b"})
    folder = f"{tmp_path.as_posix()}/lib/site-packages"
    read = reader(tmp_path / "lib/site-packages/one/a.py")
    assert ["a", None] == [read(f"{folder}/one/a.py"), read(f"{folder}/two/b.py")]
