"""The rows of `einsum`, each generated for the subscripts of a call."""

from __future__ import annotations

from trainshift.derivatives.tables.table import Row

# Ones along an axis of an operand.
_ONES = {
    "numpy": "np.ones(np.shape({name})[{axis}])",
    "tensorflow": "tf.ones(tf.shape({name})[{axis}], {name}.dtype)",
}


def einsum(subscripts: str, module: str = "numpy") -> Row | None:
    """The row of a module's `einsum` with these subscripts; None if an operand repeats an index."""
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    parts = given.split(",")
    if not arrow:
        result = "".join(sorted(each for each in set(given) - {","} if given.count(each) == 1))
    if "." in subscripts or any(len(set(each)) < len(each) for each in parts):
        return None
    call = {"numpy": "np", "tensorflow": "tf"}[module] + ".einsum"
    names = tuple(f"x{place}" for place in range(len(parts)))
    reverse: dict[str, str] = {}
    forward: dict[str, str] = {}
    for place, part in enumerate(parts):
        others = [(text, name) for text, name in zip(parts, names, strict=True) if name != names[place]]
        known = set(result).union(*(text for text, _ in others)) if others else set(result)
        ones = [
            (each, _ONES[module].format(name=names[place], axis=axis))
            for axis, each in enumerate(part)
            if each not in known
        ]
        terms = [(result, "d"), *others, *ones]
        left = ",".join(text for text, _ in terms)
        reverse[names[place]] = f"{call}('{left}->{part}', {', '.join(name for _, name in terms)})"
        moved = ", ".join("d" if i == place else name for i, name in enumerate(names))
        forward[names[place]] = f"{call}('{given}->{result}', {moved})"
    return Row(f"{module}.einsum", ("subscripts", *names), reverse, forward, False)
