"""Judge one conversion by hand.

    python tests/proof/judge_script.py BEFORE [AFTER] [-v] [-- ARGUMENT...]
    python tests/proof/judge_script.py FOLDER [-v] [-- (SCRIPT | -m MODULE) ARGUMENT...]

Without AFTER, the script is converted first; so is the program of several files that a command starts in a
FOLDER.  The exit status is 1 if there is a fault.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from proof.code import Code
from proof.harness import judge, run_converted, run_original
from trainshift.proving.observed.record import Run


def main() -> int:
    """Run the code, judge it, and print the result."""
    own, arguments = sys.argv[1:], []
    if "--" in own:
        own, arguments = own[: own.index("--")], own[own.index("--") + 1 :]
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what was recorded")
    options = parser.parse_intermixed_args(own)

    before: Path | Code = options.before
    after: Path | str | Code | None = options.after
    if options.before.is_dir():
        command, arguments = tuple(arguments), []
        before = Code(read(options.before), command)
        after = Code(before.files | converted_files(options.before, command), command)
    original = run_original(before, arguments)
    ranks = run_converted(after or converted(options.before), arguments)
    if options.verbose:
        for who, run in (("original", original), ("rank 0", ranks[0]), ("rank 1", ranks[1])):
            print(f"== {who}\n{described(run)}")
    faults = judge(original, ranks)
    print("\n".join(faults) or "no fault")
    return 1 if faults else 0


def converted(path: Path) -> str:
    """The conversion of the script at `path`."""
    from trainshift.engine.conversion import Status, convert

    conversion = convert(path.read_bytes().decode("utf-8-sig"))
    if conversion.status is not Status.CONVERTED:
        sys.exit(f"{path}: {conversion.status.value}: {conversion.reason}")
    return conversion.text


def read(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by their paths in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def converted_files(folder: Path, command: tuple[str, ...]) -> dict[str, bytes]:
    """The new contents of the files that converting the command's program changes."""
    from support.fixtures import start_of
    from support.programs import changed, converted, encoded, texts
    from trainshift.engine.conversion import Status

    files = read(folder)
    conversion = converted(texts(files), start_of(command))
    if conversion.status is not Status.CONVERTED:
        sys.exit(f"{folder}: {conversion.status.value}: {conversion.reason}")
    return {path: encoded(text, files[path]) for path, text in changed(conversion).items()}


def listed(item: tuple[str, object]) -> str:
    """One entry of a record; only the beginning of a long list."""
    key, value = item
    if isinstance(value, list) and len(value) > 8:
        return f"{key} ({len(value)}): {value[:8]} ..."
    return f"{key}: {value}"


def described(run: Run) -> str:
    """The whole record of one process, as text."""
    lines = [f"exit status {run.exit_code}"]
    for channel in ("stdout", "stderr", "native", "log"):
        text = getattr(run, channel)
        lines += [f"{channel}:"] + [f"    {line}" for line in text.splitlines()]
    lines += ["files:"] + [f"    {file}" for file in run.files]
    if run.record:
        for number, optimizer in enumerate(run.record.optimizers):
            lines.append(f"optimizer {number}:")
            lines += [f"    {listed(item)}" for item in vars(optimizer).items()]
        lines += [listed(item) for item in vars(run.record).items() if item[0] != "optimizers"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
