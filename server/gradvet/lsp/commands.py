"""Commands that the client may run: what they take and give is told in ARCHITECTURE.md."""

import logging
import os
import platform
import sys
from typing import Any

from lsprotocol import types as lsp

from gradvet import __version__
from gradvet.lsp import proto
from gradvet.lsp.code_actions import OPEN_PAGE
from gradvet.lsp.instance import server
from gradvet.lsp.session import Session, answers
from gradvet.lsp.uris import uri_of
from gradvet.rules import all_rules
from gradvet.text import Span
from gradvet.views import GradientPath, gradient_path, rule_url
from gradvet.words import Words

log = logging.getLogger(__name__)

GRADIENT_PATH = "gradvet.server.gradientPath"
EXPLAIN_ERROR = "gradvet.server.explainError"
CHECK_WORKSPACE = "gradvet.server.checkWorkspace"
DEBUG_INFORMATION = "gradvet.server.debugInformation"


def _steps(place: proto.Place, found: GradientPath, words: Words) -> list[dict[str, Any]]:
    """The steps, each with its location in the client's terms."""
    steps: list[dict[str, Any]] = []
    for step in found.steps:
        location = None
        if step.source is place.source and step.node is not None:
            location = proto.to_location(place, step.source.span(step.node))
        elif step.source is not None and step.node is not None:
            span = step.source.span(step.node)
            whole = proto.Piece(uri_of(step.source.path), 0, Span(0, len(step.source.text)))
            other = proto.Place(step.source, place.encoding, [whole], whole.uri)
            location = proto.to_location(other, span)
        steps.append({"text": words.say(step.text), "location": location})
    return steps


@server.command(GRADIENT_PATH)
@answers(lambda: None)
async def show_gradient_path(ls: Session, *arguments: Any) -> dict[str, Any] | None:
    """The way of a gradient from the parameters to the value at a position."""
    asked = _asked(arguments)
    known = await ls.known(str(asked.get("uri")))
    position = asked.get("position")
    if known is None or not isinstance(position, dict):
        return None
    where = lsp.Position(int(position.get("line", 0)), int(position.get("character", 0)))
    offset = proto.from_position(known.place, where)
    found = await ls.work(gradient_path, known.analysis, offset, proto.links(known.place))
    if found is None:
        return None
    return {
        "title": proto.bare(ls.words.say(found.title)),
        "markdown": ls.words.page(found.markdown),
        "steps": _steps(known.place, found, ls.words),
    }


@server.command(EXPLAIN_ERROR)
@answers(lambda: None)
async def explain_error(ls: Session, *arguments: Any) -> dict[str, Any] | None:
    """What a pasted message of torch means for a text, and the likeliest places of its cause."""
    from gradvet.errors import explain, read_pasted  # seldom needed
    from gradvet.errors.page import page

    asked = _asked(arguments)
    text = asked.get("text")
    document = ls.documents.get(ls.documents.whole(str(asked.get("uri"))))
    pasted = read_pasted(text) if isinstance(text, str) else None
    if document is None or pasted is None or pasted.known is None:
        return None
    source = document.source()
    place = proto.Place(source, ls.documents.encoding, document.pieces(), str(asked.get("uri")))
    told = await ls.work(explain, pasted, source, ls.reader(document))
    places = [
        {
            "location": proto.to_location(place, suspect.span),
            "text": ls.words.say(suspect.reason),
            "rule": suspect.diagnostic.rule.name if suspect.diagnostic is not None else None,
        }
        for suspect in told.suspects
    ]
    return {"markdown": ls.words.page(page(told, proto.links(place))), "places": places}


@server.command(CHECK_WORKSPACE)
@answers(lambda: None)
async def check_workspace(ls: Session) -> dict[str, int]:
    """Look at all files of the workspace, and keep what is said of them up to date from then on."""
    survey = ls.survey
    survey.changed(None)
    if survey.pulled:
        found = [told async for told in survey.look()]
        findings, files = sum(len(told.items) for told in found), sum(bool(told.items) for told in found)
    else:
        survey.asked = True
        findings, files = await survey.publish_once()
        survey.publish()
    words = f"{findings} finding{'s' * (findings != 1)} in {files} file{'s' * (files != 1)} of the workspace"
    ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, f"Gradvet: {ls.words.say(words)}"))
    return {"findings": findings, "files": files}


@server.command(DEBUG_INFORMATION)
def debug_information(ls: Session) -> str:
    """What somebody who is to help needs to know of this server, in Markdown. No paths and no code."""
    can = ls.abilities
    yes = [name for name in can.__dataclass_fields__ if getattr(can, name) is True]
    chosen = ls.settings
    texts = ls.documents.texts()
    lines = [
        f"- Gradvet {__version__}, {len(all_rules())} rules",
        f"- {platform.python_implementation()} {platform.python_version()} on {platform.system()} {platform.machine()}",
        *(f"- {name} {_version(name)}" for name in ("pygls", "lsprotocol", "libcst")),
        f"- positions in {ls.documents.encoding.kind}",
        f"- the client can: {', '.join(yes)}",
        f"- open: {len(list(ls.documents))} documents, {sum(map(len, texts.values()))} characters in files",
        f"- folders: {len(ls.folders())}, with settings of their own: {len(ls.of_folders)}",
        f"- select {sorted(chosen.config.select)}, ignore {sorted(chosen.config.ignore)}",
        f"- hints {sorted(chosen.hints)}, lens {chosen.lens}, tokens {chosen.tokens}, workspace {chosen.workspace}",
        f"- wrong settings: {len(chosen.complaints)}",
        f"- {_memory()}",
    ]
    return "\n".join(lines) + "\n"


@server.command(OPEN_PAGE)
async def open_page(ls: Session, *arguments: Any) -> None:
    """Open a rule's page in the user's browser."""
    rule = all_rules().get(str(arguments[0])) if arguments else None
    if rule is not None:
        await ls.window_show_document_async(lsp.ShowDocumentParams(rule_url(rule), external=True))


def _asked(arguments: tuple[Any, ...]) -> dict[str, Any]:
    """The one argument, which is an object; empty for anything else that a client might send."""
    first = arguments[0] if arguments else None
    if isinstance(first, dict):
        return first
    fields = getattr(first, "_asdict", None)
    return fields() if callable(fields) else {}


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed as a package)"


def _memory() -> str:
    if sys.platform == "win32":
        return "memory unknown"
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    return f"at most {most // 1024} MB of memory so far, process {os.getpid()}"
