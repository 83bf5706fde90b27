"""Reports as a JSON array in the shape of ruff's, with a few keys more."""

import json
import os
from collections.abc import Iterable
from typing import Any

from gradvet.cli.report import Change, Entry, FixOffer, Note, Place, Report


def as_json(reports: Iterable[Report]) -> str:
    """The array, one object an entry."""
    return json.dumps(
        [_entry(report.path, entry) for report in reports for entry in report.entries], indent=2
    )


def _entry(path: str, entry: Entry) -> dict[str, Any]:
    fixes = [_fix(fix) for fix in entry.fixes]
    return {
        "cell": _cell(entry.place),
        "code": entry.code,
        "filename": os.path.abspath(path),
        **_places(entry.place),
        "message": entry.message,
        "url": entry.url,
        "fix": fixes[0] if fixes else None,
        "fixes": fixes,
        "severity": entry.severity,
        "related": [_note(note) for note in entry.notes],
    }


def _fix(fix: FixOffer) -> dict[str, Any]:
    return {
        "applicability": fix.applicability,
        "message": fix.title,
        "effect": fix.effect,
        "edits": [_edit(change) for change in fix.changes or ()],
    }


def _edit(change: Change) -> dict[str, Any]:
    return {"content": change.text, **_places(change.place)}


def _cell(place: Place) -> int | None:
    """The number of the notebook's cell in which rows are counted; null in a file."""
    return int(place.part.removeprefix("cell ")) if place.part else None


def _note(note: Note) -> dict[str, Any]:
    places = {"location": None, "end_location": None} if note.place is None else _places(note.place)
    return {"label": note.label, "message": note.text, **places}


def _places(place: Place) -> dict[str, Any]:
    cell = {"cell": _cell(place)} if place.part else {}
    return {
        **cell,
        "location": {"row": place.row, "column": place.column},
        "end_location": {"row": place.end_row, "column": place.end_column},
    }
