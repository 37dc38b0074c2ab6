"""The checker's own codes: what it reports beside the restrictions."""

from __future__ import annotations

from dataclasses import dataclass

from trainshift.core.text.source import one_line


@dataclass(frozen=True, slots=True)
class OwnCode:
    """A code that is no restriction; `doc` is its page, whose first paragraph is its title."""

    code: str
    name: str
    doc: str

    @property
    def title(self) -> str:
        """What the code tells, in one sentence."""
        return one_line(self.doc.partition("\n\n")[0])


SYNTAX_ERROR = OwnCode(
    "TS00",
    "syntax-error",
    """The file cannot be read as Python.

`trainshift check` says nothing else of such a file, since silence would read as "verified". An editor goes on
showing what it found before, until the file can be read again. The exit status is 2. The code can neither be
suppressed nor switched off; leave the file out with `--exclude` or `exclude` in the settings.
""",
)
UNUSED_SUPPRESSION = OwnCode(
    "TS01",
    "unused-suppression",
    """A suppression comment suppresses nothing.

The statement was changed, or the comment stands on another line than its finding. What is left behind would
hide the next finding there. The fix removes the comment, or those of its codes that are not used.

A code that is switched off is not counted as unused, and a comment without codes is judged only while every
restriction is on: whether it would be needed cannot be seen.
""",
)
UNKNOWN_SUPPRESSION = OwnCode(
    "TS02",
    "unknown-suppression",
    """A suppression comment names a code that does not exist, or cannot be read.

It suppresses nothing, although whoever wrote it believes that it does. Correct the code, or remove the
comment.
""",
)
INTERNAL_ERROR = OwnCode(
    "TS03",
    "internal-error",
    """A restriction failed on this file, which is a defect of Trainshift.

The other restrictions were checked all the same; what this one would have said is not known, so the exit
status is 2. Please report it with the script.
""",
)

OWN_CODES = (SYNTAX_ERROR, UNUSED_SUPPRESSION, UNKNOWN_SUPPRESSION, INTERNAL_ERROR)
