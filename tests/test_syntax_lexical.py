"""Comments and strings are found in any text."""

import io
import sys
import sysconfig
import tokenize
from pathlib import Path

import pytest

from gradvet.syntax.lexical import lexemes, skeleton


def found(text: str) -> list[str]:
    """The comments and strings of a text."""
    return [text[lexeme.span.start : lexeme.span.end] for lexeme in lexemes(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", []),
        ("a  # one\r\nb # two\rc", ["# one", "# two"]),
        ("s = '# no' # yes", ["'# no'", "# yes"]),
        ('s = """# no\n"two" \\""" """ # yes', ['"""# no\n"two" \\""" """', "# yes"]),
        ("s = rb'\\' # no' # yes", ["rb'\\' # no'", "# yes"]),
        ("s = 'a\\\n# no' # yes", ["'a\\\n# no'", "# yes"]),
        ("s = 'a\\\r\n# no' # yes", ["'a\\\r\n# no'", "# yes"]),
        ("f = f'{x:{w}} # {y!r:>{n}} {{' # yes", ["f'{x:{w}} # {y!r:>{n}} {{'", "# yes"]),
        ('f = f"{d["#"]} {g("}")}" # yes', ['f"{d["#"]} {g("}")}"', "# yes"]),
        ("f = f'{x:\">10}' # yes", ["f'{x:\">10}'", "# yes"]),
        ("f = f'\\N{BULLET} \\{x}' # yes", ["f'\\N{BULLET} \\{x}'", "# yes"]),
        ("f = f'''{\n x  # note }\n}''' # yes", ["f'''{\n x  # note }\n}'''", "# yes"]),
        ("f = f'{x' # yes", ["f'{x'", "# yes"]),
        ("deaf'x' # yes", ["'x'", "# yes"]),
        ("a = 'open # x\nb # yes", ["'open # x", "# yes"]),
        ('a = """open # x\nb # no', ['"""open # x\nb # no']),
    ],
)
def test_comments_and_strings_are_told_apart(text: str, expected: list[str]) -> None:
    """Also in f-strings, in strings that hold quotes, and where an end is missing."""
    assert expected == found(text)


def test_the_skeleton_shows_code_alone() -> None:
    """It has the same length, so offsets mean the same in both."""
    text = 'f(\'(\', """\n)""")  # )\nx'
    assert "f(___, ________)     \nx" == skeleton(text)


def by_tokenize(text: str) -> list[tuple[int, int]]:
    """The spans that the standard library's tokenizer gives for comments and outermost strings."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    opening, closing = getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_END", -1)
    spans = []
    stack: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type == opening:
            stack.append(start)
        elif token.type == closing:
            start = stack.pop()
            spans += [(start, end)] if not stack else []
        elif not stack and token.type in (tokenize.COMMENT, tokenize.STRING):
            spans.append((start, end))
    return spans


@pytest.mark.parametrize("folder", ["asyncio", "json", "email", "importlib", "unittest", "xml"])
def test_it_agrees_with_tokenize(folder: str) -> None:
    """Over real files; `tokenize` takes ten times as long and gives up on a text that is not whole."""
    compared = 0
    for path in sorted(Path(sysconfig.get_path("stdlib"), folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not text.isascii() and sys.version_info[:3] < (3, 12, 2):
            continue  # the tokenizer's own columns were wrong there
        mine = [(lexeme.span.start, lexeme.span.end) for lexeme in lexemes(text)]
        assert by_tokenize(text) == mine, path
        compared += 1
    assert compared > 0
