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

Nothing else is said of such a file, since silence would read as "verified"; only an editor goes on showing
what it found before, until the file can be read again. The exit status is 2.

No comment can suppress it. `TS00 = "off"` or `TS = "off"` in the settings turns it off; `check` then says
that the file was not checked, and its exit status is 0. To leave a file out altogether use `--exclude`, or
`exclude` in the settings.

VS Code does not show it where another extension for Python shows syntax errors already, unless the setting
`trainshift.syntaxErrors` is on.
""",
)
UNUSED_SUPPRESSION = OwnCode(
    "TS01",
    "unused-suppression",
    """A suppression comment suppresses nothing.

The finding is gone, or the comment is on another line. If it stays, it hides the next finding there. The fix
removes the comment, or its unused codes.

A code that is switched off does not count as unused. A comment without codes is judged only while every
restriction is on.
""",
)
UNKNOWN_SUPPRESSION = OwnCode(
    "TS02",
    "unknown-suppression",
    """A suppression comment names a code that does not exist, or cannot be read.

It suppresses nothing, although it looks as if it did. Correct the code, or remove the comment.
""",
)
INTERNAL_ERROR = OwnCode(
    "TS03",
    "internal-error",
    """A restriction failed on this file, which is a defect of Trainshift.

The other restrictions were checked. What this one would find is unknown, so the exit status is 2. Please
report it with the script.
""",
)
UNSUPPORTED_VERSION = OwnCode(
    "TS04",
    "unsupported-version",
    """The project asks for a TensorFlow or Keras that Horovod does not work with.

Horovod 0.28.1 works with TensorFlow 2.12 to 2.15, which bring Keras 2. From TensorFlow 2.16 on it is Keras 3,
which breaks Horovod's tape and its callbacks. So `convert` leaves the scripts of such a project alone.

Nothing is reported where the project allows an older version too, or asks for none.

To convert, ask for an older version in the file that is named, such as `tensorflow>=2.12,<2.16`. To convert
anyway, use `--ignore-versions`, or the setting `trainshift.ignoreVersions` of your editor.

To silence it, put `# trainshift: ignore[TS04]` at the import, or `TS04 = "off"` among the severities of your
settings.
""",
)

OWN_CODES = (SYNTAX_ERROR, UNUSED_SUPPRESSION, UNKNOWN_SUPPRESSION, INTERNAL_ERROR, UNSUPPORTED_VERSION)
