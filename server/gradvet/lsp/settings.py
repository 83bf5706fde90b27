"""The user's settings as the editor sends them: read leniently, since each client shapes them its own way."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradvet.config import Config
from gradvet.project import Settings, did_you_mean, unknown_rules
from gradvet.views import KINDS, QUIET

SECTION = "gradvet"
SELECT, IGNORE, HINTS = "select", "ignore", "inlayHints"
LENS, TOKENS, WORKSPACE = "codeLens", "semanticTokens", "workspaceDiagnostics"
_THE_CLIENTS = frozenset({
    "args", "cwd", "enabled", "ignorePatterns", "importStrategy", "interpreter", "logLevel", "path", "run", "severity",
    "showNotifications", "trace",
})  # fmt: skip
"""Settings of the section that only the client looks at."""
_OURS = (SELECT, IGNORE, HINTS, LENS, TOKENS, WORKSPACE)
NOTHING = Config(select=frozenset({"nothing"}))  # a name that no rule has


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the user chose in the editor: the rules, and what is shown beside findings.

    `complaints` say what is wrong with the settings; where a value is wrong, its default holds.
    """

    config: Config = Config()
    hints: frozenset[str] = QUIET
    lens: bool = False
    tokens: bool = False
    workspace: bool = False
    complaints: tuple[str, ...] = ()


def from_settings(sent: Any) -> Chosen:
    """What `initializationOptions`, `didChangeConfiguration` or `workspace/configuration` say.

    The settings may stand in a section `gradvet` or `settings`, or alone.
    """
    for section in (SECTION, "settings", SECTION):
        if isinstance(sent, Mapping) and isinstance(sent.get(section), Mapping):
            sent = sent[section]
    if sent is None:
        return Chosen()
    complaints: list[str] = []
    if not isinstance(sent, Mapping):
        return Chosen(complaints=(f"the settings `{SECTION}` should be a table, not `{sent!r}`",))
    config = Config(select=_names(sent, SELECT, complaints), ignore=_names(sent, IGNORE, complaints))
    hints = _hints(sent.get(HINTS), complaints)
    lens, tokens, workspace = (_switch(sent, key, complaints) for key in (LENS, TOKENS, WORKSPACE))
    complaints += (
        f"there is no setting `{SECTION}.{key}`{did_you_mean(key, _OURS)}"
        for key in sent
        if isinstance(key, str) and key.partition(".")[0] not in {*_OURS, *_THE_CLIENTS}
    )
    return Chosen(config, hints, lens, tokens, workspace, tuple(complaints))


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


def _hints(sent: Any, complaints: list[str]) -> frozenset[str]:
    """The kinds of hints: `true` and `false` are all and none, a mapping turns single ones on and off."""
    if isinstance(sent, bool):
        return frozenset(KINDS) if sent else frozenset()
    if sent is None:
        return QUIET
    if not isinstance(sent, Mapping) or not all(isinstance(on, bool) for on in sent.values()):
        complaints.append(f"`{SECTION}.{HINTS}` should be true, false, or a table of kinds, not `{sent!r}`")
        return QUIET
    complaints += (
        f"`{SECTION}.{HINTS}` names `{kind}`, which is no kind of hint: they are {', '.join(f'`{kind}`' for kind in KINDS)}"
        for kind in sent
        if kind not in KINDS
    )
    return frozenset(kind for kind in KINDS if sent.get(kind, kind in QUIET))


def _switch(sent: Mapping[str, Any], key: str, complaints: list[str]) -> bool:
    value = sent.get(key)
    if value is not None and not isinstance(value, bool):
        complaints.append(f"`{SECTION}.{key}` should be true or false, not `{value!r}`")
    return value is True


def _names(sent: Mapping[str, Any], key: str, complaints: list[str]) -> frozenset[str]:
    value = sent.get(key) or ()
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, Iterable) or not all(isinstance(name, str) for name in value):
        complaints.append(f"`{SECTION}.{key}` should be a list of rules and families, not `{value!r}`")
        return frozenset()
    names = frozenset(value)
    known = frozenset(name for name in names if unknown_rules([name]) is None)
    complaints += (
        f"`{SECTION}.{key}` names {unknown_rules([name])}" for name in sorted(names) if name not in known
    )
    return known if key == SELECT else names  # a choice of none that there is would silence everything
