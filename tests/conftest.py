"""Options of the whole suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer ``--update-fixtures``, which rewrites every expected block and script."""
    parser.addoption("--update-fixtures", action="store_true", help="rewrite what the fixtures expect")


@pytest.fixture
def update_fixtures(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are rewritten instead of checked."""
    return bool(request.config.getoption("--update-fixtures"))
