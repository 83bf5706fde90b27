"""The editors of the tests, installed where they are not there yet."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from tools.editors.cache import MissingEditorError

Found = TypeVar("Found")


def there(find: Callable[[], Found]) -> Found:
    """An editor. Where it cannot be installed without a person, the test is passed over and says what to do.

    With `GRADVET_EDITORS=required`, that is a failure.
    """
    try:
        return find()
    except MissingEditorError as error:
        if os.environ.get("GRADVET_EDITORS") == "required":
            raise
        pytest.skip(str(error))
