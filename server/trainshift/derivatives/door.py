"""The one door: `derive`."""

from __future__ import annotations

from collections.abc import Sequence

from trainshift.derivatives.result import Derived, Mode, Refusal, Refused


def derive(
    text: str,
    function: str,
    mode: Mode = "reverse",
    wrt: Sequence[str] | None = None,
    name: str | None = None,
) -> Derived | Refused:
    """The derivative of the top-level `function` of the file `text` (SPEC-AD 3.1).

    `wrt` names the parameters to differentiate by, in the order of the bars; without it, all that can have a
    derivative.  `name` is that of the new function instead of `FUNCTION_grad` or `FUNCTION_jvp`.

    Raises `NotFound` where the text is no Python, or has no such function or parameter.
    """
    return Refused(function, mode, (Refusal(1, 1, "nothing can be differentiated yet"),))
