"""Events are plain frozen records: made, compared and changed as frozen dataclasses are."""

import ast
from dataclasses import dataclass

import pytest

from gradvet.autograd.events import Event, ModeStatement
from gradvet.autograd.record import Record


class _Point(Record):
    """Two numbers, the second of which need not be given."""

    x: int
    y: int = 0


class _Named(_Point):
    """One field more."""

    name: str = ""


def test_fields_are_given_by_position_or_by_name() -> None:
    """And have their defaults."""
    assert (1, 0) == (_Point(1).x, _Point(1).y)
    assert (1, 2, "p") == (_Named(1, name="p", y=2).x, _Named(1, 2).y, _Named(1, 2, "p").name)
    assert ("node", "calls", "name") == ModeStatement.field_names


@pytest.mark.parametrize(("args", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"z": 2})])
def test_wrong_fields_are_refused(args: tuple[int, ...], named: dict[str, int]) -> None:
    """Too few, too many, one twice, one that is none."""
    with pytest.raises(TypeError):
        _Point(*args, **named)


def test_records_are_values() -> None:
    """Equal ones are one in a set; another class, or another field, is another value."""
    assert 1 == len({_Point(1, 2), _Point(x=1, y=2)})
    assert _Point(1, 2) != _Point(1, 3)
    assert _Point(1, 2) != _Named(1, 2)
    assert "_Point(x=1, y=2)" == repr(_Point(1, 2))
    assert _Point(1, 5) == _Point(1, 2).but(y=5)


def test_records_are_frozen() -> None:
    """Nobody changes an event that others read."""
    event = Event(ast.Pass(), ())
    with pytest.raises(AttributeError):
        event.calls = (ast.Pass(),)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del event.calls


def test_a_record_is_no_dataclass() -> None:
    """It would forget the fields of what it extends."""
    with pytest.raises(TypeError, match="needs no `@dataclass`"):
        dataclass(frozen=True, slots=True)(type("Wrong", (_Point,), {"__annotations__": {"z": int}}))
