"""Options of the whole suite."""

from __future__ import annotations

import gc
import inspect
import re

import pytest
from hypothesis import HealthCheck, settings

from support.turns import Turns, commit, has_turn
from trainshift.cli.rules import UnknownRule, find_rule

_EVERY = 20
"""One in so many of the sampled tests is part of the quick loop."""

_MOST = 1
"""The number of cases of one test in the quick loop; all cases of the fixtures are in it."""

_WHOLE = frozenset({"cli", "lsp"})
"""The folders whose tests go through the whole program, often in a process of its own: these are sampled."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the suite's own options."""
    parser.addoption("--update-fixtures", action="store_true", help="rewrite what the fixtures expect")
    parser.addoption("--rule", metavar="CODE", help="what concerns one rule: a code (hv05) or a name")
    parser.addoption(
        "--single-runs",
        action="store_true",
        help="run all wrong conversions also without forks, and write down how they are judged",
    )
    parser.addoption("--write-proven", action="store_true", help="write down which conversions are proven")
    parser.addoption(
        "--every-keras3", action="store_true", help="run all scripts on TensorFlow 2.21, not a sample alone"
    )
    parser.addoption(
        "--all-turns", action="store_true", help="all inputs of tests that try a share with each commit"
    )
    parser.addoption("--quick", action="store_true", help="a few generated inputs where there are many")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to rewrite fixtures from several processes at once; set the number of Hypothesis inputs."""
    if config.getoption("--update-fixtures") and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--update-fixtures and -n exclude each other")
    # The duration depends on the machine, and on its other load.
    settings.register_profile(
        "trainshift",
        max_examples=30 if config.getoption("--quick") else 300,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("trainshift")
    # Collected tests stay: searching them for garbage takes a fifth of the time.
    gc.set_threshold(200_000, 50, 50)


def pytest_report_header(config: pytest.Config) -> str:
    """Name the commit that selects the inputs to test."""
    return (
        "turns: all" if config.getoption("--all-turns") else f"turns: of {commit()[:12]} (all: --all-turns)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of other rules, and slow ones: huge inputs, most of the sampled cases."""
    if config.getoption("--rule"):
        _keep(config, items, _concerned(items, config.getoption("--rule")))
    if config.getoption("--update-fixtures"):
        _keep(config, items, [item for item in items if _is_fixture(item)])
    if not (config.getoption("--all-turns") or config.getoption("--single-runs")):
        _keep(config, items, [item for item in items if _has_turn(item)])
    if config.getoption("--quick"):
        quick = [item for item in items if not item.get_closest_marker("slow")]
        sampled = [
            item for item in quick if item.get_closest_marker("sampled") or item.path.parent.name in _WHOLE
        ]
        left_out = {item for index, item in enumerate(sampled) if index % _EVERY}
        _keep(config, items, _spread([item for item in quick if item not in left_out]))


def _spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """Select a few cases, far from each other, of each test with many cases; but all fixtures."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    steps = {name: -(-len(same) // _MOST) for name, same in cases.items() if not _is_fixture(same[0])}
    kept = {item for name, same in cases.items() for item in same[:: steps.get(name, 1)]}
    return [item for item in items if item in kept]


def _has_turn(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("in_turns")
    if marker is None:
        return True
    one_in, *place = marker.args
    return has_turn(*((place[0], one_in, place[1]) if place else (item.nodeid, one_in)))


def _is_fixture(item: pytest.Item) -> bool:
    return "update_fixtures" in getattr(item, "fixturenames", ())


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    left_out = set(items) - set(kept)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = kept


def _concerned(items: list[pytest.Item], wanted: str) -> list[pytest.Item]:
    """The tests whose parameters or code name the rule, and those that look at all rules together."""
    try:
        code = find_rule(wanted).code
    except UnknownRule as error:
        meant = f"; did you mean {' or '.join(error.similar)}?" if error.similar else ""
        raise pytest.UsageError(f"--rule: there is no rule {wanted!r}{meant}") from None
    pattern = re.compile(rf"(?<![a-z0-9]){code}(?![a-z0-9])", re.IGNORECASE)
    named = {item for item in items if pattern.search(f"{item.name}\n{_code(item)}")}
    if not named:
        raise pytest.UsageError(f"--rule: none of these tests is about {code}")
    return [item for item in items if item in named or item.get_closest_marker("every_rule")]


def _code(item: pytest.Item) -> str:
    """The test's function, without its decorators, which may name other rules."""
    if not isinstance(item, pytest.Function):
        return ""
    decorators, mark, body = f"\n{inspect.getsource(item.function)}".partition("def test_")
    return body if mark else decorators


def pytest_collection_finish() -> None:
    """Collect garbage once after collection, and then freeze the collected tests, which live to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # Like the server: the objects of a test are in use until it ends.


@pytest.fixture
def update_fixtures(request: pytest.FixtureRequest) -> bool:
    """Return whether expectations are rewritten instead of checked."""
    return bool(request.config.getoption("--update-fixtures"))


@pytest.fixture
def quick(request: pytest.FixtureRequest) -> bool:
    """Return whether to try a few generated inputs only (the quick loop)."""
    return bool(request.config.getoption("--quick"))


@pytest.fixture
def turns(request: pytest.FixtureRequest) -> Turns:
    """The share of this test's inputs that the commit tries."""
    return Turns(request.node.nodeid, bool(request.config.getoption("--all-turns")))
