"""The user's settings as the editor sends them: read leniently, since each client shapes them its own way."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from gradvet.config import Config

log = logging.getLogger(__name__)

SECTION = "gradvet"


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


def joined(project: Config, editor: Config) -> Config:
    """Both together: the editor's choice of rules replaces the project's; what either ignores is ignored."""
    return Config(select=editor.select or project.select, ignore=editor.ignore | project.ignore)


def _names(sent: Mapping[str, Any], key: str) -> frozenset[str]:
    value = sent.get(key) or ()
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable) and all(isinstance(name, str) for name in value):
        return frozenset(value)
    log.warning("%s.%s should be a list of rule names, not %r", SECTION, key, value)
    return frozenset()
