"""The user's settings as the editor sends them: read leniently, since each client shapes them its own way."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gradvet.config import Config
from gradvet.project import Settings

log = logging.getLogger(__name__)

SECTION = "gradvet"
NOTHING = Config(select=frozenset({"nothing"}))  # a name that no rule has


def from_settings(sent: Any) -> Config:
    """What `initializationOptions`, `didChangeConfiguration` or `workspace/configuration` say.

    The settings may stand in a section `gradvet` or `settings`, or alone. What cannot be read is
    logged and left out.
    """
    for section in (SECTION, "settings", SECTION):
        if isinstance(sent, Mapping) and isinstance(sent.get(section), Mapping):
            sent = sent[section]
    if not isinstance(sent, Mapping):
        return Config()
    return Config(select=_names(sent, "select"), ignore=_names(sent, "ignore"))


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


def _names(sent: Mapping[str, Any], key: str) -> frozenset[str]:
    value = sent.get(key) or ()
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable) and all(isinstance(name, str) for name in value):
        return frozenset(value)
    log.warning("%s.%s should be a list of rule names, not %r", SECTION, key, value)
    return frozenset()
