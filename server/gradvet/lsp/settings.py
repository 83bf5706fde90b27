"""The user's settings as the editor sends them: read leniently, since each client shapes them its own way."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradvet.config import Config
from gradvet.project import Settings
from gradvet.views import KINDS, QUIET

log = logging.getLogger(__name__)

SECTION = "gradvet"
HINTS = "inlayHints"
NOTHING = Config(select=frozenset({"nothing"}))  # a name that no rule has


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the user chose in the editor: the rules, and the kinds of inlay hints."""

    config: Config = Config()
    hints: frozenset[str] = QUIET


def from_settings(sent: Any) -> Chosen:
    """What `initializationOptions`, `didChangeConfiguration` or `workspace/configuration` say.

    The settings may stand in a section `gradvet` or `settings`, or alone. What cannot be read is
    logged and left out.
    """
    for section in (SECTION, "settings", SECTION):
        if isinstance(sent, Mapping) and isinstance(sent.get(section), Mapping):
            sent = sent[section]
    if not isinstance(sent, Mapping):
        return Chosen()
    config = Config(select=_names(sent, "select"), ignore=_names(sent, "ignore"))
    return Chosen(config, _hints(sent.get(HINTS)))


def for_file(project: Settings, editor: Config, path: Path) -> Config:
    """What holds for a file: the editor's choice of rules replaces the project's, both may ignore.

    In installed packages and in what the project excludes, no rule speaks: nobody would change those.
    """
    if "site-packages" in path.parts or any(project.excludes(part) for part in _within(project, path)):
        return NOTHING
    return Config(select=editor.select or project.config.select, ignore=editor.ignore | project.config.ignore)


def _within(project: Settings, path: Path) -> Iterator[Path]:
    """The file and the folders that lead to it from the project's settings."""
    root = None if project.path is None else project.path.parent
    yield from (part for part in (path, *path.parents) if root in part.parents)


def _hints(sent: Any) -> frozenset[str]:
    """The kinds of hints: `true` and `false` are all and none, a mapping turns single ones on and off."""
    if isinstance(sent, bool):
        return frozenset(KINDS) if sent else frozenset()
    if sent is None:
        return QUIET
    if not isinstance(sent, Mapping) or not all(isinstance(on, bool) for on in sent.values()):
        log.warning("%s.%s should be true, false, or a table of kinds, not %r", SECTION, HINTS, sent)
        return QUIET
    for kind in sent.keys() - KINDS:
        log.warning("%s.%s names %s, which is no kind of hint: %s", SECTION, HINTS, kind, ", ".join(KINDS))
    return frozenset(kind for kind in KINDS if sent.get(kind, kind in QUIET))


def _names(sent: Mapping[str, Any], key: str) -> frozenset[str]:
    value = sent.get(key) or ()
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable) and all(isinstance(name, str) for name in value):
        return frozenset(value)
    log.warning("%s.%s should be a list of rule names, not %r", SECTION, key, value)
    return frozenset()
