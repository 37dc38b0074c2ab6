"""Options of the whole suite."""

from __future__ import annotations

import pytest

_EVERY = 5
"""One in so many of the sampled tests is part of the quick loop."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the suite's own options."""
    parser.addoption("--update-fixtures", action="store_true", help="rewrite what the fixtures expect")
    parser.addoption("--quick", action="store_true", help="a few generated inputs where there are many")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to rewrite fixtures from several processes at once."""
    if config.getoption("--update-fixtures") and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--update-fixtures and -n exclude each other")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The quick loop leaves out what is slow: huge inputs, many processes, most of what is sampled."""
    if config.getoption("--quick"):
        sampled = [item for item in items if item.get_closest_marker("sampled")]
        left_out = {item for item in items if item.get_closest_marker("slow")}
        left_out.update(item for index, item in enumerate(sampled) if index % _EVERY)
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def update_fixtures(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are rewritten instead of checked."""
    return bool(request.config.getoption("--update-fixtures"))


@pytest.fixture
def quick(request: pytest.FixtureRequest) -> bool:
    """Whether to try a few generated inputs only (the quick loop)."""
    return bool(request.config.getoption("--quick"))
