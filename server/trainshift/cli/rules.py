"""Print the table of the rewriting rules and the restrictions, and the page of one of them."""

from __future__ import annotations

import difflib
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainshift.cli.diff_view import DIFF_STYLES
from trainshift.cli.terminal import Printer, console_on, wants_colour
from trainshift.core.rule import FAMILIES, Family, Rule
from trainshift.engine.registry import RULES
from trainshift.pages import page, page_url

if TYPE_CHECKING:
    from rich.console import Console

_PAGE_WIDTH = 100
_CODE_OR_HEADING = re.compile(
    r"^(?P<heading>#+ .*)$"
    r"|^```(?P<language>[^\n]*)\n(?P<fenced>(?:.*\n)*?)```$"
    r"|(?<=\n\n)(?P<indented>(?: {4}.*\n(?:\n+(?= {4}))?)+)",
    re.MULTILINE,
)


class UnknownRule(Exception):
    """An unknown code or name; `similar` are the closest codes and names."""

    def __init__(self, wanted: str, similar: list[str]) -> None:
        super().__init__(wanted)
        self.similar = similar


def sections() -> dict[Family, list[Rule]]:
    """Everything with a code, by family, in the order of the docs; families of one kind are one."""
    found: dict[Family, list[Rule]] = {family: [] for family in FAMILIES.values()}
    for rule in RULES:
        found[rule.family].append(rule)
    return found


def find_rule(wanted: str) -> Rule:
    """The rule with this code or name, in any case; raises UnknownRule."""
    rules = [rule for listed in sections().values() for rule in listed]
    names = {name: rule for rule in rules for name in (rule.code, rule.name)}
    folded = {name.casefold(): name for name in names}
    if wanted.casefold() in folded:
        return names[folded[wanted.casefold()]]
    close = difflib.get_close_matches(wanted.casefold(), folded, n=3)
    raise UnknownRule(wanted, [folded[name] for name in close])


def print_rules(output_format: str) -> None:
    """Print the tables: coloured on a terminal, plain in a pipe, or JSON."""
    if output_format == "json":
        entries = [
            {"code": rule.code, "name": rule.name, "title": rule.title, "kind": family.kind}
            for family, rules in sections().items()
            for rule in rules
        ]
        print(json.dumps({"version": 1, "rules": entries}, indent=2))
        return
    printer = Printer(sys.stdout, wants_colour(sys.stdout))
    width = max(len(rule.name) for rules in sections().values() for rule in rules)
    for family, rules in sections().items():
        printer.line((family.heading, "bold underline"))
        for rule in rules:
            printer.line((rule.code, "bold cyan"), (f"  {rule.name:<{width}}  ", "bold"), (rule.title, ""))
        printer.line()
    printer.line(("`trainshift explain CODE` says more.", "dim"))


def print_page(rule: Rule, docs_url: str = "") -> None:
    """Print the rule's page, and its address on the documentation's site; into a pipe as plain Markdown."""
    text = page(rule.code) or f"# {rule.code} {rule.name}\n\n{rule.doc}"
    if docs_url:
        text = f"{text.rstrip()}\n\nIn a browser: <{page_url(rule.code, docs_url)}>\n"
    if not _is_shown_to_someone():
        print(text.rstrip("\n"))
        return
    _print_markdown(console_on(sys.stdout, colour=wants_colour(sys.stdout)), text)


def _is_shown_to_someone() -> bool:
    return sys.stdout.isatty() or wants_colour(sys.stdout)


def _print_markdown(console: Console, text: str) -> None:
    """Print `text` for reading: fill paragraphs, and show code without a box and without new line breaks."""
    from rich.markdown import Markdown
    from rich.theme import Theme

    width = min(console.width, _PAGE_WIDTH)
    with console.use_theme(Theme({"markdown.code": "cyan"})):
        for kind, block in _blocks(text):
            if kind == "heading":
                console.print(
                    block.lstrip("#").strip(), style="bold" if block.startswith("##") else "bold cyan"
                )
                console.print()
            elif kind == "prose":
                console.print(Markdown(block), width=width)
                console.print()
            else:
                for line in block.splitlines():
                    style = DIFF_STYLES.get(line[:1], "") if kind == "diff" else "cyan"
                    console.print(f"    {line}".rstrip(), style=style, soft_wrap=True)
                console.print()


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Split the page into blocks: "heading", "diff", "code" (fenced, or indented by four) or "prose"."""
    at = 0
    for match in _CODE_OR_HEADING.finditer(text):
        if text[at : match.start()].strip():
            yield "prose", text[at : match.start()].strip("\n")
        at = match.end()
        if match["heading"]:
            yield "heading", match["heading"]
        else:
            kind = "diff" if match["language"] == "diff" else "code"
            yield kind, match["fenced"] or textwrap.dedent(match["indented"] or "").rstrip("\n")
    if text[at:].strip():
        yield "prose", text[at:].strip("\n")
