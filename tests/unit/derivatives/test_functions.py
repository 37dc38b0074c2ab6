"""Functions of all kinds in both modes, against central differences, and gradients differentiated again."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from support.derived import FOLDER, Trial, alone, close, loaded, made, moved, names_of, points
from trainshift.derivatives import Derived, Refused, derive

TEXT = (FOLDER / "numbers.py").read_text(encoding="utf-8")
POINTS = points(TEXT)
ARRAYS = (FOLDER / "arrays.py").read_text(encoding="utf-8")
COUNTS = ("n", "i", "k")


def _trial(name: str) -> Trial:
    fixed = tuple(each for each, value in POINTS[name].items() if isinstance(value, int))
    return Trial(TEXT, name, POINTS[name], fixed)


@pytest.mark.parametrize("name", POINTS)
def test_of_numbers(name: str) -> None:
    trial = _trial(name)
    trial.forward()
    trial.reverse()


@pytest.mark.parametrize("name", POINTS)
def test_a_gradient_can_be_differentiated_again(name: str) -> None:
    _trial(name).twice()


def _arrays() -> dict[str, dict[str, Any]]:
    import numpy

    draw = numpy.random.RandomState(0).randn

    def spd(size: int) -> Any:
        root = draw(size, size)
        return root @ root.T + size * numpy.eye(size)

    return {
        "logistic_loss": {"w": draw(3), "b": 0.3, "features": draw(5, 3), "labels": (draw(5) > 0) * 1.0},
        "softmax_xent": {"logits": draw(4, 3), "onehot": numpy.eye(3)[[0, 1, 2, 0]]},
        "mlp": {"params": [(draw(3, 4), draw(4)), (draw(4, 2), draw(2))], "x": draw(5, 3)},
        "mlp_dict": {
            "params": {"w1": draw(3, 4), "b1": draw(4), "w2": draw(4, 2), "b2": draw(2)},
            "x": draw(5, 3),
        },
        "rnn": {"wx": draw(3, 2), "wh": draw(3, 3), "b": draw(3), "xs": draw(4, 2)},
        "kalman": {
            "F": draw(2, 2),
            "H": draw(2, 2),
            "Q": spd(2),
            "R": spd(2),
            "x": draw(2),
            "P": spd(2),
            "zs": draw(3, 2),
        },
        "normalize": {"x": draw(4, 3)},
        "store": {"x": draw(3), "w": draw(4)},
        "gauss": {"a": spd(3), "b": draw(3)},
        "conv1d": {"x": draw(6), "k": draw(3)},
        "lstm_step": {"w": draw(8, 5), "x": draw(3), "h": draw(2), "c": draw(2)},
        "einsum_attn": {"q": draw(3, 2), "k": draw(4, 2), "v": draw(4, 2)},
        "misc": {"x": draw(6), "y": draw(6)},
        "fancy": {"x": draw(4), "idx": numpy.array([0, 1, 1, 3])},
        "inplace": {"x": draw(4), "w": draw(4)},
        "point": {"p": draw(2)},
        "gram": {"x": draw(3, 3) + 2 * numpy.eye(3), "s": 5.0},
        "chol": {"a": draw(3, 3), "b": draw(3)},
        "hv": {"x": draw(4)},
    }


@pytest.mark.proof
def test_of_arrays() -> None:
    for name, args in _arrays().items():
        trial = Trial(ARRAYS, name, args, ("idx", "labels", "features", "onehot", "zs", "H", "P"))
        trial.forward()
        trial.reverse()
        if name not in ("misc", "gram", "chol"):
            trial.twice()


@pytest.mark.slow
@pytest.mark.parametrize(("file", "wrt"), [("refused.py", None), ("gone_through.py", ["x"])])
def test_what_is_refused_is_refused_at_its_line_in_both_modes(file: str, wrt: list[str] | None) -> None:
    text = (FOLDER / file).read_text(encoding="utf-8")
    lines = text.splitlines()
    for mode in ("forward", "reverse"):
        wanted = {
            (number, what, message)
            for number, line in enumerate(lines, 1)
            for word, what, message in re.findall(
                r"# (\w+ )?(refused|shared): (.*?)(?= # reverse (?:refused|shared): |$)", line
            )
            if word in ("", f"{mode} ")
        }
        found: set[tuple[int, str, str]] = set()
        for name in names_of(text) if wrt is None else re.findall(r"^def (\w+)\(x, w\)", text, re.MULTILINE):
            answer = derive(text, name, mode, wrt)
            if isinstance(answer, Derived):
                found |= {(each.line, "shared", each.message) for each in answer.shared}
            else:
                found |= {(each.line, "refused", each.message) for each in answer.refusals}
        assert wanted - found == set()
        assert found - wanted == set()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["damped", "power", "tree_sum", "crossing"])
def test_made_again_it_is_the_same_and_a_change_replaces_it(mode: str, name: str) -> None:
    text = (FOLDER / "examples.py").read_text(encoding="utf-8")
    wrt = [
        each
        for each in ("x", "k", "tree", "a", "b")
        if each in text.partition(f"def {name}(")[2].partition(")")[0]
    ]
    first = made(text, name, mode, wrt)
    assert made(first.text, name, mode, wrt).edits == ()
    assert first.text.startswith(text.partition(f"def {name}(")[0])
    changed = first.text.replace(f"def {name}(", f"def {name}(", 1).replace(
        "return k * x", "return 2 * k * x", 1
    )
    again = made(changed, name, mode, wrt)
    assert loaded(again.text)
    assert again.text.count(f"def {first.made}(") == 1


def test_a_comment_stays_with_the_line_that_a_lambda_is_taken_from() -> None:
    both = "    # both\n    both = [lambda t: t * x, lambda t: t + x]  # two\n"
    text = f"def f(x):\n{both}    return both[0](x) * both[1](x)\n"
    for mode in ("forward", "reverse"):
        lines = [each.strip() for each in made(text, "f", mode, ["x"]).text.splitlines()[5:]]
        place = lines.index("# both")
        assert lines[place + 1].startswith("both = [")
        assert lines[place + 1].endswith("]  # two")


@pytest.mark.parametrize("alias", ["math", "m"])
def test_math_of_tensorflow_is_not_the_module(alias: str) -> None:
    told = (
        f"import tensorflow as tf\nimport math as {alias}\n\n\n"
        if alias != "math"
        else "import tensorflow as tf\n\n\n"
    )
    found = made(
        f"{told}def f(table):\n    return tf.reduce_sum(tf.gather(table, [0, 2]) ** 2)\n",
        "f",
        "reverse",
        ["table"],
    )
    assert "tf.math.unsorted_segment_sum(" in found.text
    assert "import math\n" not in found.text


def test_comments_stay() -> None:
    text = (FOLDER / "examples.py").read_text(encoding="utf-8")
    for name, comment in (("damped", "# stiff below zero"), ("power", "# one factor each time")):
        for mode in ("forward", "reverse"):
            assert made(text, name, mode, ["x"]).edits[-1].text.count(comment) == 1


@pytest.mark.parametrize("name", ["damped", "power", "tree_sum", "crossing", "logistic_loss"])
def test_the_examples_of_the_specification_come_out_as_they_are_printed(name: str) -> None:
    printed = (FOLDER / "printed.txt").read_text(encoding="utf-8").split("----\n")
    by = {"logistic_loss": ["w", "b"], "power": ["x"], "crossing": ["a", "b"], "tree_sum": ["x", "tree"]}
    text = (FOLDER / "examples.py").read_text(encoding="utf-8")
    for mode in ("forward", "reverse"):
        found = made(text, name, mode, by.get(name, ["x", "k"])).edits[-1].text
        own = [
            each
            for each in found.splitlines()
            if each.strip() and '"""' not in each and not each.strip().startswith("#")
        ]
        for wanted in printed:
            if wanted.startswith(f"def {name}_{'jvp' if mode == 'forward' else 'grad'}("):
                lines = [each for each in wanted.splitlines() if each]
                start = own.index(lines[0])
                assert own[start : start + len(lines)] == lines


MORE: dict[str, dict[str, Any]] = {
    "deep": {"xs": [0.1, 0.2, 0.3], "i": 0},
    "linked": {"node": (1.2, (0.7, (2.0, None))), "x": 0.5},
    "gd": {"x0": 0.3, "y0": 0.4, "lr": 0.1, "steps": 5},
    "lorenz": {"state": (1.0, 2.0, 3.0), "sigma": 10.0, "rho": 28.0, "beta": 2.0, "dt": 0.01, "n": 4},
    "matmul": {"a": [[1.0, 2.0], [3.0, 4.0]], "b": [[0.5, 0.6, 0.1], [0.2, 0.3, 0.4]]},
    "lu_det": {"m": [[1.0, 2.0, 0.5], [3.0, 4.0, 1.0], [0.3, 0.2, 5.0]]},
    "pipeline": {"a": 0.5, "b": 0.3, "x": 0.7},
    "use_counter": {"step": 0.7, "x": 1.2},
    "bisect_like": {"a": 0.0, "b": 3.0, "target": 2.0},
    "sum_pairs": {"xs": [0.1, 0.9, 0.4]},
    "dp": {"costs": [1.0, 2.0, 0.5, 0.7]},
    "smooth": {"xs": [1.0, 2.0, 3.0], "alpha": 0.4},
    "slices": {"xs": [1.0, 2.0, 3.0, 0.5]},
    "mutual": {"p": 0.4, "q": 0.6, "depth": 3},
    "nested_fn": {"x": 0.4, "y": 0.6},
    "ifs": {"x": 0.4, "y": 0.6},
    "ret_none": {"x": 0.4},
    "polylist": {"roots": [1.0, 2.0], "x": 0.3},
    "while_true": {"x": 0.3},
    "annotated": {"x": 0.33},
}


@pytest.mark.parametrize("name", MORE)
def test_of_numbers_too(name: str) -> None:
    text = (FOLDER / "more.py").read_text(encoding="utf-8")
    fixed = tuple(each for each, value in MORE[name].items() if isinstance(value, int))
    trial = Trial(text, name, MORE[name], fixed)
    trial.forward()
    trial.reverse()


def test_a_million_rounds_and_deep_recursion_do_not_overflow() -> None:
    text = (FOLDER / "more.py").read_text(encoding="utf-8")
    _, (slope,) = loaded(made(text, "million", "reverse", ["x"]).text).million_grad(0.3, 10**6)
    assert slope == pytest.approx(1.0)
    module = loaded(made(text, "deep", "reverse", ["xs"]).text)
    _, (bars,) = module.deep_grad([0.1] * 900, 0)
    assert len(bars) == 900


FURTHER: dict[str, dict[str, Any]] = {
    "cap_list": {"xs": [0.5, 0.7], "y": 1.2},
    "cap_param": {"w": [0.5, 0.7], "x": 1.2},
    "rows_read": {"m": [[1.0, 2.0], [3.0, 4.0]], "v": [0.5, 0.6]},
    "sorted_key": {"xs": [0.5, 0.1, 0.9]},
    "power_rule": {"x": 1.1, "n": 5},
    "cond_in_loop": {"xs": [1.0, 0.3, 0.7, -1.0, 2.0], "t": 0.4},
    "dict_grow": {"xs": [1.0, 2.0, 3.0]},
    "tuple_state": {"x": 0.4, "n": 3},
    "swap_loop": {"x": 0.4, "y": 0.6, "n": 4},
    "adam": {"g": 0.7, "lr": 0.1},
    "listed_on_one_way": {"x": 0.7, "ys": [0.5, 1.2]},
    "zipped_with_new": {"xs": [0.5, 0.7, 1.2], "y": 0.4},
    "loop_else": {"xs": [0.5, 0.7], "y": 0.4},
    "summed_and_joined": {"x": 0.4},
    "summed_twice": {"xs": [0.5, 0.7]},
    "popped_unread": {"x": 0.4},
    "chained_unread": {"x": 0.4, "y": 0.7},
    "called_by_name": {"a": 0.3, "x": 0.7},
    "named_in_containers": {"a": 0.3, "x": 0.7},
    "named_elsewhere": {"a": 0.3, "x": 0.7},
    "popped_by_key": {"x": 0.7, "options": {"rate": 0.4, "scale": 1.2}},
    "popped_first": {"x": 0.7, "queue": {0: 0.4, 1: 1.2}},
    "sums_of_squares": {"x": 0.7, "steps": [0.4, 1.2]},
    "changed_two_calls_away": {"x": 0.7},
    "lambda_that_is_replaced": {"x": 0.7},
    "pairs_of_a_dict": {"d": {"a": 1.0, "b": 2.0, "c": 0.5}, "k": 0.3},
    "scores": {"events": [(0.0, "a", 1.0), (1.0, "b", 3.0), (2.5, "a", 2.0)], "decay": 0.9},
    "walked_twice": {"tree": (1.0, [(2.0, []), (0.3, [(1.1, [])])]), "scale": 0.7},
    "remainder_of_a_remainder": {"a": [1.0, 2.0, 0.5, 1.5], "b": [0.3, 1.0, 2.0]},
    "keys_of_one_name": {"d": {"a": 1.0, "b": 2.0}, "e": {"q": 1.0, "bbb": 0.5}},
    "keys_in_order": {"curve": {1: 0.4, 5: 0.7, 2: 0.6}, "t": 2.5},
    "appended_as_it_is": {"x": 0.3, "pair": (1.0, 0.4), "pairs": [(0.2, 0.6)]},
    "captured_and_never_called": {"x": 0.3, "pair": (1.0, [2.0, 3.0]), "values": [0.5, 0.7]},
    "pascal": {"row": [0.5, 0.7], "n": 3},
    "breadth_first": {"tree": (1.0, [(2.0, []), (0.5, [(3.0, [])])]), "rate": 0.7},
    "told_to_listeners": {"x": 0.7, "gains": [0.4, 1.2]},
    "of_a_text": {"names": {"a": 0.7, "b": 0.4}},
    "determinant": {"rows": [[1.0, 2.0, 0.5], [0.3, 1.5, 2.2], [0.7, 0.1, 1.1]]},
    "updated_without_change": {"state": {"x": 1.0, "v": 0.4}, "rows": [{"y": 0.7}, {"y": 0.3}], "k": 0.6},
    "of_two_kinds": {"xs": [0.7, 0.4, 1.1], "k": 0.6},
    "chosen_where_it_is_called": {"x": 0.7, "k": 0.6},
    "of_a_dict_or_a_list": {"some": {"a": 1.0, "b": 0.4}, "others": [0.7, 1.2, 0.3], "k": 0.6},
}


def test_a_tree_has_lists_and_dicts() -> None:
    text = (FOLDER / "further.py").read_text(encoding="utf-8")
    trial = Trial(text, "map_of_a_tree", {"tree": {"a": 1.0, "b": [2.0, {"c": 0.3}]}, "k": 0.6})
    trial.forward()
    trial.reverse()


def test_what_is_given_none_is_left_so() -> None:
    text = alone((FOLDER / "further.py").read_text(encoding="utf-8"), "legendre")
    grad = loaded(made(text, "legendre", "reverse", ["x"]).text).legendre_grad
    value, (bar,) = grad(3, 0.5)
    assert (value, bar) == (-0.4375, pytest.approx(0.375))
    known = {0: 1.0, 1: 0.5}
    assert grad(2, 0.5, known)[1] == (pytest.approx(0.75),)
    assert known == {0: 1.0, 1: 0.5, 2: -0.125}


def test_what_is_not_differentiated_by_has_no_tangent_though_it_is_in_what_is_changed() -> None:
    """`forward` returns only the results that have a tangent, by name."""
    text = alone((FOLDER / "further.py").read_text(encoding="utf-8"), "evaluated")
    terms = ("add", ("mul", "x", "y"), ("mul", "x", 2.5))
    jvp = loaded(made(text, "evaluated", "forward", ["env"]).text).evaluated_jvp
    env, dots = {"x": 0.5, "y": 2.0}, {"x": 1.0, "y": 0.0}
    assert jvp(terms, env, env_dot=dots) == (2.25, 4.5)
    again = made(text, "evaluated", "reverse", ["env"])
    assert loaded(again.text).evaluated_grad(terms, env) == (2.25, ({"x": 4.5, "y": 0.5},))
    assert made(again.text, again.made, "forward", ["env"])


@pytest.mark.parametrize("name", FURTHER)
def test_of_containers_and_closures(name: str) -> None:
    text = (FOLDER / "further.py").read_text(encoding="utf-8")
    fixed = tuple(each for each, value in FURTHER[name].items() if isinstance(value, int))
    trial = Trial(text, name, FURTHER[name], fixed)
    trial.forward()
    trial.reverse()
    trial.twice()


CHANGED = (FOLDER / "changed.py").read_text(encoding="utf-8")
LATER = names_of(CHANGED)[names_of(CHANGED).index("slices_of_other_lengths") :]
AGAIN = [each for each in LATER if f"def {each}(x, y, zs, n)" in CHANGED]
POINT = {"x": 0.7, "y": -0.3, "zs": [0.4, 1.1, -0.6], "n": 3}


@pytest.mark.parametrize(
    "name", [each for each in names_of(CHANGED) if f"def {each}(x, y, zs, n)" in CHANGED]
)
def test_of_what_is_changed(name: str) -> None:
    trial = Trial(CHANGED, name, POINT, ("n",))
    trial.forward()
    trial.reverse()
    if name in AGAIN:
        trial.twice()


@pytest.mark.slow
@pytest.mark.parametrize("name", AGAIN)
def test_by_one_parameter_alone_it_is_the_same(name: str) -> None:
    """Values without a derivative are read, and restored, like those with one."""
    value = moved(getattr(loaded(CHANGED), name)(**copy.deepcopy(POINT)), iter([0.7] * 99), True)
    text = alone(CHANGED, name)
    by_all, by_x = made(text, name, "reverse", ["x", "y", "zs"]), made(text, name, "reverse", ["x"])
    _, (wanted, *_) = getattr(loaded(by_all.text), by_all.made)(**copy.deepcopy(POINT), value_bar=value)
    _, (found,) = getattr(loaded(by_x.text), by_x.made)(**copy.deepcopy(POINT), value_bar=value)
    assert close(found, wanted, 1e-12)


SHARED = (FOLDER / "shared.py").read_text(encoding="utf-8")


@pytest.mark.proof
@pytest.mark.parametrize("name", [each for each in names_of(SHARED) if f"def {each}(x)" in SHARED])
def test_of_what_is_changed_by_another_name(name: str) -> None:
    """It is refused, or transposes tangents, at the lines that say so; the derivative is right."""
    start = SHARED[: SHARED.index(f"def {name}(")].count("\n") + 1
    lines = SHARED.partition(f"def {name}(")[2].partition("\ndef ")[0].splitlines()
    refused = {start + place for place, line in enumerate(lines) if "# " in line}
    reverse = derive(SHARED, name, "reverse")
    places = reverse.shared if isinstance(reverse, Derived) else reverse.refusals
    assert {each.line for each in places} == refused
    trial = Trial(SHARED, name, {"x": 0.7})
    if isinstance(reverse, Derived):
        trial.reverse()
    forward = derive(SHARED, name, "forward")
    if isinstance(forward, Derived):
        trial.forward()
    else:
        assert isinstance(reverse, Refused)
        assert forward.refusals == reverse.refusals
    assert isinstance(forward, Derived) == ("# reverse" in "".join(lines))


@pytest.mark.proof
def test_of_arrays_that_are_changed() -> None:
    import numpy

    text = (FOLDER / "arrays_changed.py").read_text(encoding="utf-8")
    for name in names_of(text):
        point = {"x": numpy.array([0.7, -0.4, 1.2, 0.5]), "w": numpy.array([0.6, 0.8, -0.5, 1.1])}
        trial = Trial(text, name, point)
        trial.forward()
        trial.reverse()
        trial.twice()


@pytest.mark.proof
def test_of_batches() -> None:
    import numpy

    draw = numpy.random.RandomState(5).randn
    text = (FOLDER / "batches.py").read_text(encoding="utf-8")
    args = {"X": draw(5, 3), "W1": draw(3, 4), "b1": draw(4), "W2": draw(4, 3), "b2": draw(3)}
    args["Y"] = numpy.eye(3)[[0, 1, 2, 0, 1]]
    for name in re.findall(r"^def (\w+)\(X, ", text, re.MULTILINE):
        trial = Trial(text, name, args, ("Y",))
        trial.forward()
        trial.reverse()
        trial.twice()


@pytest.mark.proof
def test_of_arrays_too() -> None:
    import numpy

    draw = numpy.random.RandomState(1).randn
    text = (FOLDER / "arrays_too.py").read_text(encoding="utf-8")
    points: dict[str, dict[str, Any]] = {
        "attention": {"x": draw(4, 3), "wq": draw(3, 2), "wk": draw(3, 2), "wv": draw(3, 2)},
        "ridge": {"x": draw(6, 3), "y": draw(6), "lam": 0.5},
        "deep_net": {"params": [(draw(3, 4), draw(4)), (draw(4, 2), draw(2))], "x": draw(5, 3)},
        "scale_shift": {"x": draw(5, 3), "gamma": draw(3), "beta": draw(3)},
        "heat": {"u": draw(7), "alpha": 0.1, "n": 3},
        "heat_inplace": {"u": draw(7), "alpha": 0.1, "n": 3},
        "logsumexp": {"x": draw(5)},
        "gmm": {"x": draw(5, 2), "mu": draw(3, 2), "logs": draw(3)},
        "quad": {"x": draw(3), "a": draw(3, 3)},
        "scalars": {"a": 0.3, "x": draw(3)},
        "of_lists": {"xs": [0.3, 0.7, 1.1], "a": 0.9},
    }
    for name, args in points.items():
        trial = Trial(text, name, args, ("n",))
        trial.forward()
        trial.reverse()


SWAPPED = """\
def swapped(x, xs, rows, n):
    for _ in range(2):
        x += rows[1][1] * x
    if n > 1:
        rows[0], rows[1] = rows[1], rows[0]
    return xs
"""


def test_rows_that_are_swapped_have_adjoints_as_long_as_they_were() -> None:
    found = derive(SWAPPED, "swapped")
    assert isinstance(found, Derived)
    here: dict[str, Any] = {}
    exec(found.text, here)
    rows = [[1.0, 2.0], [3.0, 4.0, 5.0]]
    _, bars = here["swapped_grad"](0.5, [0.7], rows, 2, value_bar=[1.0])
    assert bars == (0.0, [1.0], [[0.0, 0.0], [0.0, 0.0, 0.0]])
    assert rows == [[3.0, 4.0, 5.0], [1.0, 2.0]]


LEFT = """\
def left(x, rows, item):
    box = {key: item[1] for key in "a"}
    box["a"][0] *= x
    rows[0][1] = x * rows[1][0]
    rows = [rows[1], rows[0]]
    return rows[0][0] * rows[1][1] + box["a"][0]
"""


def test_what_an_argument_holds_is_left_as_the_function_leaves_it() -> None:
    """The object itself, not a copy: the caller may have other names for it."""
    found = derive(LEFT, "left")
    assert isinstance(found, Derived)
    here: dict[str, Any] = {}
    exec(found.text, here)
    first, second, third = [1.0, 2.0], [3.0, 4.0], [0.5]
    rows, item = [first, second], (0.25, third)
    here["left_grad"](2.0, rows, item)
    assert rows[0] is first
    assert (first, second, third) == ([1.0, 6.0], [3.0, 4.0], [1.0])
