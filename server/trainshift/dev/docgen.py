"""Write the documentation of every code: its page, its row in the lists, the extension's settings and
protocol.

A page consists of the code's docstring and its fixture. Run by `make docs`; tests report stale files.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trainshift.core.choices import CHOICES
from trainshift.core.finding import Verdict
from trainshift.core.rule import Rule
from trainshift.dev.examples import Example, files_of, read_examples, verdicts
from trainshift.dev.protocol import PROTOCOL, protocol
from trainshift.dev.settings_schema import settings_schema
from trainshift.engine.derivation_rules import DERIVATION_RULES
from trainshift.engine.registry import BY_CODE, RULES
from trainshift.engine.settings import CODES, SEVERITIES, Settings
from trainshift.libraries.schema import schema
from trainshift.restrictions import HAZARDS, RESTRICTIONS
from trainshift.static_graphs.codes import STATIC_CODES
from trainshift.transforms import TRANSFORMS

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "server" / "docs" / "rules"
LISTS = ROOT / "server" / "docs" / "codes.md"
CHOSEN = ROOT / "server" / "docs" / "command-line.md"
SCHEMA = ROOT / "server" / "docs" / "libraries.schema.json"
SETTINGS = ROOT / "server" / "trainshift" / "settings.schema.json"
MANIFEST = ROOT / "vscode-extension" / "package.json"
# How many examples of each kind a page shows; the fixture has them all.
_EXAMPLES = {"violated": 3, "ok": 2, "harmless": 2, "unknown": 2}
# The import lines for the examples of differentiation rules, by the folder of the fixture.
_COMMANDS = {"calculus": "calculus ", "derivatives": "differentiate model.py:"}
# Where the choices of a conversion begin in the list of the extension's settings.
_CHOSEN_FROM = 20
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)+")
_COLUMNS = re.compile(r" {4}(?P<left>\S.{0,60}?) {3,}(?P<right>[^\s#].*)\n")
_HEADINGS = {
    "violated": "Wrong",
    "ok": "Right",
    "harmless": "Harmless",
    "unknown": "Unknown",
}


def pages() -> dict[str, str]:
    """The text of every page by its code."""
    shown: dict[str, Callable[[Rule], Iterator[str]]] = {
        "restriction": _restriction,
        "static": _restriction,
        "rule": _transform,
        "derivation": _derivation,
        "check": lambda rule: iter((f"# {rule.code} {rule.name}\n", rule.doc)),
    }
    return {rule.code: "\n".join(shown[rule.family.kind](rule)) for rule in RULES}


def lists(text: str) -> str:
    """The lists of codes with one row for every restriction and every rule."""
    listed: tuple[tuple[str, Sequence[Rule]], ...] = (
        ("what must hold", [rule for rule in RESTRICTIONS if rule not in HAZARDS]),
        ("what must be right", HAZARDS),
        ("what must hold in a graph", STATIC_CODES),
        ("what it does", TRANSFORMS),
        ("what it says", DERIVATION_RULES),
    )
    for heading, rules in listed:
        rows = "".join(
            f"| [{rule.code}](rules/{rule.code}.md) | `{rule.name}` | {rule.title} |\n" for rule in rules
        )
        head = f"| code | name | {heading} |\n|---|---|---|\n"
        text = re.sub(rf"(?<={re.escape(head)})(?:\|.*\n)*", rows.replace("\\", r"\\"), text)
    return text


def choices(text: str) -> str:
    """The page of the command line with one row for every option of a conversion."""
    head = "| setting | default | meaning |\n|---|---|---|\n"
    rows = ""
    for choice in CHOICES.values():
        others = (f"`{value}`: {says}" for value, says in choice.values.items() if value != choice.default)
        rows += f"| `{choice.key}` | `{json.dumps(choice.default)}` | {' '.join([choice.says, *others])} |\n"
    return re.sub(rf"(?<={re.escape(head)})(?:\|.*\n)*", rows.replace("\\", r"\\"), text)


def manifest(text: str) -> str:
    """The extension's package.json with every code for the settings, and every option."""
    declared = json.loads(text)
    properties = declared["contributes"]["configuration"]["properties"]
    severities = properties["trainshift.severity"]["properties"]
    levels = {"type": "string", "enum": [each.label for each in sorted(SEVERITIES.values(), reverse=True)]}
    groups = {name: severity for name, severity in severities.items() if name.isalpha()}
    codes = {code: levels | {"description": f"{BY_CODE[code].name}: {BY_CODE[code].title}"} for code in CODES}
    properties["trainshift.severity"]["properties"] = groups | codes
    properties["trainshift.select"]["items"]["examples"] = [*groups, *CODES]
    properties["trainshift.ignore"]["items"]["examples"] = list(CODES)
    for number, choice in enumerate(CHOICES.values()):
        described = {"default": choice.default, "scope": "resource", "markdownDescription": choice.says}
        kind: dict[str, object] = {"type": "boolean"} if choice.is_switch else {"type": "integer"}
        if choice.values:
            says = list(choice.values.values())
            kind = {"type": "string", "enum": list(choice.values), "enumDescriptions": says}
        elif choice.is_version:
            kind = {"type": "string"}
        elif not choice.is_switch:
            kind["minimum"] = choice.least
        properties[f"trainshift.{_camel(choice.key)}"] = {**kind, **described, "order": _CHOSEN_FROM + number}
    properties["trainshift.libraries"] = {
        **schema(),
        "default": {},
        "scope": "resource",
        "order": _CHOSEN_FROM + len(CHOICES),
        "markdownDescription": "Entries for your own libraries, by module and member.",
    }
    return json.dumps(declared, indent=2, ensure_ascii=False) + "\n"


def settings_text() -> str:
    """The schema of settings files, as shipped in the package."""
    return json.dumps(settings_schema(), indent=2) + "\n"


def entries_schema() -> str:
    """The JSON schema of the table `libraries`, as a file."""
    head = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Trainshift: entries of libraries of your own",
    }
    return json.dumps({**head, **schema()}, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all files, and remove the pages of deleted codes."""
    PAGES.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for path in PAGES.glob("*.md"):
        if path.stem not in wanted:
            path.unlink()
    for code, text in wanted.items():
        (PAGES / f"{code}.md").write_text(text, encoding="utf-8")
    for path, written in ((LISTS, lists), (CHOSEN, choices), (MANIFEST, manifest)):
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(entries_schema(), encoding="utf-8")
    SETTINGS.write_text(settings_text(), encoding="utf-8")
    PROTOCOL.write_text(protocol(), encoding="utf-8")
    print(f"{len(wanted)} pages in {PAGES.relative_to(ROOT)}")


def _camel(key: str) -> str:
    first, *rest = key.split("-")
    return first + "".join(map(str.capitalize, rest))


def _labelled(doc: str, left: str, right: str) -> str:
    """A code's documentation with a line of labels above each block of two columns."""

    def labels(block: re.Match[str]) -> str:
        columns = _COLUMNS.match(block[0])
        if columns is None:
            return block[0]
        gap = " " * (columns.start("right") - columns.start("left") - len(left))
        return f"    {left}{gap}{right}\n{block[0]}"

    return _INDENTED.sub(labels, doc)


def _restriction(rule: Rule) -> Iterator[str]:
    fixture = _fixture(rule)
    examples = _examples(fixture)
    by_severity: dict[str, list[str]] = {}
    for verdict in Verdict:
        if verdict is Verdict.VIOLATED or any(_kind(each) == verdict.value for each in examples):
            label = Settings().severity_of(rule.code, verdict).label
            by_severity.setdefault(label, []).append(verdict.value)
    severities = ", ".join(f"{label} when {' or '.join(when)}" for label, when in by_severity.items())
    yield f"# {rule.code} {rule.name}\n"
    yield _labelled(rule.doc, "# wrong", "# right")
    for kind, number in _EXAMPLES.items():
        chosen = sorted(
            (each for each in examples if _kind(each) == kind),
            key=lambda each: "python fixed" not in each.blocks,
        )[:number]
        if chosen:
            yield f"## {_HEADINGS[kind]}\n"
        for each in chosen:
            yield from _shown(each)
    yield "## How to silence it\n"
    yield (
        f"`# trainshift: ignore[{rule.code}]` at the end of the line silences one finding, "
        f"`# trainshift: ignore-file[{rule.code}]` those of the file. In the settings, "
        f'`ignore = ["{rule.code}"]` switches the code off, and `severity.{rule.code} = "error"` makes it '
        "louder.\n"
    )
    weighed = "warning when the conversion refuses, withholds or doubts something because of it; else "
    is_weighed = rule.family.kind == "restriction" and rule not in HAZARDS
    yield f"By default: {weighed if is_weighed else ''}{severities}.\n"
    yield from _more(fixture)


def _shown(example: Example) -> Iterator[str]:
    yield f"### {_sentence(example.heading)}\n"
    if example.prose:
        yield f"{example.prose}\n"
    others = {kind: text for kind, text in example.blocks.items() if kind.startswith("python ")}
    fixed = others.pop("python fixed", "")
    for kind, text in others.items():
        yield f"`{kind.removeprefix('python ')}`:\n"
        yield _code("python", text)
    if others:
        yield "The script:\n"
    yield _code("python", example.blocks["python"])
    if "findings" in example.blocks:
        yield _code("text", example.blocks["findings"])
    if fixed:
        yield "`--fix` makes of it:\n"
        yield _code("python", fixed)


def _transform(rule: Rule) -> Iterator[str]:
    fixture = _fixture(rule)
    examples = [each for each in _examples(fixture) if "python before" in each.blocks]
    yield f"# {rule.code} {rule.name}\n"
    yield _labelled(rule.doc, "# before", "# after")
    changed = [each for each in examples if "python after" in each.blocks][:2]
    refused = [each for each in examples if {"withheld", "refused"} & set(each.blocks)][:2]
    for heading, chosen in (("What changes", changed), ("What is left alone", refused)):
        if chosen:
            yield f"## {heading}\n"
        for each in chosen:
            yield f"### {_sentence(each.heading)}\n"
            if each.prose:
                yield f"{each.prose}\n"
            if "toml settings" in each.blocks:
                yield _code("toml", each.blocks["toml settings"])
            before = each.blocks["python before"].replace("$0", "")
            if "python after" in each.blocks:
                yield _code("diff", _diff(before, each.blocks["python after"]))
            else:
                yield _code("python", before)
            for kind in ("withheld", "refused"):
                if kind in each.blocks:
                    yield _code("text", each.blocks[kind])
    yield "## How to silence it\n"
    yield (
        "The setting `trainshift.hints` switches the hints in an editor off. A conversion makes this change "
        "wherever it is needed.\n"
    )
    yield from _more(fixture)


def _derivation(rule: Rule) -> Iterator[str]:
    fixture = _fixture(rule)
    yield f"# {rule.code} {rule.name}\n"
    yield rule.doc
    for each in _examples(fixture)[:2]:
        yield f"## Example: {each.heading}\n"
        if each.prose:
            yield f"{each.prose}\n"
        for kind, text in each.blocks.items():
            language, _, said = kind.partition(" ")
            if said == "term":
                yield "Term:\n"
            elif said.endswith(")"):
                yield f"`{said}`:\n"
            elif said:
                yield f"`trainshift {_COMMANDS[rule.fixtures]}{said}`:\n"
            yield _code(language, text)
    yield "## More\n"
    yield f"{_all_examples(fixture)}\n"


def _all_examples(fixture: Path) -> str:
    links = (f"[{each.name}](../../../{each.relative_to(ROOT).as_posix()})" for each in files_of(fixture))
    return f"- All examples, which are its tests: {', '.join(links)}"


def _more(fixture: Path) -> Iterator[str]:
    yield "## More\n"
    if fixture.is_file():
        yield _all_examples(fixture)
    yield "- How scripts are checked and converted: [the specification](../spec.md)\n"


def _fixture(rule: Rule) -> Path:
    return ROOT / "fixtures" / rule.fixtures / f"{rule.stem}.md"


def _examples(fixture: Path) -> list[Example]:
    files = files_of(fixture) if fixture.is_file() else []
    return [each for path in files for each in read_examples(path)]


def _kind(example: Example) -> str:
    """The verdict of its only kind of finding, "ok" without one, "" if they are mixed."""
    found = verdicts(example.blocks.get("findings", "")) or {"ok"}
    return found.pop() if len(found) == 1 else ""


def _sentence(heading: str) -> str:
    first = heading.partition(" ")[0].rstrip(",:")
    return heading[:1].upper() + heading[1:] if first.isalpha() else heading


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}```\n"


def _diff(before: str, after: str) -> str:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    main()
