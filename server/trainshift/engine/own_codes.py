"""The checker's own codes (TS..), reported besides the restrictions."""

from __future__ import annotations

from dataclasses import dataclass

from trainshift.python.source.source import one_line


@dataclass(frozen=True, slots=True)
class OwnCode:
    """A code that is not a restriction's; `doc` is its page, and the first paragraph its title."""

    code: str
    name: str
    doc: str

    @property
    def title(self) -> str:
        """The meaning of the code, in one sentence."""
        return one_line(self.doc.partition("\n\n")[0])


SYNTAX_ERROR = OwnCode(
    "TS00",
    "syntax-error",
    """The file cannot be read as Python.

## Why it matters

Trainshift can say nothing else about the file. Silence would read as "nothing found", so the exit status is
2.

## What to do

Correct the syntax, or leave the file out with `--exclude` or `exclude` in the settings.

## How to silence it

`TS00 = "off"` or `TS = "off"` among the severities; no comment can suppress it. `check` then says that the
file was not checked, and the exit status is 0.

VS Code does not show it where another extension for Python shows syntax errors, unless the setting
`trainshift.syntaxErrors` is on. An editor keeps showing what it found before, until the file can be read.
""",
)
UNUSED_SUPPRESSION = OwnCode(
    "TS01",
    "unused-suppression",
    """A suppression comment suppresses nothing.

## Why it matters

The finding is gone, or the comment is on another line. If it stays, it hides the next finding there.

## What to do

Remove the comment, or its unused codes. The fix does so.

## What is not reported

A code that is switched off, and a comment without codes unless every restriction is on.
""",
)
UNKNOWN_SUPPRESSION = OwnCode(
    "TS02",
    "unknown-suppression",
    """A suppression comment names a code that does not exist, or cannot be read.

## Why it matters

It suppresses nothing, although it looks as if it did.

## What to do

Correct the code, or remove the comment.
""",
)
INTERNAL_ERROR = OwnCode(
    "TS03",
    "internal-error",
    """A restriction failed on this file, which is a defect of Trainshift.

## Why it matters

The other restrictions were checked. What this one would find is unknown, so the exit status is 2.

## What to do

Please report it with the script.
""",
)
UNSUPPORTED_VERSION = OwnCode(
    "TS04",
    "unsupported-version",
    """The project asks for a TensorFlow or Keras that Horovod does not work with, or asks for it wrongly.

## Why it matters

Horovod 0.28.1 works with TensorFlow 2.12 to 2.15. From 2.16 on, Keras 3 breaks its tape and its callbacks.

## What to do

Leave `keras` out of the settings, so that scripts are written for the Keras that the project asks for. Or ask
for an older version in the file that is named, for example `tensorflow>=2.12,<2.16`.

Where demands do not go together, or one cannot be read, correct it, or choose a Keras by the setting `keras`.

Where the project asks for `tf-keras` too, scripts are written for Keras 2 on these versions.

To convert anyway, use `--ignore-versions`, or the setting `trainshift.ignoreVersions` of your editor. A `fit`
stays refused: on Keras 3 Horovod's optimizer averages nothing, and does not say so.

## How to silence it

`# trainshift: ignore[TS04]` at the import, or `TS04 = "off"` among the severities.

Nothing is reported if the project allows an older version too, or asks for none.
""",
)
UNSEARCHED_FILES = OwnCode(
    "TS05",
    "unsearched-files",
    """The project has too many files for all to be searched for programs that import this one.

## Why it matters

A file is judged as a part of the programs that import it, but only 5,000 files are searched for them. Another
program may have hazards here that are not reported.

## What to do

Check the file that starts the program too: its imports are followed wherever they lie. Or give the part that
trains a `trainshift.toml` of its own: then only files below it are searched.

## How to silence it

`# trainshift: ignore[TS05]` at the first statement, or `TS05 = "off"` among the severities.

## What is not reported

A file that starts a program which trains, and a file that neither trains nor is seen to be used with Horovod.
""",
)

NOT_CONVERTED = OwnCode(
    "TS06",
    "not-converted",
    """The conversion refuses the program, or leaves this statement as it is.

## Why it matters

What you would learn from `convert` is said here already, at its line. Nothing is wrong with the script as
long as it runs on one GPU.

## What to do

The message says what to write. `trainshift explain` with the rule that it names says why.

## How to silence it

`# trainshift: ignore[TS06]` at the line, or `TS06 = "off"` among the severities.

## What is not reported

What a restriction or a hazard tells at the same place.
""",
)

OWN_CODES = (
    SYNTAX_ERROR,
    UNUSED_SUPPRESSION,
    UNKNOWN_SUPPRESSION,
    INTERNAL_ERROR,
    UNSUPPORTED_VERSION,
    UNSEARCHED_FILES,
    NOT_CONVERTED,
)
