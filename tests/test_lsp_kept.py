"""Which analyses are kept for texts that come back."""

from dataclasses import replace

import pytest

from fake_analysis import analysis
from gradvet.analysis import Analysis
from gradvet.config import Config
from gradvet.lsp import kept
from gradvet.lsp.kept import Kept


def key(text: str, config: Config = Config()) -> kept.Key:
    return ("/w/a.py", text, config)


def resting_on(text: str, *paths: str) -> Analysis:
    return replace(analysis(text), read_paths=frozenset(paths))


def test_a_text_that_comes_back_is_known_under_the_same_settings() -> None:
    known, store = analysis("x"), Kept()
    store.put(key("x"), known, store.changes)
    assert store.get(key("x")) is known
    assert store.get(key("y")) is None
    assert store.get(key("x", Config(ignore=frozenset({"leak"})))) is None


def test_what_rests_on_a_file_is_dropped_when_that_changes() -> None:
    store = Kept()
    store.put(key("a"), resting_on("a", "/w/b.py"), store.changes)
    store.put(key("b"), analysis("b"), store.changes)
    store.changed(["/w/c.py"])
    assert store.get(key("a")) is not None
    store.changed(["/w/b.py"])
    assert store.get(key("a")) is None
    assert store.get(key("b")) is not None


def test_what_was_begun_before_a_change_is_not_kept() -> None:
    store = Kept()
    since = store.changes
    store.changed(["/w/b.py"])
    store.put(key("a"), resting_on("a", "/w/b.py"), since)
    store.put(key("b"), analysis("b"), since)  # it rests on nothing
    assert store.get(key("a")) is None
    assert store.get(key("b")) is not None


def test_only_the_last_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Kept()
    for number in range(kept.MOST + 1):
        store.put(key(str(number)), analysis(str(number)), 0)
    assert store.get(key("0")) is None
    assert store.get(key("1")) is not None
    monkeypatch.setattr(kept, "MOST_CHARACTERS", 10)
    store.put(key("x" * 11), analysis("x" * 11), 0)
    assert store.get(key("x" * 11)) is not None  # alone, it may be as long as it likes
    assert store.get(key("1")) is None


def test_an_analysis_whose_tree_has_moved_on_is_dropped() -> None:
    store, moved = Kept(), analysis("a")
    store.put(key("a"), moved, store.changes)
    store.put(key("b"), analysis("b"), store.changes)
    store.outdated(moved.module)
    assert store.get(key("a")) is None
    assert store.get(key("b")) is not None
