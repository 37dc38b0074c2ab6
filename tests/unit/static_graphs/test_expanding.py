"""Static functions as graph code: the rules, the refusals, and that all other text is kept."""

from __future__ import annotations

from textwrap import dedent

import pytest

from trainshift.core.program import Program
from trainshift.python.names.script import Script, read_script
from trainshift.static_graphs.expanding.door import Expansion, expand
from trainshift.static_graphs.expanding.helpers import HELPERS


def expanded(text: str, function: str = "", line: int | None = None) -> Expansion:
    """The expansion of a script."""
    script = read_script(dedent(text))
    assert isinstance(script, Script)
    return expand(Program(script), function, line)


def body_of(text: str) -> str:
    """The static function of a script after the expansion, which must not be refused."""
    found = expanded(f"import paddle\n\n\n@paddle.jit.to_static\n{dedent(text)}")
    assert not found.refused, found.refused
    again = expanded(found.result)
    assert not again.edits
    return found.result.partition("@paddle.jit.to_static\n")[2]


def reason(text: str) -> str:
    """The reason why the static function of a script is refused; the script stays unchanged."""
    found = expanded(f"import paddle\n\n\n@paddle.jit.to_static\n{dedent(text)}")
    assert not found.edits
    return f"{found.refused[0].code} {found.refused[0].reason}"


def test_branches_hand_on_what_is_read_later() -> None:
    assert body_of(
        """\
        def f(x):
            # which way
            if x.sum() > 0:  # positive
                y = x * 2
                n = 1
            elif x.mean() > -5:
                y = x  # the same
                n = 2
            else:
                y = x - 1
                n = 3
            return y, n
        """
    ) == dedent(
        """\
        def f(x):
            # which way
            # positive
            def if_true():
                y = x * 2
                n = 1
                return y, paddle.full([], n, dtype="int64")
            def if_false():
                def if_true():
                    y = x  # the same
                    n = 2
                    return paddle.assign(y), paddle.full([], n, dtype="int64")
                def if_false():
                    y = x - 1
                    n = 3
                    return y, paddle.full([], n, dtype="int64")
                y, n = paddle.static.nn.cond(x.mean() > -5, if_true, if_false)
                return y, n
            y, n = paddle.static.nn.cond(x.sum() > 0, if_true, if_false)
            return y, n
        """
    )


def test_loops_over_tensors_and_ranges_count() -> None:
    assert body_of(
        """\
        def f(x, n):
            s = paddle.zeros([3])
            for k, row in enumerate(x, 1):
                s = s + paddle.exp(row) * k
            for i in range(2, paddle.max(x), 2):
                s = s + i
            while s.sum() < 3:
                s = s + 1
            return s
        """
    ) == dedent(
        """\
        def f(x, n):
            s = paddle.zeros([3])
            index = 0
            def loop_cond(index, s):
                return index < paddle.shape(x)[0]
            def loop_body(index, s):
                k = index + 1
                row = x[index]
                s = s + paddle.exp(row) * k
                return index + 1, s
            index, s = static_while(loop_cond, loop_body, (index, s))
            stop = paddle.max(x)
            i = 2
            def loop_cond(i, s):
                return i < stop
            def loop_body(i, s):
                s = s + i
                return i + 2, s
            i, s = static_while(loop_cond, loop_body, (i, s))
            def loop_cond(s):
                return s.sum() < 3
            def loop_body(s):
                s = s + 1
                return (s,)
            (s,) = static_while(loop_cond, loop_body, (s,))
            return s
        """
    )


def test_a_break_sets_a_flag_before_its_own_loop() -> None:
    found = body_of(
        """\
        def f(x):
            s = paddle.zeros([3])
            for i in range(10):
                if s.sum() > 20:
                    break  # enough
                s = s + paddle.exp(x)
            return s
        """
    )
    assert 'i = paddle.full([], 0, dtype="int64")' in found
    assert 'broke = paddle.full([], True, dtype="bool")  # enough' in found
    assert "return paddle.logical_and(i < 10, paddle.logical_not(broke))" in found


def test_early_returns_put_the_rest_into_the_other_branch() -> None:
    found = body_of(
        """\
        def f(x):
            if x.sum() > 0:
                return x
            # the rest
            y = x * 2
            return y
        """
    )
    assert found.endswith(
        "    result = paddle.static.nn.cond(x.sum() > 0, if_true, if_false)\n    return result\n"
    )
    assert "return paddle.assign(x)" in found
    assert "# the rest" in found


def test_python_control_flow_stays_byte_for_byte() -> None:
    text = """\
    import paddle

    @paddle.jit.to_static
    def f(x, deep: bool = True):
        if deep :
            x = x+1
        for i in range( 3 ):
            x = x * i
        return x
    """
    found = expanded(text)
    assert (found.edits, found.refused) == ([], [])


def test_sizes_are_asked_of_the_graph_where_it_does_not_know_them() -> None:
    text = """\
    import paddle
    from paddle.static import InputSpec

    @paddle.jit.to_static(full_graph=True{spec})
    def f(x):
        n = x.shape[0]
        return x.sum() / n
    """
    assert not expanded(text.format(spec="")).edits
    found = expanded(text.format(spec=", input_spec=[InputSpec([None, 3])]"))
    assert "n = paddle.shape(x)[0]" in found.result


def test_only_what_is_called_stands_below_the_imports() -> None:
    found = expanded(
        """\
        import paddle
        import math

        @paddle.jit.to_static
        def f(x):
            while x.sum() < 3:
                x = x + 1
            return x
        """
    )
    head = found.result.partition("@paddle")[0]
    assert "def static_while(" in head
    assert not any(f"def {name}(" in head for name in HELPERS if name != "static_while")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("if x.sum() > 0:\n        y = x\n    return y", "PD13"),
        ("if x.sum() > 0:\n        k = 1\n    else:\n        k = 'a'\n    return k", "PD12"),
        (
            "if x.sum() > 0:\n        k = 1\n    else:\n        k = 1.5\n    return k",
            "PD12",
        ),
        ("if x.sum() > 0:\n        self.k = x\n    return x", "attribute"),
        ("if x.sum() > 0:\n        y = 1\n        raise ValueError\n    return x", "assert"),
        ("if x.sum() > 0:\n        return x\n    print(1)", "PD11"),
        ("while x.sum() > 0:\n        break\n    else:\n        x = x\n    return x", "else"),
        (
            "x = paddle.exp(x)\n    x[0] = 1\n    while x.sum() > 0:\n        x = x - 1\n    return x",
            "writes into",
        ),
        ("ok = x.sum() and x.max()\n    return ok", "`and` and `or`"),
        ("y = max(x.sum(), 3)\n    if y > 3:\n        y = y + 1\n    return y", "`max()`"),
        ("if x.sum() > 0:\n        x = f(x)\n    return x", "calls itself"),
    ],
)
def test_refused_with_a_reason(code: str, said: str) -> None:
    assert said in reason(f"def f(x, self=None):\n    x = paddle.exp(x)\n    {code}\n")


@pytest.mark.parametrize(
    ("module", "said"), [("lib", "Trainshift cannot see what `lib.net`"), ("scipy", "needs the value")]
)
def test_a_library_is_refused_for_what_it_is(module: str, said: str) -> None:
    head = f"import paddle\nimport {module}\n\n\n@paddle.jit.to_static\ndef f(x):\n    x = paddle.exp(x)\n"
    found = expanded(f"{head}    if x.sum() > 0:\n        x = {module}.net(x)\n    return x\n")
    assert said in found.refused[0].reason


def test_a_list_that_grows_becomes_an_array_that_the_loop_carries() -> None:
    found = body_of(
        """\
        def f(x, n: paddle.Tensor):
            outs = [x]  # the first
            for i in range(n):
                y = paddle.exp(x)
                outs.append(y)
            return paddle.stack(outs, axis=1)
        """
    )
    assert "outs = paddle.tensor.create_array(x.dtype, initialized_list=[x])  # the first" in found
    assert "def loop_body(i, outs):" in found
    assert "    outs.append(y)\n        return i + 1, outs" in found


def test_a_list_that_grows_in_a_branch_leaves_it() -> None:
    found = body_of(
        """\
        def f(x):
            x = paddle.cast(x, "float64")
            outs = []
            if x.sum() > 0:
                outs.append(x * 2)
            else:
                outs.append(x)
            return paddle.concat(outs)
        """
    )
    assert 'outs = paddle.tensor.create_array("float64")' in found
    assert "outs = paddle.static.nn.cond(x.sum() > 0, if_true, if_false)" in found
    assert found.count("(outs=outs):") == 2


def test_a_list_of_python_stays() -> None:
    found = body_of(
        """\
        def f(x):
            outs = []
            for i in range(3):
                outs.append(paddle.exp(x))
            x = paddle.add_n(outs)
            if x.sum() > 0:
                x = x * 2
            return x
        """
    )
    assert "outs = []\n    for i in range(3):\n        outs.append(paddle.exp(x))" in found


def test_a_dict_goes_from_turn_to_turn_as_a_whole() -> None:
    found = body_of(
        """\
        def f(x):
            x = paddle.exp(x)
            state = {"h": x, "n": paddle.zeros([1])}
            while state["h"].sum() < 9:
                state["h"] = state["h"] * 2
                if state["h"].max() > 3:
                    state["n"] = state["n"] + 1
            return state["h"], state["n"]
        """
    )
    assert "def loop_body(state):\n        state = dict(state)\n" in found
    assert "def if_true(state=state):\n            state = dict(state)\n" in found
    assert "return paddle.utils.map_structure(paddle.assign, state)" in found


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("l = []\n    for i in range(n):\n        l.append(n * load())\n    return l[0]", "PD25"),
        ("l = []\n    for i in range(n):\n        l.append(x)\n    return l", "needs a list"),
        ("l = []\n    for i in range(n):\n        l.append(x)\n    return paddle.add_n(l)", "needs a list"),
        (
            "l = []\n    for i in range(n):\n        l.append(x)\n    return paddle.stack(l, axis=-1)",
            "needs a",
        ),
        (
            "l = []\n    for i in range(n):\n        if x.sum() > i:\n            l.append(x)\n    return x",
            "loop",
        ),
        (
            "l = [x]\n    while x.sum() < 3:\n        x = l[-1] + 1\n        l.append(x)\n    return x",
            "dimensions",
        ),
        ("l = [x]\n    for i in range(n):\n        l.insert(0, x)\n    return l[0]", "PD19"),
        ("l = n if n.sum() else []\n    for i in range(n):\n        l.append(x)\n    return x", "PD"),
        ("d = {'a': x}\n    for i in range(n):\n        d['b'] = x\n    return d['a']", "key"),
        ("d = {'a': 1}\n    for i in range(n):\n        d['a'] = x\n    return d['a']", "not a tensor"),
        (
            "d = {'a': x}\n    for i in range(n):\n        d['a'] = x + i\n    return len(d), d['a']",
            "one by one",
        ),
    ],
)
def test_containers_that_no_graph_has_are_refused(code: str, said: str) -> None:
    assert said in reason(f"def f(x, n: paddle.Tensor):\n    x = paddle.exp(x)\n    {code}\n")


def test_two_lists_of_one_statement_both_grow() -> None:
    found = body_of(
        """\
        def f(x, n: paddle.Tensor):
            x = paddle.exp(x)
            a, b = [], []
            for i in range(n):
                a.append(x * i)
                b.append(paddle.exp(x))
            return paddle.stack(a), paddle.stack(b)
        """
    )
    assert "a, b = paddle.tensor.create_array((x * 1).dtype), paddle.tensor.create_array(" in found
    assert "def loop_body(i, a, b):" in found


def test_what_is_expanded_is_not_refused_for_what_it_writes_to() -> None:
    """After an expansion the code no longer shows whether a container is the function's own."""
    text = """\
    import paddle

    @paddle.jit.to_static
    def f(x):
        x = paddle.exp(x)
        slots = [x, x * 2]
        if x.sum() > 5:
            slots[0] = slots[1]
        slots[1] = slots[1] - 1
        return slots[0] + slots[1]
    """
    again = expanded(expanded(text).result)
    assert (again.edits, again.refused) == ([], [])
