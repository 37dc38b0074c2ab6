"""Helper functions that expanded code calls; they are inserted below the imports of its file."""

from __future__ import annotations

HELPERS = {
    "static_cond": '''def static_cond(pred, true_fn, false_fn):
    """Run one of two functions: in the graph where the condition is a tensor, else in Python."""
    if paddle.is_tensor(pred):
        return paddle.static.nn.cond(pred, true_fn, false_fn)
    return true_fn() if pred else false_fn()
''',
    "static_while": '''def static_while(cond, body, loop_vars):
    """Run a loop: in the graph where its condition is a tensor of the graph, else in Python."""
    if paddle.in_dynamic_mode() or not paddle.is_tensor(cond(*loop_vars)):
        while cond(*loop_vars):
            loop_vars = body(*loop_vars)
        return loop_vars
    def own(value):
        value = paddle.to_tensor(value) if isinstance(value, (bool, int, float)) else value
        return paddle.assign(value) if paddle.is_tensor(value) else value
    return paddle.static.nn.while_loop(cond, body, paddle.utils.map_structure(own, list(loop_vars)))
''',
    "static_value": '''def static_value(value):
    """A tensor of the graph for a number, or for a tensor that has another name too."""
    return paddle.assign(value if paddle.is_tensor(value) else paddle.to_tensor(value))
''',
    "static_assert": '''def static_assert(test, message=""):
    """Assert something of a tensor: when the graph runs, or at once in Python."""
    if paddle.is_tensor(test) and not paddle.in_dynamic_mode():
        paddle.static.nn.control_flow.Assert(test)
    else:
        assert test, message
''',
    "static_print": '''def static_print(*values):
    """Print tensors when the graph runs, or at once in Python."""
    if paddle.in_dynamic_mode():
        print(*values)
        return
    text = ""
    for value in values:
        if paddle.is_tensor(value):
            paddle.static.Print(value, message=text)
            text = ""
        else:
            text += str(value) + " "
''',
}


def helper(name: str, paddle: str) -> str:
    """The text of one of them, with the file's own name for Paddle."""
    return HELPERS[name].replace("paddle.", f"{paddle}.")
