"""`gradvet states` as a person reads it: the annotated source, and how the command ends."""

import json
import re
from pathlib import Path

import pytest

import gradvet.analysis
from states_shell import PLACE, PROGRAMS, STATE, Shell, shell

__all__ = ["shell"]  # pytest finds the fixture by its name


def comments(out: str) -> list[str]:
    """The lines that were added."""
    return [line.strip() for line in out.splitlines() if line.lstrip().startswith("#   ")]


def test_states_stand_below_the_line_where_their_expression_begins(shell: Shell) -> None:
    """As indented as it, inner expressions first, in words; the same words are not said twice."""
    shell.write(
        "import torch\n"
        "w = torch.ones(2, requires_grad=True)  # 汉字\n"
        "with torch.no_grad():\n"
        "\tv = w.view(-1)\n"
        "print(w, v, w, v)\n"
        "print((w * 2) + 1)"
    )
    status, out, errors = shell.run("program.py")
    assert (0, "") == (status, errors)
    assert """\
import torch
w = torch.ones(2, requires_grad=True)  # 汉字
#   torch.ones(2, requires_grad=True)   requires grad · leaf · grad mode on
with torch.no_grad():
    v = w.view(-1)
    #   w            requires grad · leaf · no_grad
    #   w.view(-1)   VIEW · no_grad · shares storage with w (line 4)
print(w, v, w, v)
#   w   requires grad · leaf · grad mode on
#   v   VIEW · grad mode on · shares storage with w (line 4)
print((w * 2) + 1)
#   w * 2         requires grad · not a leaf · grad_fn MulBackward0 · grad mode on
#   (w * 2) + 1   requires grad · not a leaf · grad_fn AddBackward0 · grad mode on
""" == out.replace(view := out.split("w.view(-1)   ")[1].split(" · no_grad")[0], "VIEW")
    assert "a view" in view


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_without_the_comments_it_is_the_source(path: Path, shell: Shell) -> None:
    """Nothing of it is lost, and nothing else is added but the assumptions at the end."""
    _, out, _ = shell.run(str(path))
    said = comments(out)
    lines = [line for line in out.splitlines() if line.strip() not in said]
    source = path.read_text(encoding="utf-8").expandtabs(4).splitlines()
    assert source == lines[: len(source)]
    assert all(line.startswith("# [") for line in lines[len(source) :] if line)
    assert len(said) > 10


def test_what_a_person_should_know_is_said(shell: Shell) -> None:
    """Why something is unknown, what is assumed, what shares storage; and a file cannot steer the terminal."""
    shell.write(
        "import torch\nfrom far_away import elsewhere\n"
        "def f(x: torch.Tensor):\n    y = x * 2  # \x1b[31m\n    return y.numpy(), elsewhere\n"
        "net = torch.nn.Linear(2, 2)\nprint(net.weight.detach().numpy(), net)\n"
    )
    _, out, _ = shell.run("program.py")
    assert "\x1b" not in out
    assert "#   elsewhere   unknown: `far_away.elsewhere`, which is not in this file" in out
    assert "#   x * 2   may require grad · may be a leaf · grad_fn MulBackward0 or None · grad mode on" in out
    assert " · assuming [1]\n" in out
    assert out.endswith("\n# [1] assuming that the caller, which is not in this file, leaves grad mode on\n")
    assert "a numpy array · shares storage with net.weight (line 7)" in out
    assert re.search(r"\n#   net +a module\n", out)
    assert re.search(r"\n#   net\.weight +requires grad · leaf · grad mode on\n", out)


# -- exit statuses


def test_a_file_that_is_not_there_is_exit_status_2(shell: Shell) -> None:
    """So are a folder and a file that is no text; nothing is printed but the reason."""
    (shell.folder / "folder.py").mkdir()
    (shell.folder / "bytes.py").write_bytes(b"x = '\xff'\n")
    for name, reason in (
        ("absent.py", "No such file or directory"),
        ("folder.py", "cannot be read"),
        ("bytes.py", "is not UTF-8"),
    ):
        for form in ("text", "json"):
            status, out, errors = shell.run(name, "--output-format", form)
            assert (2, "") == (status, out)
            assert errors.startswith(f"gradvet: {name}: ")
            assert reason in errors


def test_a_file_has_to_be_named(shell: Shell) -> None:
    status, out, errors = shell.run()
    assert (2, "") == (status, out)
    assert "FILE" in errors


def test_what_does_not_parse_is_left_out(shell: Shell) -> None:
    """The rest is told in its right places, with exit status 1 and the reason on standard error."""
    shell.write("import torch\ndef f():\n    x = '🔥' +\nprint(torch.ones(2))\n")
    status, out, errors = shell.run("program.py", "--output-format", "json")
    assert 1 == status
    assert [(4, "torch.ones(2)")] == [
        (about["line"], about["text"]) for about in json.loads(out) if about["kind"] == "tensor"
    ]
    assert errors.startswith("gradvet: program.py:3:")
    status, out, _ = shell.run("program.py")
    assert (1, True) == (status, "    x = '🔥' +\n" in out)


def test_a_dry_run_that_fails_is_exit_status_2(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is printed but the reason."""
    monkeypatch.setattr(gradvet.analysis, "run", lambda _module, **_how: 1 // 0)
    shell.write("import torch\n")
    status, out, errors = shell.run("program.py")
    assert (2, "") == (status, out)
    assert errors == (
        f"gradvet: the dry run of {shell.folder / 'program.py'} failed; it has no states "
        "(ZeroDivisionError('integer division or modulo by zero'))\n"
    )


def test_a_bound_that_was_reached_is_told(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The states up to there are printed."""
    monkeypatch.setattr("gradvet.autograd.machine.MOST_STEPS", 3)
    shell.write("import torch\nx = torch.ones(1)\nprint(x)\nprint(x)\n")
    status, out, errors = shell.run("program.py")
    assert 0 == status
    assert "#   torch.ones(1)   " in out
    assert errors == (
        "gradvet: program.py: a part of the run was stopped after 3 statements; "
        "states that rest on it may be incomplete\n"
    )


def test_help_explains_the_keys(shell: Shell) -> None:
    """Every one of them."""
    status, out, _ = shell.run("--help")
    assert 0 == status
    assert [] == [key for key in PLACE + STATE if key not in out]


def test_an_empty_file_has_no_states(shell: Shell) -> None:
    shell.write("")
    assert (0, "[]\n", "") == shell.run("program.py", "--output-format", "json")
    assert (0, "", "") == shell.run("program.py")
