"""The traversal of graphs that are given by their successors."""

from __future__ import annotations

from trainshift.python.flow.traversal import closure, least_fixed_point, postorder, reachable

GRAPH = {"a": ["b", "c"], "b": ["d"], "c": ["d", "a"], "d": [], "e": ["a"]}


def test_all_that_follows_is_reached_once() -> None:
    assert sorted(reachable(["a"], GRAPH.__getitem__)) == ["a", "b", "c", "d"]
    assert closure(["e"], GRAPH) == {"a", "b", "c", "d", "e"}
    assert closure(["z"], GRAPH) == {"z"}


def test_the_last_successor_comes_first_and_its_own_successors_next() -> None:
    assert list(reachable(["a"], GRAPH.__getitem__)) == ["a", "c", "d", "b"]


def test_nodes_with_equal_keys_are_one() -> None:
    assert list(reachable([1, -1, 2], lambda node: [], key=abs)) == [2, -1]


def test_successors_are_asked_for_only_when_the_next_node_is_wanted() -> None:
    asked: list[int] = []

    def successors(node: int) -> list[int]:
        asked.append(node)
        return [node + 1]

    found = reachable([0], successors)
    assert [next(found), next(found), next(found)] == [0, 1, 2]
    assert asked == [0, 1]


def test_what_was_seen_before_does_not_come_again() -> None:
    seen = {"c"}
    assert list(reachable(["a"], GRAPH.__getitem__, seen=seen)) == ["a", "b", "d"]
    assert seen == {"a", "b", "c", "d"}


def test_in_postorder_a_node_comes_behind_those_that_it_leads_to() -> None:
    assert postorder("e", GRAPH.__getitem__) == ["d", "b", "c", "a", "e"]


def test_a_set_grows_until_it_gives_no_more() -> None:
    def halves(known: frozenset[int]) -> list[int]:
        return [each // 2 for each in known if each % 2 == 0 and each]

    assert least_fixed_point(frozenset({1000}), halves) == {1000, 500, 250, 125}
    assert least_fixed_point(frozenset(), halves) == frozenset()
