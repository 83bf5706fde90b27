"""How states and notes are said to people: torch's own words, one line each."""

from gradvet.text import Source, Span

_SAID = {
    "requires_grad=YES": "requires grad",
    "requires_grad=NO": "does not require grad",
    "requires_grad=MAYBE": "may require grad",
    "is_leaf=YES": "leaf",
    "is_leaf=NO": "not a leaf",
    "is_leaf=MAYBE": "may be a leaf",
}


def state_words(text: str) -> str:
    """`requires_grad=YES is_leaf=NO grad_fn=AddBackward0` as `requires grad · not a leaf · grad_fn …`.

    A text that is not made of `field=value` is a sentence already and stays as it is.
    """
    words = text.split()
    if not words or not all("=" in word for word in words):
        return text
    return " · ".join(_SAID.get(word) or word.replace("=", " ", 1).replace("|", " or ") for word in words)


def labelled(label: str, text: str) -> str:
    """A note in plain text; one without a label goes on with the chain above it."""
    return f"{label}: {text}" if label else f"← {text}"


def placed(text: str, where: str | None) -> str:
    """The text with its line, as the source names it, unless it names that line already."""
    return text if where is None or where in text else f"{text} ({where})"


def row_words(source: Source, span: Span | None) -> str | None:
    """The line on which a span begins, as a message names it."""
    return None if span is None else source.row_words(source.row_column(span.start)[0])


def code(text: str, width: int = 60) -> str:
    """A code span in Markdown of one line, cut at `width`, whatever backticks the text holds."""
    line = " ".join(text.split())
    if len(line) > width:
        line = line[: width - 1] + "…"
    ticks = "`"
    while ticks in line:
        ticks += "`"
    pad = " " if "`" in (line[:1], line[-1:]) else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"
