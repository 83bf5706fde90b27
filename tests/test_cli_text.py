"""How findings look in a terminal."""

from pathlib import Path

import pytest

from gradvet.cli.as_text import Paint, concise, full, shown_path, summary
from gradvet.cli.report import Change, Entry, FixOffer, Note, Place, Report

PLAIN = Paint()


def entry(
    line: str,
    marked: str,
    notes: tuple[Note, ...] = (),
    fixes: tuple[FixOffer, ...] = (),
    severity: str = "warning",
    message: str = "`total` keeps the graph",
) -> Entry:
    """A finding on the marked part of line 41."""
    column = line.index(marked) + 1
    place = Place(41, column, 41, column + len(marked))
    lines = ((39, "        loss.backward()"), (40, ""), (41, line))
    return Entry("graph-retained", severity, message, place, notes, fixes, None, lines)


def at(row: int) -> Place:
    """The start of a row."""
    return Place(row, 1, row, 2)


def fix(title: str, effect: str, applicability: str = "safe") -> FixOffer:
    """A fix whose edits do not matter."""
    return FixOffer(title, effect, applicability, (Change(at(41), "x"),))


def test_a_finding_is_shown_whole() -> None:
    """Message, source line with a marker, reasons, fixes."""
    found = entry(
        "        total += loss",
        "total += loss",
        notes=(
            Note("why", "`loss` requires grad: `criterion(out, y)`", at(37)),
            Note("", "parameters of `Net`, line 12", at(12)),
            Note("held", "by `total`, made before the loop", at(30)),
            Note("cut", "on this line", at(41)),
            Note("cut", "and here as well", None),
        ),
        fixes=(
            fix("`total += loss.detach()`", "same value, stays on the device"),
            fix("`total += loss.item()`", "a Python number", "unsafe"),
            fix("汉", ""),
        ),
    )
    expected = """\
train.py:41:9: warning[graph-retained] `total` keeps the graph

   39 |         loss.backward()
   40 |
   41 |         total += loss
      |         ^^^^^^^^^^^^^
   why   `loss` requires grad: `criterion(out, y)` line 37
         ← parameters of `Net`, line 12
   held  by `total`, made before the loop (line 30)
   cut   on this line
         and here as well
   fix   `total += loss.detach()`   safe: same value, stays on the device
         `total += loss.item()`     unsafe: a Python number
         汉                         safe
"""
    assert expected == full("train.py", found, PLAIN)


MARKERS = [
    ("x = loss", "loss", "x = loss", "    ^^^^"),
    ("s = '汉字'; y = f(s)", "f(s)", "s = '汉字'; y = f(s)", "                ^^^^"),
    ("s = '🔥'; 损失 = 1", "损失", "s = '🔥'; 损失 = 1", "          ^^^^"),
    ("s = 'e\u0301'; y = 1", "y", "s = 'e\u0301'; y = 1", "         ^"),
    ("\tif x:\ty = 1", "y = 1", "    if x:   y = 1", "            ^^^^^"),
    ("\tf(\tx)", "f(\tx)", "    f(  x)", "    ^^^^^^"),
    ("f('\x1b[31m')", "f('\x1b[31m')", "f('␛[31m')", "^^^^^^^^^^"),
]


@pytest.mark.parametrize(("line", "marked", "shown", "marker"), MARKERS)
def test_the_marker_stands_under_its_place(line: str, marked: str, shown: str, marker: str) -> None:
    """Under wide characters, combining ones and tabs; and no file can steer the terminal."""
    lines = full("x.py", entry(line, marked), PLAIN).splitlines()
    assert [f"   41 | {shown}", f"      | {marker}"] == lines[4:6]


def test_a_place_over_several_lines_is_marked_on_its_first() -> None:
    """To the end of what stands there."""
    lines = ((1, "x = f(  "),)
    found = Entry("a-rule", "error", "m", Place(1, 5, 3, 2), (), (), None, lines)
    assert "      |     ^^" in full("x.py", found, PLAIN).splitlines()


def test_an_empty_place_is_marked_once() -> None:
    """As at the end of a file."""
    found = Entry("a-rule", "error", "m", Place(1, 2, 1, 2), (), (), None, ((1, "x"),))
    assert "      |  ^" in full("x.py", found, PLAIN).splitlines()


def test_a_line_that_is_too_long_is_cut_round_the_place() -> None:
    """The marked part is seen, at its column."""
    line = "汉" * 300 + "lost(x)" + "b" * 500
    _, _, *_, shown, marker = full("x.py", entry(line, "lost(x)"), PLAIN).splitlines()
    assert "^^^^^^^" == marker[8:].strip()
    assert len(shown) < 200
    column = len(marker) - len("^^^^^^^") - 8
    wide = sum(2 if character == "汉" else 1 for character in shown[8 : shown.index("lost")])
    assert column == wide


def test_a_concise_finding_is_one_line() -> None:
    """Whatever is in its message."""
    found = entry("x = loss", "loss", severity="error", message="a\nb")
    assert "x.py:41:5: error[graph-retained] a␊b" == concise("x.py", found, PLAIN)


def test_colours_only_colour() -> None:
    """Without them the text is the same."""
    found = entry("x = loss", "loss", notes=(Note("why", "so", None),), fixes=(fix("Do", "it"),))
    painted = full("x.py", found, Paint(on=True))
    assert "\x1b[33mwarning\x1b[0m" in painted
    for code in ("1", "2", "33", "33;1"):
        painted = painted.replace(f"\x1b[{code}m", "")
    assert full("x.py", found, PLAIN) == painted.replace("\x1b[0m", "")


ONE, TWO = entry("x", "x", fixes=(fix("Do", "it"), fix("Or", "that"))), entry("x", "x", severity="error")
HINT = entry("x", "x", severity="info", fixes=(fix("Do", "it", "unsafe"),))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([[], []], "No findings (2 files checked)."),
        ([[ONE]], "Found 1 warning in 1 file (1 file checked). 1 fix is safe: --fix"),
        (
            [[ONE, ONE, TWO], [], [TWO]],
            "Found 2 errors and 2 warnings in 2 files (3 files checked). 2 fixes are safe: --fix",
        ),
        (
            [[HINT, ONE, TWO]],
            "Found 1 error, 1 warning and 1 info in 1 file (1 file checked). 1 fix is safe: --fix",
        ),
        ([[HINT, HINT]], "Found 2 infos in 1 file (1 file checked)."),
    ],
)
def test_it_is_summed_up(entries: list[list[Entry]], expected: str) -> None:
    """By severity, with what can be done at once."""
    assert expected == summary([Report("x.py", tuple(found)) for found in entries], PLAIN)


def test_what_could_not_be_checked_is_not_counted_as_checked() -> None:
    """And nothing is said in green then."""
    bad, good = Report("a.py", failures=("cannot be read",), checked=False), Report("b.py")
    expected = "\x1b[1mNo findings (1 file checked, 2 could not be).\x1b[0m"
    assert expected == summary([bad, good, bad], Paint(on=True))
    assert "\x1b[32mNo findings (1 file checked).\x1b[0m" == summary([good], Paint(on=True))
    assert "Found 1 error in 1 file (1 file checked, 1 could not be)." == summary(
        [Report("c.py", (TWO,)), bad], PLAIN
    )


def test_what_was_fixed_is_summed_up() -> None:
    """Together with what is left."""
    reports = [
        Report("a.py", (), fixes=3, before=(("", "a"),), after=(("", "b"),)),
        Report("b.py", (TWO,), before=(("", "a"),), after=(("", "a"),)),
    ]
    expected = "Fixed 3 findings in 1 file.\nFound 1 error in 1 file (2 files checked)."
    assert expected == summary(reports, PLAIN, fixing=True)


def test_paths_are_written_as_seen_from_here(tmp_path: Path) -> None:
    """Those that lie elsewhere are left as they were given."""
    assert "a.py" == shown_path(str(tmp_path / "in" / ".." / "a.py"), tmp_path)
    assert "/elsewhere/a.py" == shown_path("/elsewhere/a.py", tmp_path)
