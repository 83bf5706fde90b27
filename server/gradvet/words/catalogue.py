"""The catalogues: English texts and what they are in another language, in JSON files by topic."""

import json
import pkgutil
from collections.abc import Mapping
from functools import cache

from gradvet.words.english import ENGLISH, Words

TOPICS = ("joints", "rules", "views", "errors", "server", "pages")
_LANGUAGES = {"zh": "zh_cn"}
"""The first part of a locale, and the folder with what is read there."""


def words_for(locale: str | None) -> Words:
    """The words for a locale as clients name it: `zh-cn`, `zh_CN.UTF-8`, `de`. English where there are no others."""
    language = (locale or "").replace("_", "-").partition("-")[0].lower()
    folder = _LANGUAGES.get(language)
    return ENGLISH if folder is None else _words(folder)


@cache
def _words(folder: str) -> Words:
    from gradvet.words.said import Said  # nothing of it is loaded for those who read English

    entries: dict[str, str] = {}
    for topic in TOPICS:
        entries |= topic_entries(folder, topic)
    return Said(entries)


def topic_entries(folder: str, topic: str) -> Mapping[str, str]:
    """One file of a catalogue."""
    data = pkgutil.get_data(__package__, f"{folder}/{topic}.json") or b"{}"
    entries: dict[str, str] = json.loads(data)
    return entries
