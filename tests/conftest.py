"""What holds for every test: `analyze` catches failures of engine and rules, but no test may pass over one."""

import logging
from collections.abc import Iterator

import pytest


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture(autouse=True)
def _failures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test when engine or rules failed, unless the test looks at the log itself."""
    handler = _Kept()
    logger = logging.getLogger("gradvet.analysis")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    if handler.records and "caplog" not in request.fixturenames:
        pytest.fail("\n".join(record.getMessage() for record in handler.records))
