"""A result reads like hand-written code: no overlong lines, one guard for neighbours."""

from __future__ import annotations

import ast
import io
import subprocess
import sysconfig
import tokenize
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from support.fixtures import PROGRAMS, SCRIPTS, TRANSFORM_CASES
from trainshift.core.choices import Choices
from trainshift.engine.cells import Cells
from trainshift.engine.conversion import Status, convert, whole
from trainshift.engine.finishing.edited_text import Manner
from trainshift.engine.finishing.finish import finished
from trainshift.engine.finishing.lines import longest_line
from trainshift.python.names.script import Script, read_script
from trainshift.python.rewrite.line_breaks import relaid, width
from trainshift.python.source.edit import Edit, apply

RUFF = Path(sysconfig.get_path("scripts")) / "ruff"
RESULTS = [
    *(
        (case.name, case.text, case.expected["python after"])
        for case in TRANSFORM_CASES
        if "python after" in case.expected
    ),
    *(
        (
            folder.name,
            (folder / "before.py").read_bytes().decode(),
            (folder / "after.py").read_bytes().decode(),
        )
        for folder in SCRIPTS
    ),
    *(
        (f"{program.name} {path}", program.before.get(path, b"").decode(), text.decode())
        for program in PROGRAMS
        for path, text in program.after.items()
    ),
]
# What no line break makes shorter than 79 columns, and one line that was longer still.
LONGER = {
    "cyclegan_like": ["global hvd_broadcast_done_ab, hvd_broadcast_done_ba, hvd_broadcast_done_critic_a"],
    "emoji_bom": ['f"{mood} epoch {epoch + 1}/{EPOCHS} 📉 {mean:.4f} {spark} 🎯 {acc.result():.2%}"'],
    "hv08_write_on_root: a run that is tracked": [
        "with mlflow.start_run() if hvd.rank() == 0 else contextlib.nullcontext() as run:"
    ],
    "hv11_drop_visible_devices: one of several variables": [
        'os.environ.update(dict(TF_CPP_MIN_LOG_LEVEL="3"), TF_GPU_THREAD_MODE="gpu_private")'
    ],
    "keras_mixed_precision": ["f'{m.name:>10s}  test loss {loss:.3f}  accuracy {acc:.3f}'"],
    "keras_transfer": ["hvd.callbacks.BroadcastGlobalVariablesCallback("],
    "pix2pix_like": [r'f"\n[{time.time() - start:6.2f}s] from step {int(step):4d}: ",'],
}
AVERAGED = '"""Average the gradients over all ranks, without XLA, which knows no Horovod."""'
SENT = '"""Give all ranks rank 0\'s weights, and its optimizers after the first batch."""'
FITTING = """\
import tensorflow as tf

(images, labels), _ = tf.keras.datasets.mnist.load_data()
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile("sgd", "mse")
model.fit(images, labels, epochs=5)
"""


def _too_long(before: str, after: str, longest: int = 0) -> list[str]:
    """The lines of a result that are too long and were not."""
    script = read_script(before)
    assert isinstance(script, Script)
    most = longest or longest_line(script, (), ())
    kept = {line.strip() for line in before.splitlines() if width(line) > most}
    long = (line.strip() for line in after.splitlines() if width(line) > most)
    return [line for line in long if line not in kept]


@pytest.mark.parametrize(("name", "before", "after"), RESULTS, ids=[name for name, _, _ in RESULTS])
def test_no_line_is_too_long_that_was_not(name: str, before: str, after: str) -> None:
    assert _too_long(before.removeprefix("\ufeff"), after) == []


@pytest.mark.slow
@pytest.mark.parametrize("length", [79, 100])
def test_no_line_is_longer_than_the_project_wants(length: int) -> None:
    found = {}
    for name, before, _ in RESULTS:
        after = convert(before, choices=Choices(line_length=length)).text
        long = _too_long(before.removeprefix("\ufeff"), after, length)
        found[name] = [line for line in long if line not in (AVERAGED, SENT)]
    assert {name: lines for name, lines in found.items() if lines} == (LONGER if length < 88 else {})


@pytest.mark.parametrize(("name", "before", "after"), RESULTS, ids=[name for name, _, _ in RESULTS])
def test_no_guard_follows_another(name: str, before: str, after: str) -> None:
    assert _guards_in_a_row(after) <= _guards_in_a_row(before)


def _guards_in_a_row(text: str) -> int:
    found = 0
    for node in ast.walk(ast.parse(text.removeprefix("\ufeff"))):
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            for one, other in pairwise(block if isinstance(block, list) else ()):
                guards = [each for each in (one, other) if isinstance(each, ast.If) and not each.orelse]
                tests = [each.test for each in guards if each.body[0].lineno > each.lineno]
                said = [ast.unparse(each) for each in tests]
                found += len(said) == 2 and said[0] == said[1] and said[0].endswith(".rank() == 0")
    return found


def _is_formatted(text: str) -> bool:
    """Return whether ruff has nothing to format, and the text shows which quotes it has."""
    done = subprocess.run(
        [RUFF, "format", "--isolated", "--line-length", "88", "--check", "-"],
        input=text,
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def _shows_its_quotes(text: str) -> bool:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return any(token.type == tokenize.STRING and not token.string.startswith('"""') for token in tokens)


def _is_formatted_by_black(text: str) -> bool:
    """Return whether black has nothing to format."""
    black = pytest.importorskip("black")
    text = text.removeprefix("\ufeff")
    try:
        return bool(black.format_str(text, mode=black.Mode()) == text)
    except ValueError:  # It is no Python that black can parse.
        return False


@pytest.mark.parametrize("is_formatted", [_is_formatted, _is_formatted_by_black], ids=["ruff", "black"])
def test_what_was_formatted_stays_so(is_formatted: Callable[[str], bool]) -> None:
    """The pinning has the quotes of the specification if the file has no string of its own.

    The remaining code of a strategy (HV17) is the user's own, with its parentheses.
    """
    said = [
        each for each in RESULTS if "\r" not in each[1] and _shows_its_quotes(each[1].removeprefix("\ufeff"))
    ]
    lost = [name for name, before, after in said if is_formatted(before) and not is_formatted(after)]
    assert [name for name in lost if not name.startswith("hv17")] == []


def test_a_project_has_its_own_line_length() -> None:
    longer = convert(FITTING, choices=Choices(line_length=100)).text
    assert (
        '    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")\n'
        in longer
    )
    shorter = convert(FITTING, choices=Choices(line_length=72)).text
    assert max(map(len, shorter.splitlines())) <= 72


def test_the_lines_of_a_file_tell_its_length_where_nothing_else_does() -> None:
    layer = 'tf.keras.layers.Dense(10, activation="relu")'
    long = f"wide = [{layer}, {layer}]\n"
    result = convert(FITTING.replace("model =", f"{long}model =", 1)).text
    assert long in result
    assert (
        '    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")\n'
        in result
    )


def test_guards_of_two_cells_stay_apart() -> None:
    cells = Cells((f"{FITTING}print('one')", "print('two')\nprint('three')"), (1, 2))
    conversion = whole(convert(cells.text, apart=cells.starts), cells)
    assert conversion.status is Status.CONVERTED
    assert conversion.plan is not None
    first, second = cells.edited(conversion.plan.edits).texts
    assert first.endswith("if hvd.rank() == 0:\n    print('one')")
    assert second == "if hvd.rank() == 0:\n    print('two')\n    print('three')"


GUARDED = "if hvd.rank() == 0:\n    a()\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (f"{GUARDED}b()\n", f"{GUARDED}    b()\n"),
        (f"{GUARDED}\n# b\nb()\n", f"{GUARDED}\n    # b\n    b()\n"),
        (f"{GUARDED}else:\n    c()\nb()\n", f"{GUARDED}else:\n    c()\nif hvd.rank() == 0:\n    b()\n"),
        (f"{GUARDED}c()\nb()\n", f"{GUARDED}c()\nif hvd.rank() == 0:\n    b()\n"),
        ("if hvd.rank() == 0: a()\nb()\n", "if hvd.rank() == 0: a()\nif hvd.rank() == 0:\n    b()\n"),
        (
            "if hvd.rank() == 1:\n    a()\nb()\n",
            "if hvd.rank() == 1:\n    a()\nif hvd.rank() == 0:\n    b()\n",
        ),
        ("if hvd.rank() == 0:\n  a()\nb()\n", "if hvd.rank() == 0:\n  a()\nif hvd.rank() == 0:\n    b()\n"),
    ],
)
def test_a_guard_joins_the_one_above_where_both_hold_the_same(text: str, after: str) -> None:
    at = text.index("b()\n")
    edits = (Edit(at, at, "if hvd.rank() == 0:\n    "),)
    assert apply(text, finished(text, edits, Manner("    ", 88))) == after


@pytest.mark.parametrize(
    ("test", "folded"),
    [
        ("step % 10 == 0", "step % 10 == 0 and hvd.rank() == 0"),
        ("one or other", "(one or other) and hvd.rank() == 0"),
        ("(one or other)", "(one or other) and hvd.rank() == 0"),
        ("not 'é' in one", "not 'é' in one and hvd.rank() == 0"),
        ("__name__ == '__main__'", ""),
        ("hvd.size() > 1", ""),
        (f"one == {'x' * 60}", ""),
    ],
)
def test_an_if_takes_up_the_guard_that_is_all_it_holds(test: str, folded: str) -> None:
    text = f"if {test}:  # now\n    # b\n    b(1,\n      2)\n"
    at = text.index("b(1")
    rest = at + len("b(1,\n")
    edits = (Edit(at, at, "if hvd.rank() == 0:\n        "), Edit(rest, rest, "    "))
    after = apply(text, finished(text, edits, Manner("    ", 88, edits)))
    assert after == (text.replace(test, folded, 1) if folded else apply(text, edits))


@pytest.mark.parametrize(
    ("body", "branch", "after"),
    [
        ("a()", "else:", "elif hvd.rank() == 0:"),
        ("a()", "else :  # now", "elif hvd.rank() == 0 :  # now"),
        ("if hvd.rank() == 0:\n        a()", "else:", ""),  # Both branches then look alike.
        ("a()", "else:\n    # b", ""),
    ],
)
def test_an_else_that_holds_only_a_guard_becomes_an_elif(body: str, branch: str, after: str) -> None:
    text = f"if one:\n    {body}\n{branch}\n    b()\n"
    at = text.index("b()")
    edits = (Edit(at, at, "if hvd.rank() == 0:\n        "),)
    result = apply(text, finished(text, edits, Manner("    ", 88, edits)))
    assert result == (text.replace(branch, after) if after else apply(text, edits))


def test_an_if_with_more_to_be_changed_takes_up_no_guard() -> None:
    text = "if one:\n    b()\n"
    guard = Edit(12, 12, "if hvd.rank() == 0:\n        ")
    for waiting in (Edit(15, 15, "\n    hvd.broadcast(0, root_rank=0)"), Edit(3, 6, "one // hvd.size()")):
        every = tuple(sorted((guard, waiting), key=lambda each: each.start))
        assert finished(text, (guard,), Manner("    ", 88, every)) == (guard,)


def test_guards_that_a_person_wrote_stay_as_they_are() -> None:
    text = f"{GUARDED}{GUARDED}c()\n"
    at = text.index("c()\n")
    edits = (Edit(at, at, "hvd.init()\n"),)
    assert finished(text, edits, Manner("    ", 88)) == edits


BROKEN = {
    "model.fit(images, labels, verbose=0, x=1)": ("model.fit(\n    images, labels, verbose=0, x=1\n)"),
    "model.fit(images, labels, epochs=50, verbose=0, x=1)": (
        "model.fit(\n    images,\n    labels,\n    epochs=50,\n    verbose=0,\n    x=1,\n)"
    ),
    "result = call(one, two)(three, four, five)": "result = call(one, two)(\n    three, four, five\n)",
    "rows = data.shard(1, 2).take(3).batch(4)": (
        "rows = (\n    data.shard(1, 2)\n    .take(3)\n    .batch(4)\n)"
    ),
    "return first + second * third - fourth": "return (\n    first + second * third - fourth\n)",
    "for x, y in ds.shard(1, 0).take(100000):": "for x, y in ds.shard(1, 0).take(\n    100000\n):",
    "f([aaaaaaa, bbbbbbbbb, ccccccccc])  # all": "f(\n    [aaaaaaa, bbbbbbbbb, ccccccccc]\n)  # all",
    "values = [aaaaaaa, bbbbbbbbb, ccccccccc]": (
        "values = [\n    aaaaaaa,\n    bbbbbbbbb,\n    ccccccccc,\n]"
    ),
    "fit(verbose=1 if hvd.rank() == 0 else 0)": (
        "fit(\n    verbose=(\n        1 if hvd.rank() == 0 else 0\n    )\n)"
    ),
    "rows = data.shard(1, 2).take(3) \\\n    .batch(4)": (
        "rows = (\n    data.shard(1, 2)\n    .take(3)\n    .batch(4)\n)"
    ),
    "name = 'a string that nothing can break'": "name = 'a string that nothing can break'",
}


def test_a_backslash_stays_where_nothing_but_it_breaks_a_line() -> None:
    assert relaid("with open(one_long_name), \\\n  other_name as file:", "", "    ", 20) is None


@pytest.mark.parametrize(("code", "rows"), BROKEN.items())
def test_a_line_is_broken_as_black_breaks_it(code: str, rows: str) -> None:
    assert relaid(code, "", "    ", 36) == rows
