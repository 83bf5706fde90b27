"""The command line as a person or a script meets it: real files, real rules, real exit statuses."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gradvet.cli.work
from gradvet import __version__, cli
from gradvet.analysis import analyze
from gradvet.autograd.run import run
from gradvet.rules import all_rules
from gradvet.text import Source

FAULT = """\
import torch

weight = torch.ones(3, requires_grad=True)
doubled = weight * 2  # 🔥
print("汉字", doubled.numpy())
"""
FIXED = FAULT.replace("doubled.numpy()", "doubled.detach().numpy()")
CLEAN = "import torch\n\nprint(torch.ones(3).numpy())\n"
INFO = """\
import torch

weight = torch.ones(3, requires_grad=True)
print(weight.data)
"""
UNSAFE = """\
import torch


def predict(model, batches):
    model.eval()
    return [model(batch).argmax(1) for batch in batches]


model = torch.nn.Linear(3, 2)
print(predict(model, [torch.randn(4, 3)]))
"""


def serve() -> None:
    """No test here asks for a server."""
    pytest.fail("the server was started")


class Shell:
    """A folder with files, and the command line run in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def write(self, **files: str) -> None:
        """Put a text in each of some files of a name and `.py`."""
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status, output and errors of `gradvet` with these arguments."""
        try:
            status = cli.main(arguments, serve=serve)
        except SystemExit as end:
            status = int(end.code or 0)
        return status, *self._capsys.readouterr()

    def found(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        """Exit status and findings of `gradvet check` in JSON."""
        status, out, _ = self.run("check", "--output-format", "json", *arguments)
        return status, json.loads(out)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A shell in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


def test_the_programs_here_have_the_findings_that_they_should() -> None:
    """Else the tests below would prove nothing."""
    found = {
        text: [(item.rule.name, item.severity.value) for item in analyze(Source("x.py", text)).diagnostics]
        for text in (FAULT, FIXED, CLEAN, INFO, UNSAFE)
    }
    assert [("numpy-on-grad", "error")] == found[FAULT]
    assert [("data-attribute", "info")] == found[INFO]
    assert [("eval-with-grad", "warning")] == found[UNSAFE]
    assert [] == found[CLEAN] == found[FIXED]


def test_findings_are_shown_with_place_and_summary(shell: Shell) -> None:
    """Columns count characters, the marker stands under its place; exit status 1."""
    shell.write(fault=FAULT, clean=CLEAN)
    status, out, errors = shell.run("check", ".")
    lines = out.splitlines()
    assert 1 == status
    assert lines[0].startswith("fault.py:5:13: error[numpy-on-grad] ")
    assert '    5 | print("汉字", doubled.numpy())' in lines
    assert "      |               ^^^^^^^^^^^^^^^" in lines
    assert "Found 1 error in 1 file (2 files checked). 1 fix is safe: --fix" == lines[-1]
    assert "" == errors


def test_clean_files_are_exit_status_0(shell: Shell) -> None:
    """And are said to be clean."""
    shell.write(clean=CLEAN)
    assert (0, "No findings (1 file checked).\n", "") == shell.run("check")


def test_an_info_is_shown_but_is_exit_status_0(shell: Shell) -> None:
    """It is a better habit, not a fault."""
    shell.write(info=INFO)
    status, out, _ = shell.run("check")
    assert 0 == status
    assert "info.py:4:7: info[data-attribute]" in out


def test_exit_zero_is_exit_zero(shell: Shell) -> None:
    """But not when something could not be checked."""
    shell.write(fault=FAULT)
    assert 0 == shell.run("check", "--exit-zero")[0]
    assert 2 == shell.run("check", "--exit-zero", "nowhere")[0]


def test_json_has_the_shape_of_ruff(shell: Shell) -> None:
    """With severity, reasons, and all the fixes beside the first."""
    shell.write(fault=FAULT)
    status, (row,) = shell.found("--no-cache", "fault.py")
    assert 1 == status
    assert "numpy-on-grad" == row["code"]
    assert str(shell.folder / "fault.py") == row["filename"]
    assert {"row": 5, "column": 13} == row["location"]
    assert {"row": 5, "column": 28} == row["end_location"]
    assert row["url"].endswith("/rules/numpy_on_grad.md")
    assert "error" == row["severity"]
    assert row["message"]
    fix = row["fixes"][0]
    assert fix == row["fix"]
    assert "safe" == fix["applicability"]
    place = {"row": 5, "column": 20}
    assert [{"content": ".detach()", "location": place, "end_location": place}] == fix["edits"]
    assert {"row": 4, "column": 11} in [note["location"] for note in row["related"]]
    assert all({"label", "message", "location", "end_location"} == set(note) for note in row["related"])


def test_json_works_out_unsafe_fixes_too(shell: Shell) -> None:
    """So that a script can apply them."""
    shell.write(unsafe=UNSAFE)
    _, (row,) = shell.found()
    assert {"unsafe"} == {fix["applicability"] for fix in row["fixes"]}
    assert all(fix["edits"] for fix in row["fixes"])


def test_json_of_nothing_is_an_empty_array(shell: Shell) -> None:
    """Never nothing at all."""
    shell.write(clean=CLEAN)
    assert (0, []) == shell.found()


def test_a_concise_finding_takes_one_line(shell: Shell) -> None:
    """For scripts that read lines."""
    shell.write(fault=FAULT, info=INFO)
    status, out, _ = shell.run("check", "--output-format", "concise")
    assert 1 == status
    assert [True, True, False] == [
        bool(re.match(r"\w+\.py:\d+:\d+: \w+\[[\w-]+\] ", line)) for line in out.splitlines()
    ]


def test_a_syntax_error_is_a_finding(shell: Shell) -> None:
    """The rest of the file is checked."""
    shell.write(fault=FAULT + "x = (\n")
    status, rows = shell.found()
    assert 1 == status
    assert [("numpy-on-grad", 5), ("syntax-error", 6)] == [
        (row["code"], row["location"]["row"]) for row in rows
    ]
    assert [None, "error"] == [rows[1]["url"], rows[1]["severity"]]
    assert "'(' was never closed" in rows[1]["message"]


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (["--select", "numpy-on-grad"], ["numpy-on-grad"]),
        (["--select", "exit,alias"], ["numpy-on-grad", "data-attribute"]),
        (["--select", "exit", "--select", "alias"], ["numpy-on-grad", "data-attribute"]),
        (["--ignore", "exit"], ["data-attribute"]),
        (["--select", "exit", "--ignore", "numpy-on-grad"], []),
        (["--select", "exit", "--ignore", ""], ["numpy-on-grad"]),
        ([], ["data-attribute"]),
    ],
)
def test_rules_can_be_chosen(shell: Shell, arguments: list[str], codes: list[str]) -> None:
    """On the command line, else by the settings."""
    (shell.folder / "pyproject.toml").write_text('[tool.gradvet]\nselect = ["alias"]\n')
    shell.write(fault=FAULT, info=INFO)
    if arguments and "--select" not in arguments:
        arguments = ["--select", "exit,alias", *arguments]
    _, rows = shell.found(*arguments)
    assert codes == [row["code"] for row in rows]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (
            ["--select", "numpy-on-grat"],
            "--select names `numpy-on-grat`, which is neither a rule nor a family; did you mean `numpy-on-grad`?",
        ),
        (
            ["--ignore", "leek"],
            "--ignore names `leek`, which is neither a rule nor a family; did you mean `leak`?",
        ),
        (["--output-format", "xml"], "invalid choice: 'xml'"),
        (["--jobs", "0"], "expected a whole number from 1, not '0'"),
        (["--jobs", "-1"], "expected a whole number from 1, not '-1'"),
        (["-j", "many"], "expected a whole number from 1, not 'many'"),
        (["--select", ""], "expected names of rules or families"),
        (["--select", "leak", "--select", " , "], "expected names of rules or families"),
        (["--unsafe-fixes"], "--unsafe-fixes needs --fix, which applies them, or --diff"),
    ],
)
def test_what_cannot_be_done_is_exit_status_2(shell: Shell, arguments: list[str], said: str) -> None:
    """With a sentence on what it is."""
    status, out, errors = shell.run("check", *arguments)
    assert 2 == status
    assert "" == out
    assert said in errors


def test_bad_settings_are_exit_status_2(shell: Shell) -> None:
    """Nothing is checked with settings that may mean something else."""
    shell.write(fault=FAULT)
    (shell.folder / "gradvet.toml").write_text("select = 3\n")
    status, out, errors = shell.run("check")
    assert (2, "") == (status, out)
    assert "gradvet.toml: `select` must be a list of strings, not `3`" in errors


def test_one_bad_file_does_not_hide_the_others(shell: Shell) -> None:
    """The status says that something is missing."""
    shell.write(fault=FAULT)
    (shell.folder / "latin.py").write_bytes(b"x = '\xe9'\n")
    status, out, errors = shell.run("check", ".", "nowhere")
    assert 2 == status
    assert "fault.py:5:13" in out
    assert out.endswith("Found 1 error in 1 file (1 file checked, 1 could not be). 1 fix is safe: --fix\n")
    assert ["gradvet: nowhere: no such file or folder", "gradvet: latin.py: line 1 is not UTF-8"] == [
        line[: line.find(" (")] if " (" in line else line for line in errors.splitlines()
    ]


def test_no_files_at_all_is_told(shell: Shell) -> None:
    """It is no failure, but rarely what was meant."""
    assert (0, "", "gradvet: .: no Python files there\n") == shell.run("check")
    (shell.folder / "one").mkdir()
    (shell.folder / "two").mkdir()
    lines = "gradvet: one: no Python files there\ngradvet: two: no Python files there\n"
    assert (0, "", lines) == shell.run("check", "one", "two")


def _notebook(*sources: str) -> str:
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source.splitlines(keepends=True)}
        for source in sources
    ]
    cells.insert(1, {"cell_type": "markdown", "metadata": {}, "source": ["# import torch"]})
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


NOTEBOOK = _notebook(
    "%matplotlib inline\nimport torch\nw = torch.ones(3, requires_grad=True)",
    "%%bash\nls 'all",
    "!pip install it's\ny = w * 2\n'😋'; y.numpy()",
    "print(y",
)


def test_a_notebook_is_checked_cell_by_cell(shell: Shell) -> None:
    """With the number of the cell among all cells, and rows and columns in it."""
    (shell.folder / "nb.ipynb").write_text(NOTEBOOK)
    status, out, _ = shell.run("check", "--output-format", "concise", ".")
    assert 1 == status
    finding, broken, _ = out.splitlines()
    assert finding.startswith("nb.ipynb:cell 4:3:6: error[numpy-on-grad]")
    assert broken.startswith("nb.ipynb:cell 5:1:6: error[syntax-error]")
    _, out, _ = shell.run("check", "nb.ipynb")
    assert "    3 | '😋'; y.numpy()" in out
    assert "line 3 of cell 1" in out
    _, (row, _) = shell.found("nb.ipynb")
    assert (4, {"row": 3, "column": 6}) == (row["cell"], row["location"])
    assert 4 == row["fix"]["edits"][0]["cell"]


def test_a_notebooks_fixes_leave_the_rest_as_it_was(shell: Shell) -> None:
    """Character for character; the diff names the cell."""
    whole = NOTEBOOK.replace("print(y", "print(y)")
    path = shell.folder / "nb.ipynb"
    path.write_text(whole)
    _, out, _ = shell.run("check", "--diff", "nb.ipynb")
    assert "--- nb.ipynb:cell 4\n" in out
    assert "+'😋'; y.detach().numpy()\n" in out
    assert path.read_text() == whole
    status, _, _ = shell.run("check", "--fix", "nb.ipynb")
    assert 0 == status
    assert whole.replace("y.numpy()", "y.detach().numpy()") == path.read_text()


def test_states_of_a_notebook_name_the_cell(shell: Shell) -> None:
    """As JSON tells them."""
    (shell.folder / "nb.ipynb").write_text(NOTEBOOK.replace("print(y", "print(y)"))
    status, out, _ = shell.run("states", "--output-format", "json", "nb.ipynb")
    assert 0 == status
    assert (4, 2, "w * 2") in {(each["cell"], each["line"], each["text"]) for each in json.loads(out)}


@pytest.mark.parametrize("command", ["check", "states"])
def test_what_is_no_notebook_is_told(shell: Shell, command: str) -> None:
    """JSON would mostly parse as Python, and have no findings."""
    (shell.folder / "nb.ipynb").write_text('{"nbformat": 4}')
    status, _, errors = shell.run(command, "nb.ipynb")
    assert (2, "gradvet: nb.ipynb: not a notebook: it has no list of cells\n") == (status, errors)


@pytest.mark.parametrize("command", ["check", "states"])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such pipes")
def test_a_pipe_is_not_waited_for(shell: Shell, command: str) -> None:
    """Nobody may ever write to it."""
    os.mkfifo(shell.folder / "pipe.py")
    status, _, errors = shell.run(command, "pipe.py")
    assert (2, "gradvet: pipe.py: cannot be read: it is a pipe, a device or the like, not a file\n") == (
        status,
        errors,
    )
    assert (0, "", "gradvet: .: no Python files there\n") == shell.run("check", ".")


def test_a_link_is_reported_by_its_own_name(shell: Shell) -> None:
    """That is the name which was given."""
    (shell.folder / "in").mkdir()
    (shell.folder / "in" / "fault.py").write_text(FAULT, encoding="utf-8")
    (shell.folder / "link.py").symlink_to(Path("in", "fault.py"))
    (shell.folder / "way").symlink_to("in", target_is_directory=True)
    for given in ("link.py", str(Path("way", "fault.py")), str(Path("in", "fault.py"))):
        assert shell.run("check", given)[1].startswith(f"{given}:5:13: ")
        assert shell.run("check", str(shell.folder / given))[1].startswith(f"{given}:5:13: ")
        assert shell.run("check", "--diff", given)[1].startswith(f"--- {given}\n")


def fail(*_arguments: object) -> Any:
    """Fail as a fault of ours would."""
    message = "out of order"
    raise KeyError(message)


@pytest.mark.parametrize("verbose", [False, True])
def test_a_failure_of_our_own_is_exit_status_2(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, verbose: bool
) -> None:
    """The other files go on; `--verbose` shows where it came from."""
    shell.write(fault=FAULT, other=CLEAN)
    monkeypatch.setattr(
        gradvet.analysis,
        "run",
        lambda module, **options: fail() if "print(torch" in module.healed else run(module, **options),
    )
    status, out, errors = shell.run("check", ".", *["--verbose"][: int(verbose)])
    assert 2 == status
    assert "fault.py:5:13" in out
    assert "the dry run of other.py failed" in errors
    assert "KeyError" in errors
    assert verbose == ("Traceback" in errors)
    assert 1 == len(caplog.records)


def test_a_file_that_breaks_everything_is_exit_status_2(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even what never happens does not take the run along."""
    shell.write(fault=FAULT)
    monkeypatch.setattr(gradvet.cli.work, "analyze", fail)
    status, _, errors = shell.run("check")
    assert 2 == status
    assert "fault.py could not be checked" in errors


def test_many_files_are_checked_in_processes(shell: Shell) -> None:
    """With the same findings, in the same order."""
    for number in range(30):
        shell.write(**{f"f{number:02}": FAULT if number % 3 else CLEAN})
    alone, together = shell.run("check", "-j", "1"), shell.run("check", "-j", "2")
    assert alone == together
    assert "Found 20 errors in 20 files (30 files checked)." in alone[1]


def test_safe_fixes_are_applied(shell: Shell) -> None:
    """And what is left is told."""
    shell.write(fault=FAULT, unsafe=UNSAFE, clean=CLEAN)
    before = (shell.folder / "clean.py").stat().st_mtime_ns
    status, out, _ = shell.run("check", "--fix")
    assert 1 == status
    assert FIXED == (shell.folder / "fault.py").read_text(encoding="utf-8")
    assert UNSAFE == (shell.folder / "unsafe.py").read_text(encoding="utf-8")
    assert before == (shell.folder / "clean.py").stat().st_mtime_ns
    assert "fault.py" not in out
    assert "Fixed 1 finding in 1 file.\nFound 1 warning in 1 file (3 files checked).\n" in out
    assert 0 == shell.run("check", "--fix", "fault.py")[0]


def test_unsafe_fixes_are_applied_on_demand(shell: Shell) -> None:
    """Only with both options."""
    shell.write(unsafe=UNSAFE)
    assert 1 == shell.run("check", "--fix")[0]
    assert UNSAFE == (shell.folder / "unsafe.py").read_text(encoding="utf-8")
    status, out, _ = shell.run("check", "--fix", "--unsafe-fixes")
    assert (0, "Fixed 1 finding in 1 file.\nNo findings (1 file checked).\n") == (status, out)
    assert "no_grad()" in (shell.folder / "unsafe.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("encoding", "head"),
    [("utf-8", ""), ("utf-8-sig", ""), ("gbk", "# coding: gbk\r\n"), ("utf-8", "\f")],
)
def test_a_fixed_file_keeps_encoding_and_line_ends(shell: Shell, encoding: str, head: str) -> None:
    """Nothing changes but what the fix changes."""
    fault, fixed = (head + text.replace("🔥", "火").replace("\n", "\r\n") for text in (FAULT, FIXED))
    path = shell.folder / "fault.py"
    path.write_bytes(fault.encode(encoding))
    assert 0 == shell.run("check", "--fix")[0]
    assert fixed.encode(encoding) == path.read_bytes()


def test_a_file_that_does_not_parse_is_not_rewritten(shell: Shell) -> None:
    """Nobody could tell what the fix did to it."""
    broken = FAULT + "x = (\n"
    shell.write(fault=broken)
    assert 1 == shell.run("check", "--fix")[0]
    assert broken == (shell.folder / "fault.py").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_exit_status_2(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its findings are told as if nothing had been tried."""
    shell.write(fault=FAULT)

    def write_bytes(_path: Path, _data: bytes) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    status, out, errors = shell.run("check", "--fix")
    assert 2 == status
    assert "fault.py:5:13" in out
    assert "Fixed" not in out
    assert "fault.py: cannot be written: Permission denied" in errors


def test_a_disk_that_is_full_costs_no_text(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor any finding, although the first try has cut the file off."""
    shell.write(fault=FAULT)
    write_bytes = Path.write_bytes

    def write_less(path: Path, data: bytes) -> int:
        if len(data) > len(FAULT.encode()):
            write_bytes(path, data[:10])
            raise OSError(28, "No space left on device")
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", write_less)
    status, out, errors = shell.run("check", "--fix")
    assert (2, "gradvet: fault.py: cannot be written: No space left on device\n") == (status, errors)
    assert out.startswith("fault.py:5:13: ")
    assert out.endswith("Found 1 error in 1 file (1 file checked).\n")
    assert FAULT == (shell.folder / "fault.py").read_text(encoding="utf-8")


def test_a_diff_shows_and_changes_nothing(shell: Shell) -> None:
    """It is one that `patch` takes; exit status 1 says that there is something to do."""
    shell.write(fault=FAULT.rstrip("\n"), clean=CLEAN)
    status, out, errors = shell.run("check", "--fix", "--diff")
    assert 1 == status
    assert FAULT.rstrip("\n") == (shell.folder / "fault.py").read_text(encoding="utf-8")
    assert "Would fix 1 finding in 1 file.\n" == errors
    old, new = FAULT.splitlines(), FIXED.splitlines()
    expected = [
        *("--- fault.py", "+++ fault.py", "@@ -2,4 +2,4 @@"),
        *(f" {line}" for line in old[1:4]),
        *(f"-{old[4]}", "\\ No newline at end of file"),
        *(f"+{new[4]}", "\\ No newline at end of file"),
    ]
    assert expected == out.splitlines()
    shell.write(fault=FIXED)
    assert (0, "", "Would fix 0 findings in 0 files.\n") == shell.run("check", "--diff")


def test_a_suppressed_finding_is_not_shown(shell: Shell) -> None:
    """Nor fixed."""
    text = FAULT.replace("numpy())", "numpy())  # gradvet: ignore[numpy-on-grad] raises on purpose")
    shell.write(fault=text)
    assert 0 == shell.run("check", "--fix")[0]
    assert text == (shell.folder / "fault.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(all_rules()))
def test_a_rule_explains_itself(shell: Shell, name: str) -> None:
    """With its page, without what only the tests need."""
    status, out, _ = shell.run("explain", name)
    assert 0 == status
    assert out.startswith(f"# {name}\n")
    assert "proof" not in out


def test_a_rule_that_is_not_there_is_not_explained(shell: Shell) -> None:
    """One that is near is named."""
    status, out, errors = shell.run("explain", "numpyongrad")
    assert (2, "") == (status, out)
    assert "did you mean `numpy-on-grad`?" in errors
    assert "did you mean `leak`?" in shell.run("explain", "leek")[2]


@pytest.mark.parametrize("family", sorted({rule.family for rule in all_rules().values()}))
def test_a_family_is_explained_by_its_rules(shell: Shell, family: str) -> None:
    """Since it can be named wherever a rule can."""
    status, out, _ = shell.run("explain", family)
    assert 0 == status
    assert [rule.name for rule in all_rules().values() if rule.family == family] == [
        line.split()[0] for line in out.splitlines()
    ]


@pytest.mark.parametrize("arguments", [["rules"], ["explain"]])
def test_rules_are_listed(shell: Shell, arguments: list[str]) -> None:
    """Each with its family and one sentence; how severe a finding is depends on what was found."""
    status, out, _ = shell.run(*arguments)
    assert 0 == status
    listed = [line.split(None, 2) for line in out.splitlines()]
    assert [(rule.name, rule.family) for rule in all_rules().values()] == [
        (name, family) for name, family, _ in listed
    ]
    assert all(sentence.endswith(".") and len(sentence) > 20 for *_, sentence in listed)


def test_server_serves(capsys: pytest.CaptureFixture[str]) -> None:
    """With or without the argument that some editors add."""
    served: list[int] = []
    for arguments in (["server"], ["server", "--stdio"]):
        assert 0 == cli.main(arguments, serve=lambda: served.append(1))
    assert [1, 1] == served
    assert "" == capsys.readouterr().out


def python(*arguments: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A Python process of its own."""
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", **environment}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    """`python -m gradvet`."""
    (tmp_path / "fault.py").write_text(FAULT, encoding="utf-8")
    assert f"gradvet {__version__}\n" == python("-m", "gradvet", "--version", cwd=tmp_path).stdout
    done = python("-m", "gradvet", "check", "fault.py", cwd=tmp_path)
    assert (1, "") == (done.returncode, done.stderr)
    assert "\x1b[" not in done.stdout


def test_a_terminal_that_knows_few_characters_is_enough(tmp_path: Path) -> None:
    """What it cannot show is replaced."""
    (tmp_path / "fault.py").write_text(FAULT, encoding="utf-8")
    done = python("-m", "gradvet", "check", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (1, "") == (done.returncode, done.stderr)
    assert '    5 | print("??", doubled.numpy())' in done.stdout


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    """As in `gradvet check | head -1`."""
    for number in range(300):
        (tmp_path / f"fault{number}.py").write_text(FAULT, encoding="utf-8")
    command = [sys.executable, "-m", "gradvet", "check", "-j", "2"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"fault0.py:5:13: error")
        process.stdout.close()
        assert b"" == process.stderr.read()
    assert 141 == process.returncode


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_an_interrupted_run_ends_without_a_word(tmp_path: Path, jobs: str) -> None:
    """As after Ctrl-C."""
    for number in range(1000):
        (tmp_path / f"fault{number}.py").write_text(FAULT, encoding="utf-8")
    # The tests may have been started where SIGINT is ignored, as `nohup` in the background; children inherit that.
    main = (
        "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "runpy.run_module('gradvet', run_name='__main__')"
    )
    command = [sys.executable, "-u", "-c", main, "check", "-j", jobs]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"fault0.py:5:13: error")
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert (130, b"") == (process.returncode, errors)
    assert b"Found" not in out


@pytest.mark.parametrize(
    ("arguments", "kept_out"),
    [
        (
            "['--version']",
            ["gradvet.analysis", "gradvet.rules", "libcst", "pygls", "concurrent", "multiprocessing"],
        ),
        ("['check', 'fault.py']", ["libcst", "pygls", "lsprotocol", "multiprocessing", "asyncio", "torch"]),
        ("['explain', 'graph-retained']", ["libcst", "pygls", "multiprocessing", "torch"]),
    ],
)
def test_a_command_imports_no_more_than_it_needs(tmp_path: Path, arguments: str, kept_out: list[str]) -> None:
    """It should be there at once."""
    (tmp_path / "fault.py").write_text(FAULT, encoding="utf-8")
    code = (
        f"import sys\nfrom gradvet import cli\n"
        f"try: cli.main({arguments}, serve=None)\nexcept SystemExit: pass\n"
        f"print([name for name in {kept_out!r} if name in sys.modules], file=sys.stderr)"
    )
    assert "[]\n" == python("-c", code, cwd=tmp_path).stderr


def test_a_bound_that_was_reached_is_told_on_demand(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies behind it was not looked at."""
    monkeypatch.setattr("gradvet.autograd.machine.MOST_STEPS", 3)
    shell.write(fault=FAULT)
    _, _, errors = shell.run("check", "--verbose", "-j", "1", "fault.py")
    assert "the run was stopped after" in errors
    assert "may be missing" in errors
    assert "stopped" not in shell.run("check", "-j", "1", "fault.py")[2]
