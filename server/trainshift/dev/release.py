"""Prepare a release: one command sets the version, the address and the changelogs in all files.

    make release VERSION=1.2.0 [REPOSITORY=https://github.com/you/trainshift]

For the workflow that publishes, `--check` compares the files with a tag, and `--notes` prints the changelog's
section.  Only the standard library is needed, so any Python runs it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[3]
CHANGELOG = "CHANGELOG.md"
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
_REPOSITORY = re.compile(r"https://[\w.-]+(?:/[\w.-]+){2,}")
# The text before the version in each file, and its number of occurrences.
_PLACES = {
    "server/trainshift/__init__.py": (r'^__version__ = "', 1),
    "vscode-extension/package.json": (r'^  "version": "', 1),
    "vscode-extension/package-lock.json": (r'"name": "trainshift",\n *"version": "', 2),
    "CITATION.cff": (r"^version: ", 1),
    "server/docs/checking.md": (r"^ +rev: v|uses: [\w./-]+@v", 2),
    "action.yml": (r"uses: [\w./-]+@v", 1),
}
# The files that contain the address of the repository.
_ADDRESSED = (
    "pyproject.toml",
    "CITATION.cff",
    "server/docs/checking.md",
    "action.yml",
    ".github/ISSUE_TEMPLATE/config.yml",
)


class Mistake(Exception):
    """A release that cannot be prepared; the message is the reason."""


def versions(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each place's file and version."""
    for name, (mark, count) in _PLACES.items():
        found = re.findall(rf"(?:{mark})({_VERSION.pattern})", _read(root / name), re.M)
        if len(found) != count:
            raise Mistake(f"{name} has {len(found)} versions, not {count}")
        yield from ((name, version) for version in found)


def repository(root: Path) -> str:
    """Return the address of the repository, as the package's metadata has it."""
    found = re.search(r'^Repository = "(.*)"$', _read(root / "pyproject.toml"), re.M)
    if found is None:
        raise Mistake("pyproject.toml names no repository")
    return found[1]


def notes(text: str, version: str) -> str:
    """Return the section of a version from the text of a changelog; empty without one."""
    found = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1].strip() if found else ""


def prepare(root: Path, version: str, day: date, address: str = "") -> None:
    """Set the version, the day and the address in all files below `root`."""
    if not _VERSION.fullmatch(version):
        raise Mistake(f"{version!r} is no version such as 1.2.0 or 1.2.0rc1")
    if address and not _REPOSITORY.fullmatch(address):
        raise Mistake(f"{address!r} is no address such as https://github.com/you/trainshift")
    changed = {CHANGELOG: _released(_read(root / CHANGELOG), version, day)}
    list(versions(root))
    for name, (mark, _) in _PLACES.items():
        changed[name] = re.sub(
            rf"({mark}){_VERSION.pattern}", rf"\g<1>{version}", _read(root / name), flags=re.M
        )
    citation = changed["CITATION.cff"]
    changed["CITATION.cff"] = re.sub(r"(?<=^date-released: ).*", day.isoformat(), citation, flags=re.M)
    own = "vscode-extension/CHANGELOG.md"
    if not notes(_read(root / own), version):
        says = f"## {version}\n\n- The server of Trainshift {version}: see its changelog.\n"
        changed[own] = _read(root / own).replace("# Changelog\n", f"# Changelog\n\n{says}", 1)
    if address:
        for name in _ADDRESSED:
            text = changed.get(name) or _read(root / name)
            old = repository(root)
            owners = [each.removeprefix("https://github.com/") for each in (old, address)]
            changed[name] = text.replace(old, address).replace(f"uses: {owners[0]}@", f"uses: {owners[1]}@")
    for name, text in changed.items():
        (root / name).write_text(text, encoding="utf-8", newline="")


def _released(text: str, version: str, day: date) -> str:
    """Return the changelog with a section `version` in place of "Unreleased", which becomes empty."""
    if re.search(rf"^## {re.escape(version)}\b", text, re.M):
        raise Mistake(f"{CHANGELOG} has a section {version} already")
    head, found, rest = text.partition("\n## Unreleased\n")
    if not found or not rest.partition("\n## ")[0].strip():
        raise Mistake(f'{CHANGELOG} has nothing below "## Unreleased"')
    return f"{head}{found}\n## {version} ({day.isoformat()})\n{rest}"


def check(root: Path, tag: str, address: str = "") -> None:
    """Raise a Mistake unless all files agree with a tag and an address."""
    version = tag.removeprefix("v")
    others = sorted(f"{name} has {found}" for name, found in versions(root) if found != version)
    if not notes(_read(root / CHANGELOG), version):
        others.append(f"{CHANGELOG} has no section {version}")
    if address and address != repository(root):
        others.append(f"pyproject.toml has {repository(root)}, not {address}")
    if others:
        raise Mistake("; ".join(others))


def main() -> int:
    """Run one of the three commands; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version", help="such as 1.2.0, or a tag such as v1.2.0")
    parser.add_argument("--repository", default="", help="the address of the repository")
    parser.add_argument(
        "--check", action="store_true", help="compare the files with a tag, and change nothing"
    )
    parser.add_argument("--notes", action="store_true", help="print the section of the changelog")
    args = parser.parse_args()
    address = args.repository.removesuffix("/").removesuffix(".git")
    try:
        if args.check:
            check(ROOT, args.version, address)
        elif args.notes:
            print(notes(_read(ROOT / CHANGELOG), args.version.removeprefix("v")))
        else:
            prepare(ROOT, args.version, date.today(), address)
            print(
                f"Read `git diff`, then: git commit -am 'Release {args.version}' && git tag v{args.version}"
            )
    except Mistake as mistake:
        print(f"release: {mistake}", file=sys.stderr)
        return 1
    return 0


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main())
