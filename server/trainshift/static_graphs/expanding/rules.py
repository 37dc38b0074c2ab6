"""Rules: what each rule of an expansion writes, in a few words (SPEC-STATIC §5)."""

from __future__ import annotations

RULES = {
    "PS01": "`if` on a tensor as `cond`",
    "PS02": "`while` on a tensor as `while_loop`",
    "PS03": "`for` over a range as `while_loop`",
    "PS04": "`for` over a tensor as `while_loop`",
    "PS05": "`for` over `enumerate` as `while_loop`",
    "PS06": "`break` and `continue` as flags",
    "PS07": "early `return` as a branch",
    "PS08": "`and`, `or`, `not` as logical functions",
    "PS09": "`int`, `float`, `bool` as `cast`",
    "PS10": "`print` of tensors",
    "PS11": "sizes as the graph knows them",
    "PS12": "a conditional expression as `cond`",
    "PS13": "a function that is called",
    "PS14": "`assert` on a tensor",
    "PS15": "a list that grows as a TensorArray",
    "PS16": "a dict or list that is carried as a whole",
    "PS17": "tensors of their own",
    "PS18": "what may be a tensor or not, decided when it runs",
}
